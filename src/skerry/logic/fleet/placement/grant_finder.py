"""Which grants name a workspace or select a Location, by what is known of those.

The same inverted indexes as everywhere here: labels find the selectors they satisfy, so finding
costs as many set operations as there are keys that grants select by.
"""

from __future__ import annotations

from pyroaring import BitMap

from skerry.api.edge import location_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.demands import DemandIndex
from skerry.logic.fleet.placement.grants import Grant
from skerry.logic.fleet.placement.records import Location
from skerry.logic.fleet.placement.workspace_tree import Position

_NONE = BitMap()


class GrantFinder:
    """Grants by their numbers. One with errors is never found."""

    def __init__(self) -> None:
        # By inventory workspace, and by the Locations named there.
        self._demands: dict[str, DemandIndex] = {}
        self._demand_of: dict[int, int] = {}
        self._by_name: dict[ObjectRef, BitMap] = {}
        # By path: the grants that name it, and those that select among its children.
        self._by_path: dict[str, BitMap] = {}
        self._children: dict[str, DemandIndex] = {}
        self._child_demands: dict[int, list[tuple[str, int]]] = {}

    def add(self, number: int, grant: Grant) -> None:
        """Let a grant be found."""
        if grant.errors:
            return
        inventory = grant.ref.cluster
        for name in grant.location_names:
            self._by_name.setdefault(location_ref(inventory, name), BitMap()).add(number)
        if grant.location_terms is not None:
            demands = self._demands.setdefault(inventory, DemandIndex())
            self._demand_of[number] = demands.add(grant.location_terms, number)
        for path in grant.paths:
            self._by_path.setdefault(path, BitMap()).add(number)
        children = self._child_demands[number] = []
        for each in grant.children:
            found = self._children.setdefault(each.path, DemandIndex())
            children.append((each.path, found.add(each.terms, number)))

    def remove(self, number: int, grant: Grant) -> None:
        """Let a grant be found no longer."""
        if grant.errors:
            return
        inventory = grant.ref.cluster
        for name in grant.location_names:
            ref = location_ref(inventory, name)
            self._by_name[ref].discard(number)
            if not self._by_name[ref]:
                del self._by_name[ref]
        demand = self._demand_of.pop(number, None)
        if demand is not None:
            _withdraw(self._demands, inventory, demand, number)
        for path in grant.paths:
            self._by_path[path].discard(number)
            if not self._by_path[path]:
                del self._by_path[path]
        for path, child_demand in self._child_demands.pop(number):
            _withdraw(self._children, path, child_demand, number)

    def naming(self, position: Position) -> BitMap:
        """Return the grants that name whoever is at *position*."""
        found = BitMap(self._by_path.get(position.path, _NONE)) if position.path else BitMap()
        children = self._children.get(position.parent) if position.parent else None
        if children is not None:
            found |= children.owners_of(children.satisfied(position.labels))
        return found

    def about(self, location: Location) -> BitMap:
        """Return the grants that select a Location with these labels."""
        found = BitMap(self._by_name.get(location.ref, _NONE))
        demands = self._demands.get(location.ref.cluster)
        if demands is not None:
            found |= demands.owners_of(demands.satisfied(location.labels))
        return found


def _withdraw(table: dict[str, DemandIndex], key: str, demand: int, owner: int) -> None:
    table[key].remove(demand, owner)
    if not len(table[key]):
        del table[key]
