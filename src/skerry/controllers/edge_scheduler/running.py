"""Which destinations a placement has by its slices, for placements that some Location refuses.

Where no grant admits a placement any more, what its slices hold stays until a person confirms the
removal. What counts is what was written: a destination that was only decided on, by a plan that
failed, must not come in later because it seems to be there already.

The slices are read once, from the server, when a placement is first refused something; from then
on the executed plans count. So destinations that somebody else writes into a slice are not held,
except those written while no scheduler runs. (The placement translator admits nothing that is not
granted, whatever the slices contain.)
"""

from __future__ import annotations

from collections.abc import Iterable

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination

NOTHING: frozenset[Destination] = frozenset()


class Running:
    """Destinations by placement, and those of them whose removal is confirmed."""

    def __init__(self) -> None:
        self._cache: dict[ObjectRef, frozenset[Destination]] = {}
        self._released: dict[ObjectRef, set[ObjectRef]] = {}

    def clear(self) -> None:
        """Forget everything: another process may have led, written and taken confirmations."""
        self._cache.clear()
        self._released.clear()

    def knows(self, ref: ObjectRef) -> bool:
        return ref in self._cache

    def destinations(self, ref: ObjectRef) -> frozenset[Destination]:
        """Return what a placement has and may keep."""
        found = self._cache.get(ref, NOTHING)
        released = self._released.get(ref)
        if not released:
            return found
        return frozenset(d for d in found if d.location_ref not in released)

    def note(self, ref: ObjectRef, destinations: Iterable[Destination]) -> None:
        """Take *destinations* for what the slices of a placement hold."""
        self._cache[ref] = found = frozenset(destinations)
        if ref in self._released:
            # What has gone needs no confirmation; should it come again, it needs another.
            self.settle(ref, {each.location_ref for each in found})

    def forget(self, ref: ObjectRef) -> None:
        """Say that it is not known (any more) what the slices hold, or that nobody will ask."""
        self._cache.pop(ref, None)

    def release(self, ref: ObjectRef, location: ObjectRef) -> None:
        """Let a placement lose a Location: a person has confirmed that."""
        self._released.setdefault(ref, set()).add(location)

    def settle(self, ref: ObjectRef, refused: Iterable[ObjectRef]) -> None:
        """Drop confirmations for Locations other than *refused*: the others are used up."""
        released = self._released.get(ref)
        if released is not None:
            released &= set(refused)
            if not released:
                del self._released[ref]
