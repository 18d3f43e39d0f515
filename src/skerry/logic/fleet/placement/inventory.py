"""Locations and SyncTargets, and which SyncTargets a Location has.

A Location's instances are the SyncTargets of its own workspace that satisfy its instanceSelector.
Every change returns the Locations that have other instances now.

Neither side stores the other. From a SyncTarget its Locations are found by the selectors that its
labels satisfy, from a Location its SyncTargets by the index of their labels; both are cut to the
workspace at hand, because selectors are looked up over all workspaces at once. Only the finished
destinations of a Location are remembered, until something about it changes: a fleet in which every
Location has one SyncTarget asks for the same tuples with every placement.

A new UID under an old name is a change even with equal labels: the SyncTarget was made anew, the
edge behind it is another one, and its mailbox is another workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyroaring import BitMap

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.demands import DemandIndex
from skerry.logic.fleet.placement.labels import LabelIndex
from skerry.logic.fleet.placement.numbers import Numbers
from skerry.logic.fleet.placement.records import Destination, Location, SyncTarget
from skerry.logic.fleet.placement.strategy import Candidate

_NONE = BitMap()
_NO_DESTINATIONS: tuple[Destination, ...] = ()


class Inventory:
    """Where workloads could go."""

    def __init__(self) -> None:
        self.location_labels = LabelIndex()
        self._location_numbers: Numbers[ObjectRef] = Numbers()
        self._locations: dict[int, Location] = {}
        self._locations_in: dict[str, BitMap] = {}
        # Locations whose instanceSelector cannot be understood.
        self.broken = BitMap()
        # Selector numbers of instanceSelectors, by Location.
        self._demands = DemandIndex()
        self._demand_of: dict[int, int] = {}
        self._target_labels = LabelIndex()
        self._target_numbers: Numbers[ObjectRef] = Numbers()
        self._targets: dict[int, SyncTarget] = {}
        self._targets_in: dict[str, BitMap] = {}
        # Destinations by Location, as far as anybody asked since they last changed.
        self._cache: dict[int, tuple[Destination, ...]] = {}

    # -- Locations ---------------------------------------------------------------------------

    def location(self, ref: ObjectRef) -> Location | None:
        """Return the Location called *ref*."""
        number = self._location_numbers.get(ref)
        return None if number is None else self._locations[number]

    def location_at(self, number: int) -> Location:
        return self._locations[number]

    def clusters(self) -> list[str]:
        """Return the clusters that have Locations."""
        return [cluster for cluster, numbers in self._locations_in.items() if numbers]

    def location_number(self, ref: ObjectRef) -> int | None:
        return self._location_numbers.get(ref)

    def locations(self) -> Iterator[Location]:
        """Yield every Location."""
        return iter(self._locations.values())

    def locations_in(self, cluster: str) -> BitMap:
        """Return the numbers of the Locations of a workspace."""
        return self._locations_in.get(cluster, _NONE)

    def put_location(self, location: Location) -> int:
        """Have *location* as it is given; returns its number."""
        number = self._location_numbers.add(location.ref)
        old = self._locations.get(number)
        self._locations[number] = location
        self.location_labels.put(number, location.labels)
        if location.errors:
            self.broken.add(number)
        else:
            self.broken.discard(number)
        if old is None:
            self._locations_in.setdefault(location.ref.cluster, BitMap()).add(number)
        if old is None or old.instances != location.instances:
            self._drop_demand(number)
            if location.instances is not None:
                self._demand_of[number] = self._demands.add(location.instances, number)
            self._cache.pop(number, None)
        return number

    def remove_location(self, ref: ObjectRef) -> int:
        """Forget the Location called *ref*, which must be there; returns the number it had."""
        number = self._location_numbers.add(ref)
        del self._locations[number]
        self.location_labels.remove(number)
        self.broken.discard(number)
        self._drop_demand(number)
        self._cache.pop(number, None)
        _leave(self._locations_in, ref.cluster, number)
        self._location_numbers.remove(number)
        return number

    def _drop_demand(self, number: int) -> None:
        demand = self._demand_of.pop(number, None)
        if demand is not None:
            self._demands.remove(demand, number)

    # -- SyncTargets -------------------------------------------------------------------------

    def sync_target(self, ref: ObjectRef) -> SyncTarget | None:
        """Return the SyncTarget called *ref*."""
        number = self._target_numbers.get(ref)
        return None if number is None else self._targets[number]

    def sync_targets(self) -> Iterator[SyncTarget]:
        """Yield every SyncTarget."""
        return iter(self._targets.values())

    def sync_targets_in(self, cluster: str) -> list[SyncTarget]:
        """Return the SyncTargets of a workspace, by name."""
        found = [self._targets[number] for number in self._targets_in.get(cluster, _NONE)]
        return sorted(found, key=lambda target: target.ref)

    def put_sync_target(self, target: SyncTarget) -> BitMap:
        """Have *target* as it is given; returns the Locations whose instances changed.

        A change of availability alone changes no instances; see ``having``.
        """
        number = self._target_numbers.add(target.ref)
        old = self._targets.get(number)
        if old == target:
            return BitMap()
        self._targets[number] = target
        cluster = target.ref.cluster
        if old is None:
            self._targets_in.setdefault(cluster, BitMap()).add(number)
            touched = self.having(cluster, target.labels)
        elif old.uid != target.uid:
            touched = self.having(cluster, old.labels) | self.having(cluster, target.labels)
        elif old.labels != target.labels:
            touched = self.having(cluster, old.labels) ^ self.having(cluster, target.labels)
        else:
            return BitMap()
        self._target_labels.put(number, target.labels)
        self._forget(touched)
        return touched

    def remove_sync_target(self, ref: ObjectRef) -> BitMap:
        """Forget the SyncTarget called *ref*; returns the Locations whose instances changed."""
        number = self._target_numbers.get(ref)
        if number is None:
            return BitMap()
        target = self._targets.pop(number)
        touched = self.having(ref.cluster, target.labels)
        self._target_labels.remove(number)
        _leave(self._targets_in, ref.cluster, number)
        self._target_numbers.remove(number)
        self._forget(touched)
        return touched

    def having(self, cluster: str, labels: Mapping[str, str]) -> BitMap:
        """Return the Locations of a workspace that a SyncTarget with *labels* is an instance of."""
        there = self._locations_in.get(cluster)
        if there is None:
            return BitMap()
        return self._demands.owners_of(self._demands.satisfied(labels)) & there

    # -- both --------------------------------------------------------------------------------

    def destinations(self, number: int) -> tuple[Destination, ...]:
        """Return the destinations a Location contributes, in order."""
        cached = self._cache.get(number)
        if cached is None:
            cached = self._cache[number] = self._computed(number)
        return cached

    def available(self, number: int) -> int:
        """Return how many instances of a Location live and are open for workloads."""
        return sum(self._targets[target].available for target in self._instances(number))

    def candidate(self, number: int) -> Candidate | None:
        """Return what a strategy may know of the Location of that number, if there is one."""
        location = self._locations.get(number)
        if location is None:
            return None
        available = self.available(number) > 0
        return Candidate(location.ref, location.labels, available, location.taints)

    def _instances(self, number: int) -> BitMap:
        location = self._locations[number]
        within = self._targets_in.get(location.ref.cluster)
        if within is None or location.instances is None:
            return _NONE
        return self._target_labels.select(location.instances, within)

    def _computed(self, number: int) -> tuple[Destination, ...]:
        location = self._locations[number].ref
        found = [self._targets[target] for target in self._instances(number)]
        if not found:
            return _NO_DESTINATIONS
        return tuple(
            sorted(
                Destination(location.cluster, location.name, target.ref.name, target.uid)
                for target in found
            )
        )

    def _forget(self, locations: BitMap) -> None:
        for number in locations:
            self._cache.pop(number, None)


def _leave(groups: dict[str, BitMap], name: str, number: int) -> None:
    groups[name].discard(number)
    if not groups[name]:
        del groups[name]
