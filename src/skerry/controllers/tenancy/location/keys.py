"""A Location is looked at when it changes, and when its SyncTargets do."""

from __future__ import annotations

from collections.abc import Callable

from pyroaring import BitMap

from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import (
    is_being_deleted,
    lean_location,
    location_of,
    sync_target_of,
)

NAME = "location-counts"


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
