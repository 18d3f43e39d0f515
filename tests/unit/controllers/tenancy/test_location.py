"""Locations count their SyncTargets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import location_ref
from skerry.api.refs import ObjectRef
from skerry.controllers.tenancy.location import (
    EventHandlers,
    Hold,
    Observed,
    decide,
)
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target
from skerry.logic.machinery.plan import Patch
from tests.kit.chain.building import equal, location, sync_target

HERE = location_ref("imw", "l")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Enqueued:
    def __init__(self) -> None:
        self.inventory = Inventory()
        self.refs: list[ObjectRef] = []
        self.handlers = EventHandlers(self.inventory, self.refs.append)

    def taken(self) -> set[ObjectRef]:
        found = set(self.refs)
        self.refs.clear()
        return found

    def counts(self) -> tuple[int, int]:
        number = self.inventory.location_number(HERE)
        assert number is not None
        return len(self.inventory.destinations(number)), self.inventory.available(number)


def target(**more: Any) -> dict[str, Any]:
    return lean_sync_target(sync_target("t", {"id": "l"}, **more))


def test_a_status_that_counts_wrongly_is_corrected() -> None:
    (action,) = decide(Observed(HERE, (None, None), (2, 1)), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"status": {"instances": 2, "availableInstances": 1}}
    assert not decide(Observed(HERE, (2, 1), (2, 1)), NOW)


def held(name: str, message: str = "3 deletions are held") -> Hold:
    return Hold(name, "DeletionsHeld", message)


def test_a_location_says_who_is_held_until_nobody_is() -> None:
    (action,) = decide(Observed(HERE, (2, 1), (2, 1), (), (held("a"), held("b"))), NOW)
    assert isinstance(action, Patch)
    [condition] = action.patch["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Held", "True")
    assert condition["reason"] == "DeletionsHeld"
    assert condition["message"] == "a: 3 deletions are held; b: 3 deletions are held"
    said = Observed(HERE, (2, 1), (2, 1), (condition,), (held("a"), held("b")))
    assert not decide(said, NOW)
    (action,) = decide(Observed(HERE, (2, 1), (2, 1), (condition,)), NOW)
    assert isinstance(action, Patch)
    assert action.patch["status"]["conditions"][0]["status"] == "False"


def test_a_hold_of_a_sync_target_concerns_its_locations_and_no_others() -> None:
    enqueued = Enqueued()
    enqueued.handlers.location_changed(None, lean_location(location("l", {}, equal(id="l"))))
    enqueued.handlers.location_changed(None, lean_location(location("m", {}, equal(id="m"))))
    enqueued.handlers.sync_target_changed(None, target())
    enqueued.taken()
    condition = {"type": "Held", "status": "True", "reason": "DeletionsHeld", "message": "x"}
    obj = sync_target("t", {"id": "l"})
    obj["status"] = {"conditions": [condition]}
    enqueued.handlers.sync_target_changed(target(), lean_sync_target(obj))
    assert enqueued.taken() == {HERE}
    number = enqueued.inventory.location_number(HERE)
    assert number is not None
    assert enqueued.handlers.holds_at(number) == (held("t", "x"),)
    enqueued.handlers.sync_target_changed(lean_sync_target(obj), lean_sync_target(obj))
    assert enqueued.taken() == set()
    enqueued.handlers.sync_target_changed(lean_sync_target(obj), target())
    assert enqueued.taken() == {HERE}
    assert enqueued.handlers.holds_at(number) == ()


def test_a_location_is_enqueued_by_its_own_sync_targets_only() -> None:
    enqueued = Enqueued()
    enqueued.handlers.location_changed(None, lean_location(location("l", {}, equal(id="l"))))
    enqueued.handlers.location_changed(None, lean_location(location("m", {}, equal(id="m"))))
    assert enqueued.taken() == {HERE, location_ref("imw", "m")}
    enqueued.handlers.sync_target_changed(None, target())
    assert enqueued.taken() == {HERE}
    assert enqueued.counts() == (1, 0)


def test_becoming_ready_counts_and_being_cordoned_does_not() -> None:
    enqueued = Enqueued()
    enqueued.handlers.location_changed(None, lean_location(location("l", {}, {})))
    enqueued.handlers.sync_target_changed(None, target())
    enqueued.taken()
    enqueued.handlers.sync_target_changed(target(), target(ready=True))
    assert enqueued.taken() == {HERE}
    assert enqueued.counts() == (1, 1)
    enqueued.handlers.sync_target_changed(None, target(ready=True, unschedulable=True))
    assert enqueued.taken() == {HERE}
    assert enqueued.counts() == (1, 0)
    enqueued.handlers.sync_target_changed(target(), None)
    assert enqueued.taken() == {HERE}
    assert enqueued.counts() == (0, 0)


def test_a_location_that_goes_is_forgotten() -> None:
    enqueued = Enqueued()
    obj = lean_location(location("l", {}, {}))
    enqueued.handlers.location_changed(None, obj)
    enqueued.taken()
    enqueued.handlers.location_changed(obj, None)
    enqueued.handlers.sync_target_changed(None, target())
    assert enqueued.taken() == set()
