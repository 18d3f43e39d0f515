"""The values a decision is made from."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge import SliceOwner, edge_placement_ref
from skerry.api.refs import ClusterName
from skerry.controllers.edge_scheduler.observed import (
    NO_CAUSE,
    Cause,
    Consent,
    Gathered,
    Gone,
    Guarded,
    Observed,
    ObservedRollout,
    Result,
)
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import OPEN

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


@pytest.mark.parametrize(
    "part", [Observed(WEB, SliceOwner("web", "u"), Result(1)), Result(1), Consent(), Gone(WEB)]
)
def test_every_part_of_an_observation_is_frozen(part: Any) -> None:
    for each in fields(part):
        with pytest.raises(FrozenInstanceError):
            setattr(part, each.name, None)


def test_a_placement_without_any_extras_costs_nothing_and_is_nobodys_affair() -> None:
    plain = Observed(WEB, SliceOwner("web", "u"), Result(1))
    extras = (plain.chosen, plain.found, plain.guarded, plain.history, plain.staged, plain.rollout)
    assert extras == (None,) * 6
    assert (plain.slices, plain.page_names, plain.refused, plain.tracked) == ({}, (), (), False)
    assert plain.causes is NO_CAUSE


def test_of_many_causes_the_last_are_kept_and_all_are_counted() -> None:
    causes = tuple(Cause("Location", WEB, resource_version=str(number)) for number in (9, 8, 7))
    found = Gathered(causes, 500)
    assert found.newest is causes[0]
    assert found.total > len(found.known)


def test_a_cause_is_not_initial_and_names_nobody_unless_that_is_known() -> None:
    cause = Cause("Location", WEB)
    assert (cause.initial, cause.changed_by, cause.uid, cause.change) == (False, "", "", "")


def test_without_a_rule_of_its_own_no_destination_goes_whatever_the_pace() -> None:
    now = datetime(2025, 6, 6, tzinfo=UTC)
    rollout = ObservedRollout({}, RolloutSpec(), {}, {}, 0, now, 0.0)
    destination = Destination("imw", "florin", "t", "u")
    assert not rollout.goes(destination, [destination.location_ref])
    assert rollout.gate is OPEN


def test_guards_that_found_nothing_keep_and_bar_nobody() -> None:
    now = datetime(2025, 6, 6, tzinfo=UTC)
    guarded = Guarded({}, (), now)
    assert (guarded.present, guarded.departing, guarded.until) == (0, (), None)
    assert not guarded.exempt | guarded.frozen | guarded.barred
    assert guarded.protected == {}
