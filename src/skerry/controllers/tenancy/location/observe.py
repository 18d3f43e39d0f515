"""What a Location says of its instances, and what is so."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.logic.fleet.placement.inventory import Inventory
from skerry.logic.fleet.placement.records import Place, is_leaving
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """One Location: counts told (None: nothing told) and counts that are."""

    place: Place
    told: tuple[int | None, int | None]
    counted: tuple[int, int]


class Observer:
    """Looks at one Location at a time."""

    def __init__(self, inventory: Inventory, locations: Informer) -> None:
        self._inventory = inventory
        self._locations = locations

    async def observe(self, place: Place) -> Observed | None:
        obj = self._locations.index.get(Key(place.cluster, "", place.name))
        number = self._inventory.location_number(place)
        if obj is None or number is None or is_leaving(obj):
            return None
        status = obj["status"]
        return Observed(
            place,
            (status.get("instances"), status.get("availableInstances")),
            (len(self._inventory.destinations(number)), self._inventory.available(number)),
        )
