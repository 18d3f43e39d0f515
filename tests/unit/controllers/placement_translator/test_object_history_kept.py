"""What is to be recorded of objects, what has been, and what is decided from the two."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import HISTORY_RETENTION, edge_placement_ref
from skerry.api.errors import ApiError, Forbidden, InternalError
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.placement_translator.object_history import (
    CONTROLLER,
    HistoryObserver,
    HistoryPlan,
    ObjectHistory,
    ObservedObjects,
    decide_history,
)
from skerry.logic.fleet.history.objects import Because, Sent, Withheld, key_of
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.machinery.plan import Create

NOW = datetime(2025, 6, 6, tzinfo=UTC)
P = edge_placement_ref("one", "web")
PAGE, OTHER = (ObjectRef("", "", "configmaps", "n", name) for name in ("page", "other"))
WITHHELD: Withheld = {key_of(PAGE): Because("KindWithheld", "no", 2)}


def placement(uid: str = "u", status: Any = None, **notes: str) -> Object:
    metadata = {"name": "web", "uid": uid, "generation": 3, "resourceVersion": "7"}
    found: Object = {"metadata": {**metadata, "annotations": {CLUSTER_ANNOTATION: "one", **notes}}}
    return {**found, "status": status} if status is not None else found


@dataclass
class Desk:
    """A history, an observer of it, and a server that lists what was recorded."""

    withheld: Withheld | None = field(default_factory=dict)
    records: list[Object] = field(default_factory=list)
    failure: ApiError | None = None
    placement: Object | None = field(default_factory=placement)
    lists: int = 0

    def __post_init__(self) -> None:
        self.due: list[tuple[ObjectRef, float]] = []
        self.asked: list[ObjectRef] = []
        self.history = ObjectHistory(lambda *due: self.due.append(due))
        client: Any = self
        self.observer = HistoryObserver(
            client,
            self.history,
            Limits(),
            lambda _: self.placement,
            lambda _: self.withheld,
            lambda _: 4,
            self.manager,
        )

    def for_cluster(self, cluster: str) -> Desk:
        assert cluster == "one"
        return self

    async def list(self, *_: Any, **__: Any) -> Any:
        self.lists += 1
        if self.failure is not None:
            raise self.failure
        return type("Listed", (), {"items": self.records})

    async def manager(self, cluster: str, item: ObjectRef) -> str:
        self.asked.append(item)
        return "kubectl"

    def revise(self, item: ObjectRef, start: str, to: str) -> None:
        self.history.revised([P], item, Sent(start, to, "9"))

    def observe(self) -> ObservedObjects | None:
        return asyncio.run(self.observer.observe(P))

    def plan(self) -> HistoryPlan:
        found = self.observe()
        assert found is not None
        return decide_history(found, Maker(CONTROLLER), NOW)

    def record(self) -> Sequence[str]:
        """Record what is to be recorded; returns the changes, in order."""
        plan = self.plan()
        assert plan.known is not None
        self.history.note(P, plan.known, plan.changed)
        made = [action.object for action in plan if isinstance(action, Create)]
        self.records += made
        return [each["change"] for each in made]


# -- what is to be recorded ------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abc"), min_size=1))
def test_changes_that_follow_each_other_are_one_from_the_first_to_the_last(
    digests: list[str],
) -> None:
    desk = Desk()
    start = "start"
    for each in digests:
        desk.revise(PAGE, start, each)
        start = each
    [sent] = desk.history.changed(P).values()
    assert (sent.start, sent.to) == ("start", digests[-1])


def test_an_object_that_came_back_to_what_it_was_is_nothing_to_record() -> None:
    desk = Desk()
    desk.revise(PAGE, "a", "b")
    desk.revise(PAGE, "b", "a")
    assert desk.record() == []
    assert desk.history.changed(P) == {}


def test_what_is_withheld_is_recorded_sooner_than_what_changes_all_the_time() -> None:
    desk = Desk()
    desk.revise(PAGE, "a", "b")
    desk.history.problems_changed(P)
    assert desk.due == [(P, 10.0), (P, 1.0)]


def test_every_placement_that_sends_an_object_has_its_own_record_of_it() -> None:
    desk, other = Desk(), edge_placement_ref("one", "other")
    desk.history.revised([P, other], PAGE, Sent("a", "b"))
    assert desk.history.changed(P) == desk.history.changed(other) == {PAGE: Sent("a", "b")}
    desk.record()
    assert desk.history.changed(other) == {PAGE: Sent("a", "b")}


def test_what_changes_while_it_is_recorded_begins_where_the_record_ended() -> None:
    desk = Desk()
    desk.revise(PAGE, "a", "b")
    desk.revise(OTHER, "x", "y")
    plan = desk.plan()
    desk.revise(PAGE, "b", "c")
    assert plan.known is not None
    desk.history.note(P, plan.known, plan.changed)
    assert desk.history.changed(P) == {PAGE: Sent("b", "c", "9")}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=8))
def test_the_records_of_an_object_join_however_changes_and_records_alternate(
    history: list[tuple[str, bool]],
) -> None:
    desk = Desk()
    digest = "start"
    for each, recorded in history:
        desk.revise(PAGE, digest, each)
        digest = each
        if recorded:
            desk.record()
    if desk.history.changed(P):
        desk.record()
    ends = [(each["object"].get("from"), each["object"].get("to")) for each in desk.records]
    assert [end for _, end in ends[:-1]] == [start for start, _ in ends[1:]]
    assert ends == [] or (ends[0][0], ends[-1][1]) == ("start", digest)


def test_of_a_placement_that_is_gone_nothing_is_recorded() -> None:
    desk = Desk()
    desk.revise(PAGE, "a", "b")
    desk.history.placement_changed(placement(), None)
    assert desk.history.changed(P) == {}
    assert not desk.history.may_be_recorded(P)


@pytest.mark.parametrize(
    ("old", "status", "may"),
    [
        (None, {"problems": [{"reason": "x"}]}, True),
        (None, {"problems": []}, False),
        (None, None, False),
        (placement(), {"problems": [{"reason": "x"}]}, False),
    ],
    ids=["found with problems", "found without", "found new", "changed"],
)
def test_what_was_withheld_before_we_came_may_be_recorded(
    old: Object | None, status: Object | None, may: bool
) -> None:
    desk = Desk()
    desk.history.placement_changed(old, placement(status=status))
    assert desk.history.may_be_recorded(P) is may
    desk.history.placement_changed(None, None)


# -- what has been recorded ------------------------------------------------------------------------


def test_what_was_recorded_is_read_once() -> None:
    desk = Desk()
    assert desk.observe() is None
    assert desk.lists == 0, "nothing is to be recorded, so nothing is read"
    desk.withheld = WITHHELD
    assert desk.record() == ["Withheld"]
    desk.withheld = {}
    assert desk.record() == ["Released"]
    assert desk.lists == 1


def test_what_another_has_recorded_is_not_recorded_again() -> None:
    first = Desk(withheld=WITHHELD)
    first.record()
    second = Desk(withheld=WITHHELD, records=first.records)
    assert second.observe() is None
    assert second.lists == 1
    third = Desk(withheld={}, records=first.records)
    third.history.placement_changed(None, placement(status={"problems": [{"reason": "x"}]}))
    assert third.record() == ["Released"]


def test_the_records_of_a_namesake_are_not_taken_for_ours() -> None:
    first = Desk(withheld=WITHHELD)
    first.record()
    second = Desk(withheld=WITHHELD, records=first.records, placement=placement("another"))
    assert second.record() == ["Withheld"]


def test_a_placement_that_was_made_anew_under_its_name_is_read_again() -> None:
    desk = Desk(withheld=WITHHELD)
    desk.record()
    assert desk.history.known(P, "u") is not None
    assert desk.history.known(P, "another") is None


def test_after_another_led_the_end_is_read_again_and_the_changes_are_theirs() -> None:
    desk = Desk(withheld=WITHHELD)
    desk.record()
    desk.revise(PAGE, "a", "b")
    desk.history.clear()
    assert desk.history.changed(P) == {}
    assert desk.history.known(P, "u") is None
    assert desk.history.may_be_recorded(P)
    assert desk.observe() is None
    assert desk.lists == 2


def test_what_will_never_be_recorded_is_forgotten_and_the_end_is_read_again() -> None:
    desk = Desk()
    desk.revise(PAGE, "a", "b")
    plan = desk.plan()
    desk.history.forget(P, plan.changed)
    assert desk.history.changed(P) == {}
    assert desk.history.may_be_recorded(P)
    assert desk.history.known(P, "u") is None


def test_where_records_cannot_be_read_the_chain_begins_anew_unless_the_server_failed() -> None:
    refused = Desk(withheld=WITHHELD, failure=Forbidden("not yours"))
    assert refused.record() == ["Withheld"]
    broken = Desk(withheld=WITHHELD, failure=InternalError("broken"))
    with pytest.raises(InternalError):
        broken.observe()


# -- observing, and deciding -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "found", [None, placement(**{HISTORY_RETENTION: "0"})], ids=["gone", "keeps none"]
)
def test_nothing_is_observed_of_a_placement_that_keeps_no_history(found: Object | None) -> None:
    desk = Desk(withheld=WITHHELD, placement=found)
    desk.revise(PAGE, "a", "b")
    assert desk.observe() is None
    assert desk.lists == 0


def test_while_it_is_not_known_what_is_withheld_that_is_as_it_was_recorded() -> None:
    desk = Desk(withheld=WITHHELD)
    desk.record()
    desk.withheld = None
    assert desk.observe() is None
    desk.revise(OTHER, "a", "b")
    assert desk.record() == ["Revised"]
    desk.withheld = {}
    assert desk.record() == ["Released"]


def test_another_reason_for_what_is_withheld_already_is_no_news() -> None:
    desk = Desk(withheld=WITHHELD)
    desk.record()
    desk.withheld = {key_of(PAGE): Because("CustomizerNotFound", "no", 9)}
    assert desk.observe() is None


def test_only_the_first_changes_of_a_batch_are_attributed_and_none_that_is_a_removal() -> None:
    desk = Desk()
    items = [PAGE._replace(name=f"page-{number:02}") for number in range(25)]
    for item in items:
        desk.revise(item, "a", "" if item == items[0] else "b")
    found = desk.observe()
    assert found is not None
    assert desk.asked == items[1:20]
    assert {item for item, sent in found.changed.items() if sent.manager} == {*items[1:20]}
    assert found.changed.keys() == {*items}


def test_records_follow_the_newest_of_what_they_are_about_and_are_chained() -> None:
    desk = Desk(withheld=WITHHELD)
    desk.history.revised([P], PAGE, Sent("a", "b", "31"))
    plan = desk.plan()
    names = [each.object["metadata"]["name"] for each in plan if isinstance(each, Create)]
    assert len(names) == 2
    assert all("-000000000031-" in name for name in names)
    assert plan.placement == P
    assert plan.known is not None
    assert plan.known.head is not None
    assert plan.known.withheld == WITHHELD
    changed: Mapping[ObjectRef, Sent] = plan.changed
    assert changed[PAGE].manager == "kubectl"


def test_without_anything_to_record_the_end_of_the_chain_stays() -> None:
    desk = Desk(withheld=WITHHELD)
    desk.record()
    known = desk.history.known(P, "u")
    assert known is not None
    desk.revise(PAGE, "a", "a")
    plan = desk.plan()
    assert list(plan) == []
    assert plan.known is not None
    assert plan.known.head == known.head
