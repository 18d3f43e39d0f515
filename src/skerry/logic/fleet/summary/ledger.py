"""Which copies make up which summary, kept up one change at a time.

The ledger is told of EdgePlacements, of the destinations they have, of the objects in their
workspaces and of the copies in mailboxes. From that it keeps, for each placement, the objects it
places, and for each of those whose kind has a status an accumulator over the destinations. For
kinds without status it only counts how many copies have been delivered.

A copy's change touches the placements that both place that object and go to that mailbox, and
nothing else. However it came about, the ledger equals what would be computed from scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.accumulator import Accumulator
from skerry.logic.fleet.summary.report import ABSENT, Report

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """An object in its owner's workspace, as far as placing and summarising it needs."""

    labels: Labels
    # Names of the type, as its workspace prefers them.
    version: str = ""
    kind: str = ""
    has_status: bool = True
    # Tells the status it has; only asked where a single destination's is returned.
    digest: str = ""


Selects = Callable[[ObjectRef, Labels, Labels], bool]
"""Tells whether an item with labels, in a namespace with labels, is placed."""


class Change(NamedTuple):
    """A summary, or with a kind that has no status the delivery count, that may be different."""

    placement: ObjectRef
    item: ObjectRef


@dataclass(slots=True)
class _Placement:
    selects: Selects
    destinations: dict[str, Destination] = field(default_factory=dict)
    tallies: dict[ObjectRef, Accumulator] = field(default_factory=dict)
    # Items without status that are placed.
    plain: set[ObjectRef] = field(default_factory=set)
    delivered: int = 0


@dataclass(slots=True)
class _Workspace:
    items: dict[ObjectRef, Source] = field(default_factory=dict)
    by_namespace: dict[str, set[ObjectRef]] = field(default_factory=dict)
    namespaces: dict[str, Labels] = field(default_factory=dict)
    placements: set[ObjectRef] = field(default_factory=set)


def _nothing(_: ObjectRef, __: Labels, ___: Labels) -> bool:
    return False


