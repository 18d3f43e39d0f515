"""How held objects are reported and confirmed; the simulation has what is held."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from skerry.api.edge import CONFIRM, Mailbox, edge_placement_ref
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.placement_translator.guards import (
    GuardedObjects,
    Judgement,
    newly_charged,
    taken,
)
from skerry.logic.fleet.guards.book import OBJECTS, Book, Charge, Hold, status_with
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.difference import ItemDiff

NOW = datetime(2025, 6, 6, tzinfo=UTC)
HOLD = Hold("7f21c0", 21, 20, 100, NOW, "too many", ("fleet",))
ITEM = ObjectRef("", "", "configmaps", "a", "x")
MAILBOX = Mailbox("imw", "u")
WEB = edge_placement_ref("shop", "web")


def placement(**annotations: str) -> dict[str, Any]:
    notes = {CLUSTER_ANNOTATION: "shop", **annotations}
    return {"metadata": {"name": "web", "uid": "u", "annotations": notes}}


def test_what_is_held_of_objects_stands_beside_what_is_held_of_destinations() -> None:
    status = {"removals": {"held": {"name": "1"}}, "a": 1}
    found = status_with(status, Book(hold=HOLD), OBJECTS)
    assert found["removals"] == {"held": {"name": "1"}, "heldObjects": HOLD.written()}
    assert status_with(found, Book(), OBJECTS) == status
    assert status_with({"a": 1}, Book(), OBJECTS) == {"a": 1}


def test_what_a_book_charges_anew_may_go_and_what_it_charged_before_has_gone() -> None:
    old, new = Charge(NOW, frozenset({b"12345678"})), Charge(NOW, frozenset({b"abcdefgh"}))
    status = status_with({}, Book((old,)), OBJECTS)
    assert newly_charged(status, Book((old,))) is None
    assert newly_charged(status, Book()) is None
    assert newly_charged(status, Book((old, new))) == new.members


def test_only_the_name_of_the_hold_is_a_confirmation_and_it_is_used_up() -> None:
    assert taken(placement(), HOLD) is None
    assert taken(placement(**{CONFIRM: "other"}), HOLD) is None
    assert taken(placement(**{CONFIRM: "7f21c0"}), None) is None
    plan = taken(placement(**{CONFIRM: "7f21c0"}), HOLD)
    assert plan is not None
    assert plan.releases == WEB
    [update] = plan.actions
    assert update.object["metadata"]["annotations"] == {CLUSTER_ANNOTATION: "shop"}  # type: ignore[union-attr]


def test_without_guards_rows_pass_as_they_are() -> None:
    guards = GuardedObjects(
        cast(Any, None), cast(Any, None), lambda: NOW, lambda *_: None, lambda _: None
    )
    rows = (ItemDiff(ITEM, Verdict.DELETE),)
    assert guards.judged(MAILBOX, "mb", rows) == Judgement(MAILBOX, rows)


def test_a_hold_that_is_recorded_is_adopted_and_dropped_when_nothing_is_held() -> None:
    guards = GuardedObjects(
        cast(Any, None), cast(Any, None), lambda: NOW, lambda *_: None, lambda _: None
    )
    obj = {**placement(), "status": status_with({}, Book(hold=HOLD), OBJECTS)}
    guards.placement_changed(None, obj)
    # Every mailbox was evaluated, and nothing is held.
    assert guards.book(WEB) == Book()
    asked = Judgement(MAILBOX, (ItemDiff(ITEM, Verdict.NONE),), {ITEM})
    assert guards.judged(MAILBOX, "mb", asked.rows) == asked, "asking for the book drops nothing"
    guards.placement_changed(obj, placement())
    assert guards.judged(MAILBOX, "mb", asked.rows).settled == frozenset(), "its status says so"
