"""Counts: how many SyncTargets a Location has, and how many of them are open for workloads.

Reads Locations and SyncTargets; writes ``status.instances`` and ``status.availableInstances`` of
Locations. The counts come from the same index as placements do, so they cost the change only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyroaring import BitMap

from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import (
    is_being_deleted,
    lean_location,
    lean_sync_target,
    location_of,
    sync_target_of,
)
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import InformerFactory
from skerry.runtime.workqueue import WorkQueue

NAME = "location-counts"

# -- events -----------------------------------------------------------------------------------


def with_counts(obj: Object) -> Object:
    """Return what is worth keeping of a Location, its status included."""
    return {**lean_location(obj), "status": obj.get("status") or {}}


class EventHandlers:
    """Keeps the inventory up with what informers tell, and adds the Locations touched."""

    def __init__(self, inventory: Inventory, add: Callable[[ObjectRef], None]) -> None:
        self._inventory = inventory
        self._add = add

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
        else:
            target = sync_target_of(new)
            touched = self._inventory.put_sync_target(target)
            if known is not None and known.available != target.available:
                touched = touched | self._inventory.having(ref.cluster, target.labels)
        self._enqueue(touched)

    def _enqueue(self, locations: BitMap) -> None:
        for number in locations:
            self._add(self._inventory.location_at(number).ref)


# -- observe ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """One Location: counts reported (None: nothing reported) and counts that are."""

    ref: ObjectRef
    reported: tuple[int | None, int | None]
    counted: tuple[int, int]


# -- decide -----------------------------------------------------------------------------------


def decide(observed: Observed) -> Plan:
    """Correct the status of a Location that counts wrongly."""
    if observed.reported == observed.counted:
        return NOTHING
    instances, available = observed.counted
    action = Patch(
        Target(LOCATIONS, observed.ref.name, cluster=observed.ref.cluster),
        {"status": {"instances": instances, "availableInstances": available}},
        reason="InstancesChanged",
        subresource="status",
        retry_on_conflict=True,
        absent_is_fine=True,
    )
    return Plan([action])


# -- controller -------------------------------------------------------------------------------


def build(
    scheduling: ControllerContext, workload: InformerFactory
) -> Controller[ObjectRef, Observed]:
    """Return the controller that counts; both see every workspace."""
    locations = scheduling.factory.informer(LOCATIONS, transform=with_counts, packed=True)
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
        return Observed(ref, reported, counted)

    reconciler = Reconciler(observe, decide, scheduling.executor(NAME))
    return scheduling.controller(NAME, reconciler, queue, [locations, targets])