class Ledger:
    """See the module's text."""

    def __init__(self) -> None:
        self._workspaces: dict[str, _Workspace] = {}
        self._placements: dict[ObjectRef, _Placement] = {}
        self._copies: dict[ObjectRef, dict[str, Report]] = {}
        self._placing: dict[ObjectRef, set[ObjectRef]] = {}
        self._targeting: dict[str, set[ObjectRef]] = {}
        self._changes: dict[Change, None] = {}

    # -- what is asked -----------------------------------------------------------------------

    def changes(self) -> list[Change]:
        """Return what may be different since last asked, in a fixed order."""
        found, self._changes = sorted(self._changes), {}
        return found

    def tally(self, placement: ObjectRef, item: ObjectRef) -> Accumulator | None:
        """Return the reports of an object; None unless it is placed and its kind has a status."""
        known = self._placements.get(placement)
        return None if known is None else known.tallies.get(item)

    def tallies(self, placement: ObjectRef) -> Mapping[ObjectRef, Accumulator]:
        """Return every object with a summary."""
        known = self._placements.get(placement)
        return {} if known is None else known.tallies

    def delivered(self, placement: ObjectRef) -> int | None:
        """Return how many copies of kinds without status have been delivered."""
        known = self._placements.get(placement)
        return None if known is None else known.delivered

    def destinations(self, placement: ObjectRef) -> Mapping[str, Destination]:
        """Return where a placement goes, by SyncTarget UID."""
        known = self._placements.get(placement)
        return {} if known is None else known.destinations

    def source(self, cluster: str, item: ObjectRef) -> Source | None:
        workspace = self._workspaces.get(cluster)
        return None if workspace is None else workspace.items.get(item)

    def placing(self, cluster: str, item: ObjectRef) -> Iterator[ObjectRef]:
        """Yield the placements of a workspace that place *item*."""
        return (ref for ref in self._placing.get(item, ()) if ref.cluster == cluster)

    # -- what is told ------------------------------------------------------------------------

    def put_placement(self, ref: ObjectRef, selects: Selects) -> None:
        """Take in an EdgePlacement, or what it selects now."""
        known = self._placements.get(ref)
        if known is None:
            known = self._placements[ref] = _Placement(_nothing)
            self._workspace(ref.cluster).placements.add(ref)
        known.selects = selects
        self._select(ref, known, list(self._workspace(ref.cluster).items))

    def drop_placement(self, ref: ObjectRef) -> None:
        """Forget an EdgePlacement; its destinations too."""
        known = self._placements.get(ref)
        if known is None:
            return
        self.set_destinations(ref, ())
        for item in [*known.tallies, *known.plain]:
            self._unplace(ref, known, item)
        del self._placements[ref]
        self._workspaces[ref.cluster].placements.discard(ref)
        self._forget_if_empty(ref.cluster)

    def set_destinations(self, ref: ObjectRef, destinations: Iterable[Destination]) -> None:
        """Take in where an EdgePlacement goes now; it must be known.

        Two Locations may lead to one SyncTarget. Its edge is one destination nevertheless, or its
        replicas would be summed twice; the first Location in order stands for it.
        """
        known = self._placements.get(ref)
        if known is None:
            return
        wanted: dict[str, Destination] = {}
        for destination in sorted(destinations):
            wanted.setdefault(destination.uid, destination)
        for uid in [uid for uid in known.destinations if uid not in wanted]:
            self._leave(ref, known, uid)
        for uid, destination in wanted.items():
            if known.destinations.get(uid) != destination:
                self._reach(ref, known, destination)

    def put_source(self, cluster: str, item: ObjectRef, source: Source) -> None:
        """Take in an object of a workspace, or how it is now."""
        workspace = self._workspace(cluster)
        old = workspace.items.get(item)
        workspace.items[item] = source
        workspace.by_namespace.setdefault(item.namespace, set()).add(item)
        for ref in workspace.placements:
            known = self._placements[ref]
            if old is not None and old.has_status != source.has_status:
                self._unplace(ref, known, item)
            self._select(ref, known, (item,))
            if old is not None and old != source and item in known.tallies:
                self._changes[Change(ref, item)] = None

    def drop_source(self, cluster: str, item: ObjectRef) -> None:
        """Forget an object of a workspace."""
        workspace = self._workspaces.get(cluster)
        if workspace is None or workspace.items.pop(item, None) is None:
            return
        neighbours = workspace.by_namespace[item.namespace]
        neighbours.discard(item)
        if not neighbours:
            del workspace.by_namespace[item.namespace]
        for ref in workspace.placements:
            self._unplace(ref, self._placements[ref], item)
        self._forget_if_empty(cluster)

    def put_namespace(self, cluster: str, name: str, labels: Labels) -> None:
        """Take in the labels of a namespace."""
        workspace = self._workspace(cluster)
        if workspace.namespaces.get(name) == labels:
            return
        workspace.namespaces[name] = labels
        self._select_namespace(workspace, name)

    def drop_namespace(self, cluster: str, name: str) -> None:
        """Forget a namespace; nothing in it is placed any more."""
        workspace = self._workspaces.get(cluster)
        if workspace is not None and workspace.namespaces.pop(name, None) is not None:
            self._select_namespace(workspace, name)
            self._forget_if_empty(cluster)

    def put_copy(self, uid: str, item: ObjectRef, report: Report) -> None:
        """Take in what the copy in the mailbox of SyncTarget *uid* tells."""
        old = self._copies.setdefault(item, {}).get(uid, ABSENT)
        self._copies[item][uid] = report
        if old != report:
            self._told(uid, item, old, report)

    def drop_copy(self, uid: str, item: ObjectRef) -> None:
        """Note that a mailbox has no copy any more."""
        copies = self._copies.get(item, {})
        old = copies.pop(uid, None)
        if old is None:
            return
        if not copies:
            del self._copies[item]
        self._told(uid, item, old, ABSENT)

    # -- how it is kept up -------------------------------------------------------------------

    def _told(self, uid: str, item: ObjectRef, old: Report, new: Report) -> None:
        """Pass a copy's change on to whom it concerns, looking through the fewer candidates."""
        placing, targeting = self._placing.get(item), self._targeting.get(uid)
        if not placing or not targeting:
            return
        few, many = sorted((placing, targeting), key=len)
        for ref in few:
            if ref not in many:
                continue
            known = self._placements[ref]
            if item in known.plain:
                known.delivered += new.delivered - old.delivered
            else:
                known.tallies[item].put(known.destinations[uid], new)
            self._changes[Change(ref, item)] = None

    def _select(self, ref: ObjectRef, known: _Placement, items: Iterable[ObjectRef]) -> None:
        """Place exactly those of *items* that are selected."""
        workspace = self._workspaces[ref.cluster]
        for item in items:
            source = workspace.items[item]
            within = workspace.namespaces.get(item.namespace)
            there = not item.namespace or within is not None
            placed = item in known.tallies or item in known.plain
            if there and known.selects(item, source.labels, within or {}):
                if not placed:
                    self._place(ref, known, item, source)
            elif placed:
                self._unplace(ref, known, item)

    def _select_namespace(self, workspace: _Workspace, name: str) -> None:
        items = list(workspace.by_namespace.get(name, ()))
        for ref in workspace.placements:
            self._select(ref, self._placements[ref], items)

    def _place(self, ref: ObjectRef, known: _Placement, item: ObjectRef, source: Source) -> None:
        self._placing.setdefault(item, set()).add(ref)
        if source.has_status:
            known.tallies[item] = Accumulator(
                (destination, self._report(item, uid))
                for uid, destination in known.destinations.items()
            )
        else:
            known.plain.add(item)
            known.delivered += self._delivered(item, known.destinations)
        self._changes[Change(ref, item)] = None

    def _unplace(self, ref: ObjectRef, known: _Placement, item: ObjectRef) -> None:
        if item in known.plain:
            known.plain.discard(item)
            known.delivered -= self._delivered(item, known.destinations)
        elif known.tallies.pop(item, None) is None:
            return
        placing = self._placing[item]
        placing.discard(ref)
        if not placing:
            del self._placing[item]
        self._changes[Change(ref, item)] = None

    def _reach(self, ref: ObjectRef, known: _Placement, destination: Destination) -> None:
        uid = destination.uid
        is_new = uid not in known.destinations
        known.destinations[uid] = destination
        self._targeting.setdefault(uid, set()).add(ref)
        for item, tally in known.tallies.items():
            tally.put(destination, self._report(item, uid))
            self._changes[Change(ref, item)] = None
        if is_new:
            self._count(ref, known, uid, 1)

    def _leave(self, ref: ObjectRef, known: _Placement, uid: str) -> None:
        del known.destinations[uid]
        targeting = self._targeting[uid]
        targeting.discard(ref)
        if not targeting:
            del self._targeting[uid]
        for item, tally in known.tallies.items():
            tally.remove(uid)
            self._changes[Change(ref, item)] = None
        self._count(ref, known, uid, -1)

    def _count(self, ref: ObjectRef, known: _Placement, uid: str, by: int) -> None:
        for item in known.plain:
            if self._report(item, uid).delivered:
                known.delivered += by
                self._changes[Change(ref, item)] = None

    def _report(self, item: ObjectRef, uid: str) -> Report:
        copies = self._copies.get(item)
        return ABSENT if copies is None else copies.get(uid, ABSENT)

    def _delivered(self, item: ObjectRef, uids: Iterable[str]) -> int:
        copies = self._copies.get(item, {})
        return sum(uid in copies and copies[uid].delivered for uid in uids)

    def _workspace(self, cluster: str) -> _Workspace:
        return self._workspaces.setdefault(cluster, _Workspace())

    def _forget_if_empty(self, cluster: str) -> None:
        workspace = self._workspaces[cluster]
        if not (workspace.items or workspace.namespaces or workspace.placements):
            del self._workspaces[cluster]
