"""The values a decision is made from."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from skerry.api.edge import SliceOwner, edge_placement_ref
from skerry.api.refs import ClusterName
from skerry.controllers.edge_scheduler.observed import NO_CAUSE, Cause, Gathered, Observed, Result

WEB = edge_placement_ref(ClusterName("shop"), "web")


def test_the_newest_cause_is_the_first_of_those_kept() -> None:
    newer, older = (Cause("Location", WEB, resource_version=each) for each in ("9", "3"))
    assert Gathered((newer, older), 7).newest == newer
    assert NO_CAUSE.newest is None


def test_what_was_observed_is_not_changed_by_whoever_decides() -> None:
    observed = Observed(WEB, SliceOwner("web", "u"), Result(1))
    with pytest.raises(FrozenInstanceError):
        observed.destinations = ()  # type: ignore[misc]
    assert (observed.guarded, observed.history, observed.rollout) == (None, None, None)
