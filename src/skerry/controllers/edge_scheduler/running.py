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

from skerry.logic.fleet.placement.records import Destination, Place

NOTHING: frozenset[Destination] = frozenset()


class Running:
    """Destinations by placement, and those of them whose removal is confirmed."""

    def __init__(self) -> None:
        self._known: dict[Place, frozenset[Destination]] = {}
        self._released: dict[Place, set[Place]] = {}

    def clear(self) -> None:
        """Forget everything: another process may have led, written and taken confirmations."""
        self._known.clear()
        self._released.clear()

    def knows(self, place: Place) -> bool:
        return place in self._known

    def destinations(self, place: Place) -> frozenset[Destination]:
        """Return what a placement has and may keep."""
        found = self._known.get(place, NOTHING)
        released = self._released.get(place)
        if not released:
            return found
        return frozenset(d for d in found if Place(d.cluster, d.location) not in released)

    def note(self, place: Place, destinations: Iterable[Destination]) -> None:
        """Take *destinations* for what the slices of a placement hold."""
        self._known[place] = found = frozenset(destinations)
        if place in self._released:
            # What has gone needs no confirmation; should it come again, it needs another.
            self.settle(place, {Place(each.cluster, each.location) for each in found})

    def forget(self, place: Place) -> None:
        """Say that it is not known (any more) what the slices hold, or that nobody will ask."""
        self._known.pop(place, None)

    def release(self, place: Place, location: Place) -> None:
        """Let a placement lose a Location: a person has confirmed that."""
        self._released.setdefault(place, set()).add(location)

    def settle(self, place: Place, refused: Iterable[Place]) -> None:
        """Drop confirmations for Locations other than *refused*: the others are used up."""
        released = self._released.get(place)
        if released is not None:
            released &= set(refused)
            if not released:
                del self._released[place]
