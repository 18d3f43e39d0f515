"""What the owner of a placement reads, and when it is news."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.settings import copies_are_inert
from skerry.controllers.placement_translator.status import (
    PlacementProblems,
    StatusObserved,
    decide_status,
)
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.translation.merging import PlacementProblem
from skerry.logic.machinery.plan import Update

NOW = datetime(2030, 1, 2, tzinfo=UTC)
M, N = Mailbox("imw", "m"), Mailbox("imw", "n")
P, Q = edge_placement_ref("c", "p"), edge_placement_ref("c", "q")
PAGE = ObjectRef("", "", "configmaps", "shop", "page")
LOST = Problem("CustomizerNotFound", "there is no Customizer")
CLASH = Problem("LocationsDisagree", "two Locations want it differently")
TAKEN = Problem("NameTaken", "somebody else has one")


def _placement(*conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "annotations": {"kcp.io/cluster": "c"}},
        "status": {"specGeneration": 1, "conditions": list(conditions)},
    }


def _conditions(plan: Any) -> dict[str, dict[str, str]]:
    (update,) = plan
    assert isinstance(update, Update)
    assert update.subresource == "status"
    return {each["type"]: each for each in update.object["status"]["conditions"]}


def test_a_placement_without_problems_is_refused_so_once_and_nothing_is_announced() -> None:
    plan = decide_status(StatusObserved(_placement(), {}), NOW)
    found = _conditions(plan)
    assert {kind: each["status"] for kind, each in found.items()} == {
        "Translated": "True",
        "ConflictFree": "True",
    }
    assert plan.announcements == []
    again = decide_status(StatusObserved(_placement(*found.values()), {}), NOW)
    assert not again


def test_others_conditions_stay_and_a_transition_is_dated() -> None:
    other = {"type": "Scheduled", "status": "True", "lastTransitionTime": "2029-01-01T00:00:00Z"}
    first = _conditions(decide_status(StatusObserved(_placement(other), {}), NOW))
    assert first["Scheduled"] == other
    later = datetime(2030, 1, 3, tzinfo=UTC)
    problems = {(LOST, PAGE): [M]}
    plan = decide_status(StatusObserved(_placement(*first.values()), problems), later)
    found = _conditions(plan)
    assert found["Translated"]["lastTransitionTime"] == "2030-01-03T00:00:00Z"
    assert found["ConflictFree"] == first["ConflictFree"]
    assert [(each.type, each.reason) for each in plan.announcements] == [
        ("Warning", "CustomizerNotFound")
    ]


def test_one_line_stands_for_all_destinations_and_the_rest_is_counted() -> None:
    problems = {
        (Problem("CustomizerNotFound", f"object {number}"), PAGE): [M, N] for number in range(7)
    }
    found = _conditions(decide_status(StatusObserved(_placement(), problems), NOW))
    message = found["Translated"]["message"]
    assert message.startswith("object 0 (at 2 destinations); object 1 (at 2 destinations)")
    assert message.endswith("; and 2 more")


def test_conflicts_have_a_condition_of_their_own() -> None:
    found = _conditions(decide_status(StatusObserved(_placement(), {(CLASH, PAGE): [M]}), NOW))
    assert found["Translated"]["status"] == "True"
    assert found["ConflictFree"]["reason"] == "LocationsDisagree"


def test_what_another_workspace_stands_in_for_is_a_conflict_and_is_not_there() -> None:
    found = _conditions(decide_status(StatusObserved(_placement(), {(TAKEN, PAGE): [M]}), NOW))
    assert [found[each]["reason"] for each in ("Translated", "ConflictFree")] == ["NameTaken"] * 2


def test_a_malformed_selector_comes_before_everything_else() -> None:
    observed = StatusObserved(_placement(), {(LOST, PAGE): [M]}, "spec.x: wrong")
    found = _conditions(decide_status(observed, NOW))
    assert found["Translated"]["reason"] == "InvalidSelector"
    assert found["Translated"]["message"] == "spec.x: wrong"


def _problems() -> tuple[PlacementProblems, list[ObjectRef]]:
    enqueued: list[ObjectRef] = []
    return PlacementProblems(enqueued.append), enqueued


def test_a_placement_is_enqueued_only_when_its_problems_differ() -> None:
    problems, enqueued = _problems()
    problems.put(M, PAGE, [PlacementProblem(P, LOST)])
    problems.put(M, PAGE, [PlacementProblem(P, LOST)])
    assert enqueued == [P]
    problems.put_refusal(M, PAGE, [PlacementProblem(P, CLASH)])
    assert problems.of(P) == {(LOST, PAGE): [M], (CLASH, PAGE): [M]}
    problems.put(M, PAGE, [PlacementProblem(Q, LOST)])
    assert problems.of(P) == {(CLASH, PAGE): [M]}
    problems.forget_mailbox(M)
    assert problems.of(P) == problems.of(Q) == {}


def test_nothing_is_known_until_every_mailbox_has_been_evaluated() -> None:
    problems, enqueued = _problems()
    assert not problems.is_complete([M, N])
    problems.complete(M, [Q, P])
    assert enqueued == [P, Q]
    assert not problems.is_complete([M, N])
    problems.complete(N, [P])
    assert problems.is_complete([M, N])


def test_that_a_mailbox_is_evaluated_again_enqueues_nobody() -> None:
    problems, enqueued = _problems()
    problems.complete(M, [P])
    problems.complete(M, [P])
    assert enqueued == [P]


def test_of_a_mailbox_that_comes_again_nothing_is_known_and_of_none_everything() -> None:
    problems, _ = _problems()
    problems.complete(M, [])
    problems.forget_mailbox(M)
    assert not problems.is_complete([M])
    assert problems.is_complete([])


def test_only_a_hub_of_ours_is_known_to_leave_copies_without_effect() -> None:
    assert copies_are_inert({"goVersion": "python3.11.7"})
    assert not copies_are_inert({"goVersion": "go1.18.10", "gitVersion": "v1.24.3+kcp-v0.11.0"})
    assert not copies_are_inert({})
