"""Every edge as a small record and a number, and bitmaps of numbers by whatever is asked about.

A state, the value of a label, a workspace, a reason, a placement: each has the set of edges that it
is true of. A change of one edge touches the sets that it leaves and joins; a filter is an
intersection, a count its length, and what somebody may see one set more. How an edge stands is read
by ``overview.rows``, as ``skerry fleet`` reads it.

A number is an edge's for as long as anything knows the edge: its SyncTarget, or a slice that still
names it. Only when neither does is the number given to another; so a bitmap that a placement holds
never comes to mean an edge that arrived since. What is kept by number in arrays (``states``,
``name_ranks``) may have leftovers at numbers that nobody has, and is read at those present.

Three counters tell screens what they have to draw again. A heartbeat changes when an edge was heard
of and nothing else; ten thousand edges send hundreds of them a second, and if each were a change,
every screen would be drawn without end.

SyncTargets, Locations and slices come from informers of their own, in any order. A slice may name
an edge whose SyncTarget has not been read yet, or is gone: it has a number and a key, and is not
``present``. So whoever reads ``edge`` asks for numbers that are present, and whoever shows the
destinations of a placement is content with ``key_of``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from skerry.api.edge import placement_of_slice
from skerry.api.refs import ClusterName
from skerry.logic.fleet.overview.rows import EdgeState, edge_row, row_key
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import location_of, sync_target_of
from skerry.logic.fleet.placement.slices import destinations_in

# The index is the byte of a cell of the map.
STATES: Final = ("healthy", "progressing", "degraded", "unhealthy", "away", "unknown")
_STATE_OF: Final[Mapping[EdgeState, int]] = {
    "Ready": 0,
    "Syncing": 1,
    "Held": 2,
    "Refused": 2,
    "Unhealthy": 3,
    "Lost": 4,
    "NotJoined": 5,
}
# What is known to be broken comes before what is not heard of: somebody can mend it now.
# How far down in a list, the worst first, by state.
_RANKS = (5, 4, 2, 0, 1, 3)
RANK: Final[NDArray[np.uint8]] = np.array(_RANKS, np.uint8)

EdgeKey = tuple[ClusterName, str]
PlacementKey = tuple[ClusterName, str]
_NONE: Final = BitMap()


@dataclass(slots=True)
class Edge:
    """What is kept of an edge. ``labels`` are its own and those of Locations that lead to it."""

    cluster: ClusterName
    name: str
    state: int
    reason: str
    problem: str
    heard: datetime | None
    own: Mapping[str, str]
    labels: Mapping[str, str]
    # As the API writes it, which sorts by time.
    created: str = ""


class EdgeIndex:
    """All edges. ``version`` counts changes, ``membership`` those of what edges are called.

    ``heartbeats`` counts changes of when an edge was heard of and nothing else: of ten thousand
    edges some hundreds a second, which nobody has to see at once.
    """

    def __init__(self, table: DestinationTable | None = None) -> None:
        """*table* is where SyncTargets and Locations are kept, for others to ask too."""
        self.version = 0
        self.membership = 0
        self.heartbeats = 0
        self.present = BitMap()
        self.by_state = tuple(BitMap() for _ in STATES)
        self.by_cluster: dict[ClusterName, BitMap] = {}
        self.by_reason: dict[str, BitMap] = {}
        self.by_label: dict[str, dict[str, BitMap]] = {}
        self.states: NDArray[np.uint8] = np.zeros(64, np.uint8)
        self._edges: dict[int, Edge] = {}
        self._numbers: dict[EdgeKey, int] = {}
        self._keys: dict[int, EdgeKey] = {}
        # Numbers that were given back. They are given again, so that arrays and bitmaps stay as
        # small as the fleet was at its largest.
        self._free: list[int] = []
        # How many slices name a number: one that nobody does and that is no edge is given again.
        self._named: dict[int, int] = {}
        # At which version the destinations of a placement were last decided anew.
        self.decided: dict[PlacementKey, int] = {}
        self._slices: dict[PlacementKey, dict[str, BitMap]] = {}
        self._owner_of_slice: dict[tuple[ClusterName, str], PlacementKey] = {}
        self._table = table or DestinationTable()
        self._inventory = self._table.inventory
        self._ranks: NDArray[np.int32] | None = None

    # -- what is asked -----------------------------------------------------------------------

    def edge(self, number: int) -> Edge:
        """Return the edge of a number that is present."""
        return self._edges[number]

    def key_of(self, number: int) -> EdgeKey:
        """Return what the edge of a number is called, present or only named in slices."""
        return self._keys[number]

    def number_of(self, key: EdgeKey) -> int | None:
        """Return the number of an edge."""
        return self._numbers.get(key)

    def find(self, key: EdgeKey) -> Edge | None:
        """Return the edge called *key*."""
        number = self._numbers.get(key)
        return None if number is None else self._edges.get(number)

    def at_placement(self, placement: PlacementKey) -> BitMap:
        """Return the destinations of a placement, whether or not their SyncTargets are there."""
        return BitMap.union(*self._slices.get(placement, {}).values(), _NONE)

    def placements_at(self, key: EdgeKey) -> list[PlacementKey]:
        """Return the placements that lead to an edge, by looking at every page there is."""
        number = self._numbers.get(key)
        if number is None:
            return []
        return sorted(
            placement
            for placement, slices in self._slices.items()
            if any(number in members for members in slices.values())
        )

    def location_of(self, key: EdgeKey) -> str:
        """Return the first Location with labels that leads to an edge, else any; else its name."""
        edge = self.find(key)
        if edge is None:
            return key[1]
        numbers = self._inventory.having(edge.cluster, edge.own)
        leading = [self._inventory.location_at(number) for number in numbers]
        names = sorted((not each.labels, each.ref.name) for each in leading)
        return names[0][1] if names else edge.name

    def name_ranks(self) -> NDArray[np.int32]:
        """Return, by number, which place an edge has among all by its workspace and name.

        Ranks are computed anew only after an edge got a number. One that is gone leaves a gap,
        which changes no order.
        """
        if self._ranks is None:
            order = sorted(self._keys, key=self._keys.__getitem__)
            self._ranks = np.zeros(len(self.states), np.int32)
            self._ranks[order] = np.arange(len(order), dtype=np.int32)
        return self._ranks

    def named_like(self, part: str) -> BitMap:
        """Return the edges with *part* in their name."""
        return BitMap(n for n, edge in self._edges.items() if part in edge.name.lower())

    # -- what changes ------------------------------------------------------------------------

    def put_sync_target(self, obj: Mapping[str, Any]) -> None:
        """Take a SyncTarget, new or changed."""
        row, target = edge_row(obj), sync_target_of(obj)
        self._table.put_sync_target(target)
        number = self._number(row.key)
        edge = Edge(
            row.cluster,
            row.name,
            _STATE_OF[row.state],
            row.state,
            row.problem,
            row.heard,
            target.labels,
            self._labels(row.cluster, target.labels),
            str(obj["metadata"].get("creationTimestamp") or ""),
        )
        old = self._edges.get(number)
        self._edges[number] = edge
        if old is not None and _is_heartbeat(old, edge):
            self.heartbeats += 1
            return
        self.version += 1
        if old is None:
            self.present.add(number)
            self.by_cluster.setdefault(edge.cluster, BitMap()).add(number)
            self.membership += 1
        self._move(number, old, edge)

    def remove_sync_target(self, obj: Mapping[str, Any]) -> None:
        """Take that a SyncTarget is gone."""
        self._table.remove_sync_target(sync_target_of(obj).ref)
        number = self._numbers.get(row_key(obj))
        edge = None if number is None else self._edges.pop(number, None)
        if number is None or edge is None:
            return
        self.version, self.membership = self.version + 1, self.membership + 1
        self.present.discard(number)
        _leave(self.by_cluster, edge.cluster, number)
        self._move(number, edge, None)
        self._release(number)

    def put_location(self, obj: Mapping[str, Any]) -> None:
        """Take a Location, new or changed: its labels are those of the edges it leads to.

        It costs the edges that it led to or leads to now; one of all edges costs the fleet.
        """
        location = location_of(obj)
        known = self._inventory.location_number(location.ref)
        before = () if known is None else self._inventory.destinations(known)
        self._table.put_location(location)
        number = self._inventory.location_number(location.ref)
        after = () if number is None else self._inventory.destinations(number)
        self._relabel((each.cluster, each.sync_target) for each in (*before, *after))

    def remove_location(self, obj: Mapping[str, Any]) -> None:
        """Take that a Location is gone."""
        ref = location_of(obj).ref
        known = self._inventory.location_number(ref)
        if known is not None:
            before = self._inventory.destinations(known)
            self._table.remove_location(ref)
            self._relabel((each.cluster, each.sync_target) for each in before)

    def put_slice(self, obj: Mapping[str, Any]) -> None:
        """Take a page of a placement's destinations, new or changed."""
        cluster, name = row_key(obj)
        # Numbers that this page alone names are given back and taken again, perhaps in another
        # order. That is safe: an edge that is present is never given back.
        # The page may have been another placement's.
        self.remove_slice(obj)
        members = BitMap(
            self._number((each.cluster, each.sync_target)) for each in destinations_in(obj)
        )
        for number in members:
            self._named[number] = self._named.get(number, 0) + 1
        placement = (cluster, placement_of_slice(obj))
        self._slices.setdefault(placement, {})[name] = members
        self._owner_of_slice[(cluster, name)] = placement
        self.version += 1
        self.decided[placement] = self.version

    def remove_slice(self, obj: Mapping[str, Any]) -> None:
        """Take that a page of destinations is gone."""
        cluster, name = row_key(obj)
        placement = self._owner_of_slice.pop((cluster, name), None)
        if placement is None:
            return
        for number in self._slices[placement].pop(name):
            self._named[number] -= 1
            if not self._named[number]:
                del self._named[number]
                self._release(number)
        self.version += 1
        self.decided[placement] = self.version
        if not self._slices[placement]:
            del self._slices[placement], self.decided[placement]

    # -- numbers and sets --------------------------------------------------------------------

    def _number(self, key: EdgeKey) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._free.pop() if self._free else len(self._numbers)
            self._numbers[key], self._keys[number] = number, key
            self._ranks = None
            if number >= len(self.states):
                grown = np.zeros(2 * len(self.states), np.uint8)
                grown[: len(self.states)] = self.states
                self.states = grown
        return number

    def _release(self, number: int) -> None:
        """Give a number back that is no edge's and that no slice names."""
        if number in self._edges or number in self._named:
            return
        del self._numbers[self._keys.pop(number)]
        self._free.append(number)

    def _move(self, number: int, old: Edge | None, new: Edge | None) -> None:
        """Take *number* out of the sets of *old* and into those of *new*."""
        if old is not None:
            self.by_state[old.state].discard(number)
            _leave(self.by_reason, old.reason, number)
        if new is not None:
            self.by_state[new.state].add(number)
            self.by_reason.setdefault(new.reason, BitMap()).add(number)
            self.states[number] = new.state
        before = old.labels if old is not None else {}
        after = new.labels if new is not None else {}
        if before != after:
            self._relabelled(number, before, after)

    def _relabelled(self, number: int, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Move *number* between the sets of labels that differ; an empty set does not stay.

        Filters and the keys that a page offers are read off these sets, so a value that nobody has
        any more must not be among them.
        """
        self.membership += 1
        for key, value in before.items():
            if after.get(key) != value:
                _leave(self.by_label[key], value, number)
                if not self.by_label[key]:
                    del self.by_label[key]
        for key, value in after.items():
            if before.get(key) != value:
                self.by_label.setdefault(key, {}).setdefault(value, BitMap()).add(number)

    def _relabel(self, keys: Iterable[EdgeKey]) -> None:
        """Compute the labels of edges anew, each once, and note those that differ."""
        for key in set(keys):
            number = self._numbers.get(key)
            edge = None if number is None else self._edges.get(number)
            if number is None or edge is None:
                continue
            labels = self._labels(edge.cluster, edge.own)
            if labels != edge.labels:
                self.version += 1
                self._relabelled(number, edge.labels, labels)
                edge.labels = labels

    def _labels(self, cluster: ClusterName, own: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels of an edge: its own before those of Locations, by name."""
        inventory = self._inventory
        leading = [inventory.location_at(number) for number in inventory.having(cluster, own)]
        found: dict[str, str] = {}
        for location in sorted(leading, key=lambda each: each.ref, reverse=True):
            found.update(location.labels)
        found.update(own)
        return found


def _is_heartbeat(old: Edge, new: Edge) -> bool:
    """Tell whether nothing differs but when the edge was heard of."""
    return replace(old, heard=None) == replace(new, heard=None)


def _leave(sets: dict[str, BitMap], name: str, number: int) -> None:
    members = sets[name]
    members.discard(number)
    if not members:
        del sets[name]
