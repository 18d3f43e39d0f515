"""Counts: how many SyncTargets a Location has, and how many of them are open for workloads.

Reads Locations and SyncTargets; writes ``status.instances`` and ``status.availableInstances`` of
Locations, and the condition ``Held`` of those with a SyncTarget that has it. The counts come from
the same index as placements do, so they cost the change only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyroaring import BitMap

from skerry.api.edge import HELD
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import (
    is_being_deleted,
    lean_location,
    lean_sync_target,
    location_of,
    sync_target_of,
)
from skerry.logic.machinery.conditions import condition, find_condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import InformerFactory
from skerry.runtime.workqueue import WorkQueue

NAME = "location-counts"

# Of SyncTargets that are held, so many are named.
_NAMED = 3

# -- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Hold:
    """A SyncTarget that waits for a person, and why."""

    sync_target: str
    reason: str
    message: str


class EventHandlers:
    """Keeps the inventory up with what informers tell, and adds the Locations touched."""

    def __init__(self, inventory: Inventory, add: Callable[[ObjectRef], None]) -> None:
        self._inventory = inventory
        self._add = add
        # Of the SyncTargets that are held, which are few.
        self._holds: dict[ObjectRef, Hold] = {}

    def holds_at(self, number: int) -> tuple[Hold, ...]:
        """Return the SyncTargets of one Location that are held."""
        found = []
        for ref, hold in self._holds.items():
            target = self._inventory.sync_target(ref)
            if target and number in self._inventory.having(ref.cluster, target.labels):
                found.append(hold)
        return tuple(sorted(found))

    def location_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(LOCATIONS.group_resource, obj)
        if new is not None:
            self._inventory.put_location(location_of(new))
            self._add(ref)
        elif self._inventory.location(ref) is not None:
            self._inventory.remove_location(ref)

    def sync_target_changed(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        ref = ObjectRef.of(SYNC_TARGETS.group_resource, obj)
        known = self._inventory.sync_target(ref)
        if new is None or is_being_deleted(new):
            touched = self._inventory.remove_sync_target(ref)
            self._holds.pop(ref, None)
        else:
            target = sync_target_of(new)
            touched = self._inventory.put_sync_target(target)
            if known is not None and known.available != target.available:
                touched = touched | self._inventory.having(ref.cluster, target.labels)
            if self._hold_changed(ref, new):
                touched = touched | self._inventory.having(ref.cluster, target.labels)
        self._enqueue(touched)

    def _hold_changed(self, ref: ObjectRef, obj: Object) -> bool:
        found, before = find_condition(obj, HELD), self._holds.pop(ref, None)
        if found is None or found.get("status") != "True":
            return before is not None
        reason, message = str(found.get("reason") or HELD), str(found.get("message") or "")
        hold = self._holds[ref] = Hold(ref.name, reason, message)
        return hold != before

    def _enqueue(self, locations: BitMap) -> None:
        for number in locations:
            self._add(self._inventory.location_at(number).ref)


# -- observe ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """One Location: counts reported (None: nothing reported) and counts that are; who is held."""

    ref: ObjectRef
    reported: tuple[int | None, int | None]
    counted: tuple[int, int]
    conditions: tuple[dict[str, Any], ...] = ()
    holds: tuple[Hold, ...] = ()


# -- decide -----------------------------------------------------------------------------------


def decide(observed: Observed, now: datetime) -> Plan:
    """Correct the status of a Location that counts wrongly, or hides that something is held."""
    known, status = list(observed.conditions), dict[str, Any]()
    if observed.reported != observed.counted:
        instances, available = observed.counted
        status = {"instances": instances, "availableInstances": available}
    # Where nothing was ever held there is nothing to say.
    wanted = [_held(observed.holds)] if observed.holds or known else []
    conditions = set_conditions(known, wanted, rfc3339(now))
    if conditions != known:
        status["conditions"] = conditions
    if not status:
        return NOTHING
    action = Patch(
        Target(LOCATIONS, observed.ref.name, cluster=observed.ref.cluster),
        {"status": status},
        reason="InstancesChanged",
        subresource="status",
        retry_on_conflict=True,
        absent_is_fine=True,
    )
    return Plan([action])


def _held(holds: tuple[Hold, ...]) -> Object:
    if not holds:
        return condition(HELD, False, "NothingHeld", "")
    named = "; ".join(f"{hold.sync_target}: {hold.message}" for hold in holds[:_NAMED])
    more = f" and {len(holds) - _NAMED} more" if len(holds) > _NAMED else ""
    return condition(HELD, True, holds[0].reason, named + more)


# -- controller -------------------------------------------------------------------------------


def build(
    scheduling: ControllerContext, workload: InformerFactory
) -> Controller[ObjectRef, Observed]:
    """Return the controller that counts; both see every workspace."""
    locations = scheduling.factory.informer(LOCATIONS, transform=lean_location, packed=True)
    targets = workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
    queue: WorkQueue[ObjectRef] = scheduling.queue(NAME)
    inventory = Inventory()
    handlers = EventHandlers(inventory, queue.add)
    locations.add_handler(handlers.location_changed)
    targets.add_handler(handlers.sync_target_changed)

    async def observe(ref: ObjectRef) -> Observed | None:
        obj = locations.index.get(Key(ref.cluster, "", ref.name))
        number = inventory.location_number(ref)
        if obj is None or number is None or is_being_deleted(obj):
            return None
        status = obj["status"]
        reported = (status.get("instances"), status.get("availableInstances"))
        counted = (len(inventory.destinations(number)), inventory.available(number))
        conditions = tuple(status.get("conditions") or ())
        return Observed(ref, reported, counted, conditions, handlers.holds_at(number))

    clock = scheduling.client.clock
    reconciler = Reconciler(
        observe, lambda observed: decide(observed, clock.now()), scheduling.executor(NAME)
    )
    return scheduling.controller(NAME, reconciler, queue, [locations, targets])
