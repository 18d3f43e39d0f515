"""What keeps a placement that is to be taken away wave by wave, and what lets it go."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge import ROLLOUT_FINALIZER, STAGED_REMOVAL, SliceOwner, edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.observed import Observed, ObservedRollout, Result
from skerry.controllers.edge_scheduler.staged_removal import finalized, is_concerned, is_taken_away
from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import Revision, State
from skerry.logic.machinery.plan import Patch

WEB = edge_placement_ref("c", "web")
NOW = datetime(2025, 6, 6, tzinfo=UTC)
ROLLOUT = ObservedRollout(
    {}, RolloutSpec(), {1: Revision(1), 2: Revision(2, is_empty=True)}, {}, 2, NOW, 0.0
)


def placement(*, wanted: bool = True, held: bool = True, going: bool = False) -> Object:
    metadata: dict[str, Any] = {"name": "web", "uid": "u", "resourceVersion": "7"}
    metadata["annotations"] = {STAGED_REMOVAL: "true"} if wanted else {}
    metadata["finalizers"] = ["other", ROLLOUT_FINALIZER] if held else ["other"]
    if going:
        metadata["deletionTimestamp"] = "2025-06-06T00:00:00Z"
    return {"metadata": metadata}


def observed(obj: Object, rollout: ObservedRollout | None = ROLLOUT) -> Observed:
    return Observed(WEB, SliceOwner("web", "u"), Result(1), staged=obj, rollout=rollout)


def written(found: Observed, state: State | None = None) -> list[list[str]]:
    actions = [each for each in finalized(found, state) if isinstance(each, Patch)]
    assert all(each.patch["metadata"]["resourceVersion"] == "7" for each in actions)
    return [each.patch["metadata"]["finalizers"] for each in actions]


def test_who_asks_for_it_and_has_a_rollout_is_kept() -> None:
    assert written(observed(placement(held=False))) == [["other", ROLLOUT_FINALIZER]]
    assert written(observed(placement())) == []
    assert written(observed(placement(held=False), None)) == []


@pytest.mark.parametrize("rollout", [ROLLOUT, None])
def test_who_does_not_ask_any_more_or_has_no_rollout_is_not(
    rollout: ObservedRollout | None,
) -> None:
    obj = placement(wanted=rollout is None)
    assert written(observed(obj, rollout)) == [["other"]]


def test_it_goes_when_everybody_has_nothing() -> None:
    going = observed(placement(going=True))
    assert is_taken_away(going)
    assert written(going, State("Progressing", target=2, stable=1)) == []
    assert written(going, State("Completed", target=1, stable=1)) == []
    # What is stable is not what was cut for the removal.
    other = replace(ROLLOUT, live=1)
    assert written(replace(going, rollout=other), State("Completed", target=1, stable=1)) == []
    assert written(going, State("Completed", target=2, stable=2)) == [["other"]]
    assert written(replace(going, rollout=None)) == [["other"]]


def test_others_are_not_concerned() -> None:
    assert not is_concerned(placement(wanted=False, held=False))
    assert is_concerned(placement(held=False))
    assert list(finalized(observed(placement(), ROLLOUT))) == []
    assert list(finalized(replace(observed({}), staged=None))) == []
