"""What the owner of a placement reads, and when it is news."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS, Mailbox, edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.guards import ReleasePlan
from skerry.controllers.placement_translator.settings import copies_are_inert
from skerry.controllers.placement_translator.status import (
    PlacementProblems,
    StatusObserved,
    StatusObserver,
    decide_status,
    withheld_of,
)
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.customization.customize import Problem
from skerry.logic.fleet.guards.book import Book, Charge
from skerry.logic.fleet.history.objects import Because, key_of
from skerry.logic.fleet.translation.merging import PlacementProblem
from skerry.logic.machinery.plan import Update
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import Answer
from tests.kit.answering import AnsweringTransport

NOW = datetime(2030, 1, 2, tzinfo=UTC)
M, N = Mailbox("imw", "m"), Mailbox("imw", "n")
P, Q = edge_placement_ref("c", "p"), edge_placement_ref("c", "q")
PAGE = ObjectRef("", "", "configmaps", "shop", "page")
OTHER = ObjectRef("", "", "configmaps", "shop", "other")
LOST = Problem("CustomizerNotFound", "there is no Customizer")
CLASH = Problem("LocationsDisagree", "two Locations want it differently")
TAKEN = Problem("NameTaken", "somebody else has one")


def _placement(*conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "annotations": {"kcp.io/cluster": "c"}},
        "status": {"specGeneration": 1, "conditions": list(conditions)},
    }


def _status(plan: Any) -> dict[str, Any]:
    (update,) = plan
    assert isinstance(update, Update)
    assert update.subresource == "status"
    return dict(update.object["status"])


def _conditions(plan: Any) -> dict[str, dict[str, str]]:
    return {each["type"]: each for each in _status(plan)["conditions"]}


def test_a_placement_without_problems_is_reported_so_once_and_nothing_is_announced() -> None:
    plan = decide_status(StatusObserved(_placement(), {}), NOW)

    found = _conditions(plan)

    assert {kind: each["status"] for kind, each in found.items()} == {"ConflictFree": "True"}
    assert "problems" not in _status(plan)
    assert plan.announcements == []
    assert not decide_status(StatusObserved(_placement(*found.values()), {}), NOW)


def test_what_earlier_versions_said_of_translation_is_dropped() -> None:
    old = {"type": "Translated", "status": "False", "lastTransitionTime": "2029-01-01T00:00:00Z"}

    found = _conditions(decide_status(StatusObserved(_placement(old), {}), NOW))

    assert set(found) == {"ConflictFree"}


def test_others_conditions_stay_and_problems_that_are_new_are_announced() -> None:
    other = {"type": "Scheduled", "status": "True", "lastTransitionTime": "2029-01-01T00:00:00Z"}
    first = _conditions(decide_status(StatusObserved(_placement(other), {}), NOW))
    assert first["Scheduled"] == other

    placement = _placement(*first.values())
    plan = decide_status(StatusObserved(placement, {(LOST, PAGE): [M]}), NOW)

    status = _status(plan)
    assert status["problems"] == [
        {"reason": LOST.reason, "message": LOST.message, "destinations": 1}
    ]
    assert status["conditions"] == list(first.values())
    assert [(each.type, each.reason) for each in plan.announcements] == [
        ("Warning", "CustomizerNotFound")
    ]
    again = StatusObserved({**placement, "status": status}, {(LOST, PAGE): [M]})
    assert not decide_status(again, NOW)


def test_problems_that_are_mended_leave_the_status() -> None:
    placement = _placement()
    placement["status"]["problems"] = [{"reason": "Old", "message": "gone", "destinations": 1}]

    assert "problems" not in _status(decide_status(StatusObserved(placement, {}), NOW))


def test_one_problem_stands_for_all_its_destinations_and_there_are_no_more_than_twenty() -> None:
    problems = {
        (Problem("CustomizerNotFound", f"object {number:02}"), PAGE): [M, N] for number in range(25)
    }

    plan = decide_status(StatusObserved(_placement(), problems), NOW)

    listed = _status(plan)["problems"]
    assert len(listed) == 20
    assert listed[0] == {
        "reason": "CustomizerNotFound",
        "message": "object 00",
        "destinations": 2,
    }
    (announced,) = plan.announcements
    assert announced.message.startswith("object 00 (at 2 destinations); object 01 (at 2 ")


def test_conflicts_are_a_condition_and_no_problem() -> None:
    plan = decide_status(StatusObserved(_placement(), {(CLASH, PAGE): [M]}), NOW)

    assert "problems" not in _status(plan)
    assert _conditions(plan)["ConflictFree"]["reason"] == "LocationsDisagree"
    assert [each.reason for each in plan.announcements] == ["LocationsDisagree"]


def test_what_another_workspace_stands_in_for_is_a_conflict_and_is_not_there() -> None:
    plan = decide_status(StatusObserved(_placement(), {(TAKEN, PAGE): [M]}), NOW)

    assert [each["reason"] for each in _status(plan)["problems"]] == ["NameTaken"]
    assert _conditions(plan)["ConflictFree"]["reason"] == "NameTaken"


def test_a_malformed_selector_comes_before_everything_else() -> None:
    observed = StatusObserved(_placement(), {(LOST, PAGE): [M]}, "spec.x: wrong")

    found = _status(decide_status(observed, NOW))["problems"]

    assert [each["reason"] for each in found] == ["InvalidSelector", "CustomizerNotFound"]
    assert found[0]["message"] == "spec.x: wrong"


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


class Nowhere(AnsweringTransport):
    """A server that nobody asks: what is observed is in the caches."""

    async def request(self, *_: object, **__: object) -> Answer:
        raise AssertionError


def _observer(placement: dict[str, Any], problems: PlacementProblems) -> StatusObserver:
    client = Client(Nowhere(), clock=LoopClock())
    informer = InformerFactory(client, ids=SeededIds(1)).informer(EDGE_PLACEMENTS)
    informer.index.put(Key("c", "", "p"), placement)
    return StatusObserver(informer, problems, lambda _: [M, N], lambda _: Book())


async def test_nothing_is_written_before_the_scheduler_has_and_every_mailbox_was_evaluated() -> (
    None
):
    problems, _ = _problems()
    placement: dict[str, Any] = {**_placement(), "spec": {}}
    early = {**placement, "status": {}}
    problems.complete(M, [P])
    assert await _observer(placement, problems).observe(P) is None, "of N nothing is known"
    problems.complete(N, [P])
    assert await _observer(placement, problems).observe(Q) is None, "there is no such placement"
    assert await _observer(early, problems).observe(P) is None
    problems.put(M, PAGE, [PlacementProblem(P, LOST)])
    found = await _observer(placement, problems).observe(P)
    assert found == StatusObserved(placement, {(LOST, PAGE): [M]})


async def test_a_malformed_selector_is_observed_with_what_is_wrong_about_it() -> None:
    problems, _ = _problems()
    for mailbox in (M, N):
        problems.complete(mailbox, [P])
    wrong = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    placement: dict[str, Any] = {**_placement(), "spec": {"namespaceSelector": wrong}}
    found = await _observer(placement, problems).observe(P)
    assert found is not None
    assert "Near" in found.malformed


def test_what_is_withheld_is_known_with_the_last_mailbox_and_named_once_per_object() -> None:
    problems, _ = _problems()
    problems.complete(M, [P])
    assert withheld_of(problems, P, [M, N]) is None
    problems.complete(N, [P])
    assert withheld_of(problems, P, [M, N]) == {}
    problems.put(M, PAGE, [PlacementProblem(P, TAKEN), PlacementProblem(P, LOST)])
    problems.put_refusal(M, PAGE, [PlacementProblem(P, LOST)])
    problems.put(N, PAGE, [PlacementProblem(P, LOST), PlacementProblem(P, CLASH)])
    problems.put(N, OTHER, [PlacementProblem(P, CLASH)])
    assert withheld_of(problems, P, [M, N]) == {
        key_of(PAGE): Because(LOST.reason, LOST.message, 2),
    }, "a compromise goes, and of one object the first reason counts"


def test_what_guards_have_let_go_is_released_once_the_status_says_so() -> None:
    charge = Charge(NOW - timedelta(hours=1), frozenset([b"12345678"]))
    plan = decide_status(StatusObserved(_placement(), {}, book=Book((charge,))), NOW)
    assert isinstance(plan, ReleasePlan)
    assert plan.releases == P
    again = StatusObserved({**_placement(), "status": _status(plan)}, {}, book=Book((charge,)))
    assert not isinstance(decide_status(again, NOW), ReleasePlan)
