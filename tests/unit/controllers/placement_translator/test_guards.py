"""How held objects are reported and confirmed; the simulation has what is held."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from skerry.api.edge import CONFIRM, Mailbox, edge_placement_ref
from skerry.api.refs import CLUSTER_ANNOTATION, ObjectRef
from skerry.controllers.placement_translator.guards import (
    GuardedObjects,
    removals_with_objects,
    taken,
)
from skerry.logic.fleet.guards.book import Hold
from skerry.logic.fleet.tables.completeness import Verdict
from skerry.logic.fleet.translation.difference import ItemDiff

NOW = datetime(2025, 6, 6, tzinfo=UTC)
HOLD = Hold("7f21c0", 21, 20, 100, NOW, "too many", ("fleet",))
ITEM = ObjectRef("", "", "configmaps", "a", "x")


def placement(**annotations: str) -> dict[str, Any]:
    notes = {CLUSTER_ANNOTATION: "shop", **annotations}
    return {"metadata": {"name": "web", "uid": "u", "annotations": notes}}


def test_what_is_held_of_objects_stands_beside_what_is_held_of_destinations() -> None:
    status = {"removals": {"held": {"name": "1"}}, "a": 1}
    found = removals_with_objects(status, HOLD)
    assert found["removals"] == {"held": {"name": "1"}, "heldObjects": HOLD.written()}
    assert removals_with_objects(found, None) == status
    assert removals_with_objects({"a": 1}, None) == {"a": 1}


def test_only_the_name_of_the_hold_is_a_confirmation_and_it_is_used_up() -> None:
    assert taken(placement(), HOLD) is None
    assert taken(placement(**{CONFIRM: "other"}), HOLD) is None
    assert taken(placement(**{CONFIRM: "7f21c0"}), None) is None
    plan = taken(placement(**{CONFIRM: "7f21c0"}), HOLD)
    assert plan is not None
    assert plan.releases == edge_placement_ref("shop", "web")
    [update] = plan.actions
    assert update.object["metadata"]["annotations"] == {CLUSTER_ANNOTATION: "shop"}  # type: ignore[union-attr]


def test_without_guards_rows_pass_as_they_are() -> None:
    guards = GuardedObjects(
        cast(Any, None), cast(Any, None), lambda: NOW, lambda *_: None, lambda _: None
    )
    rows = (ItemDiff(ITEM, Verdict.DELETE),)
    assert guards.judged(Mailbox("imw", "u"), "mb", rows) == rows


def test_a_hold_that_is_recorded_is_adopted_and_dropped_when_nothing_is_held() -> None:
    guards = GuardedObjects(
        cast(Any, None), cast(Any, None), lambda: NOW, lambda *_: None, lambda _: None
    )
    obj = {**placement(), "status": removals_with_objects({}, HOLD)}
    guards.placement_changed(None, obj)
    # Every mailbox was evaluated, and nothing is held.
    assert guards.hold(edge_placement_ref("shop", "web")) is None
