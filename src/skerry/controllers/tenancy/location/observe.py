"""What a Location says of its instances, and what is so."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """One Location: counts reported (None: nothing reported) and counts that are."""

    ref: ObjectRef
    reported: tuple[int | None, int | None]
    counted: tuple[int, int]


class Observer:
    """Looks at one Location at a time."""

    def __init__(self, inventory: Inventory, locations: Informer) -> None:
        self._inventory = inventory
        self._locations = locations

    async def observe(self, ref: ObjectRef) -> Observed | None:
        obj = self._locations.index.get(Key(ref.cluster, "", ref.name))
        number = self._inventory.location_number(ref)
        if obj is None or number is None or is_being_deleted(obj):
            return None
        status = obj["status"]
        return Observed(
            ref,
            (status.get("instances"), status.get("availableInstances")),
            (len(self._inventory.destinations(number)), self._inventory.available(number)),
        )
