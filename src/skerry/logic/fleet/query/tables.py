"""The tables that queries are folded from, and the folds that follow them.

::

    selected (placement × item) ─┐
    upsyncs (placement) ─────────┼─ rows (item × edge) ── fold, one for each query
    destinations ────────────────┤
    copies (item × edge) ────────┤
    locations, targets, leases ──┘

A row is never stored. Each write says which rows it touches; of those, each query that may have
them takes the old out, the write is made, and it takes the new in. So the cost of a write is that
of the rows it touches, in the queries about their kind, and memory holds of each row what is kept
of its copy and what its groups need.

An item is called without its cluster, as its copies are. A query in a workload's workspace has the
rows that its own placements lead to; one in the provider workspace has all.

What happens when the Lease of one edge lapses:

    put_lease(uid, lapsed)     the rows at that edge, of the queries that read ``report``
    fold.remove(row)           each of them as it was, with the Lease that lives
    the write                  one entry of a dict
    fold.add(row)              each as it is now: its report says that nobody knows

All of it stands on one rule: a write names every row that it may change, as it was before or as it
is after. A row too many is taken out and in again and costs an evaluation. A row too few stays in
the fold as it was, and what is later taken out is not what was put in.

Inputs may come in any order: a copy that no placement leads to is kept, and is no row yet. Nothing
is durable; after a restart a query is started when everything that it asks about has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from skerry.api.kinds import GroupResource
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.query.answer import Answer, Lines, answer
from skerry.logic.fleet.query.expressions import OF_ROW
from skerry.logic.fleet.query.fold import QueryFold
from skerry.logic.fleet.query.plan import COPIES, DESTINATIONS, UPSYNCED, QueryPlan
from skerry.logic.fleet.query.rows import (
    EDGE,
    UNKNOWN_TARGET,
    Copy,
    Evaluation,
    Ident,
    Labels,
    Row,
    Target,
    own_copy,
)
from skerry.logic.fleet.summary.freshness import Lease
from skerry.logic.machinery.edges.scope import UpsyncRule

K = TypeVar("K")
V = TypeVar("V")

# Upper bounds of what ``bench query`` measures: of what is kept of a copy and of each part of it,
# of a row in an order, and of a value that no other row has.
ROW_BYTES: Final = 80
PART_BYTES: Final = 24
ORDERED_BYTES: Final = 180
_COLUMN_BYTES: Final = {"Min": 60, "Max": 60, "Percentile": 60, "Top": ORDERED_BYTES}

# The item of a row of Destinations.
NO_ITEM: Final = ObjectRef("", "", "", "", "")
_NO_COPIES: Mapping[str, Copy] = {}
_NO_LABELS: Labels = {}
_NOWHERE: Mapping[str, Destination] = {}
_NOT_NOTED: Mapping[ObjectRef, int] = {}

LocationKey = tuple[ClusterName, str]
"""A Location: its cluster and name."""


class Asked(NamedTuple):
    """A row that a query may have."""

    item: ObjectRef
    uid: str


@dataclass(slots=True, eq=False)
class Live:
    """A query that is kept up. ``cluster`` is whose rows it has; empty: everybody's.

    ``reads`` are the variables of a row that it depends on; a change of others does not concern it.
    """

    ref: ObjectRef
    cluster: ClusterName
    plan: QueryPlan
    fold: QueryFold
    reads: frozenset[str]
    lines: Lines = field(default_factory=Lines)

    def takes(self, placement: ObjectRef) -> bool:
        """Tell whether what a placement leads to is asked about."""
        names = self.plan.source.placements
        return (not self.cluster or placement.cluster == self.cluster) and (
            names is None or placement.name in names
        )


class QueryTables:
    """See the module's text. *changed* gets each query whose answer may differ."""

    def __init__(self, changed: Callable[[ObjectRef], None]) -> None:
        self._changed = changed
        self._queries: dict[ObjectRef, Live] = {}
        # By whose rows they have, so that a change meets only those it may concern.
        self._by_cluster: dict[ClusterName, list[Live]] = {}
        # Placements by the item they select, and items by placement: one relation, both ways.
        self._selecting: dict[ObjectRef, set[ObjectRef]] = {}
        self._selected: dict[ObjectRef, set[ObjectRef]] = {}
        self._upsyncs: dict[ObjectRef, tuple[UpsyncRule, ...]] = {}
        self._destinations: dict[ObjectRef, dict[str, Destination]] = {}
        # SyncTarget UIDs that placements reach by a Location, and by how many.
        self._reached: dict[LocationKey, dict[str, int]] = {}
        # By item, then by the SyncTarget's UID. What came up is kept apart from what was placed.
        self._copies: dict[ObjectRef, dict[str, Copy]] = {}
        self._upsynced: dict[ObjectRef, dict[str, Copy]] = {}
        self._locations: dict[LocationKey, Labels] = {}
        self._targets: dict[str, Target] = {}
        self._leases: dict[str, Lease] = {}
        self._noted: dict[str, Mapping[ObjectRef, int]] = {}

    def __bool__(self) -> bool:
        """Tell whether anything is held."""
        return any(bool(getattr(self, name)) for name in vars(self) if name != "_changed")

    # -- queries -----------------------------------------------------------------------------

    def __contains__(self, ref: ObjectRef) -> bool:
        return ref in self._queries

    def start(
        self, ref: ObjectRef, cluster: ClusterName, plan: QueryPlan, evaluator: Evaluation
    ) -> None:
        """Keep a query up from now on; *evaluator* knows where in copies its parts are.

        All of its rows are evaluated here and now.
        """
        reads = frozenset(name for name in OF_ROW if plan.reads(name))
        live = Live(ref, cluster, plan, QueryFold(plan, evaluator), reads)
        for asked in self._all(live):
            self._add(live, asked)
        self._queries[ref] = live
        self._by_cluster.setdefault(cluster, []).append(live)

    def stop(self, ref: ObjectRef) -> None:
        """Keep a query up no longer."""
        live = self._queries.pop(ref, None)
        if live is None:
            return
        held = self._by_cluster[live.cluster]
        held.remove(live)
        if not held:
            del self._by_cluster[live.cluster]

    def answer(self, ref: ObjectRef, cutoff: str) -> Answer:
        """Return the answer to a query that is kept up; see ``answer``."""
        live = self._queries[ref]
        return answer(live.fold, live.lines, lambda ident: self._found(live, ident), cutoff)

    def first_report_from(self, ref: ObjectRef, time: str) -> str:
        """Return the time of the oldest report of a query that is not older than *time*."""
        return self._queries[ref].fold.ages.first_from(time)

    def memory_of(self, ref: ObjectRef) -> int:
        """Return about how many bytes a query that is kept up holds.

        What several queries need of a copy is kept once and counted for each of them, so the sum
        over queries is more than is held.
        """
        live = self._queries[ref]
        plan = live.plan
        each = ROW_BYTES + PART_BYTES * len(plan.parts()) + ORDERED_BYTES * bool(plan.select)
        each += sum(_COLUMN_BYTES.get(column.function, 0) for column in plan.aggregates)
        return each * sum(live.fold.counts.values())

    def rows(self, ref: ObjectRef) -> list[Row]:
        """Return every row of a query; for those who compute it from scratch."""
        live = self._queries[ref]
        return [row for asked in self._all(live) if (row := self._row(live, asked)) is not None]

    def fold(self, ref: ObjectRef) -> QueryFold:
        """Return what a query is folded to; for those who look inside."""
        return self._queries[ref].fold

    # -- inputs ------------------------------------------------------------------------------

    def put_copy(self, item: ObjectRef, uid: str, copy: Copy | None) -> None:
        """Take what is kept of a copy of a placed object; None: there is none."""
        self._put_object(self._copies, COPIES, item, uid, copy)

    def put_upsynced(self, item: ObjectRef, uid: str, copy: Copy | None) -> None:
        """Take what is kept of an object that came up from an edge; None: there is none."""
        self._put_object(self._upsynced, UPSYNCED, item, uid, copy)

    def forget_kind(self, kind: GroupResource) -> None:
        """Keep nothing of the objects of a kind that no query is about any more.

        No row is taken out for it, so no query that is kept up may have rows of the kind.
        """
        for held in (self._copies, self._upsynced):
            for item in [item for item in held if item.group_resource == kind]:
                del held[item]

    def put_selected(self, placement: ObjectRef, item: ObjectRef, *, selected: bool) -> None:
        """Take whether a placement selects an object."""
        if (item in self._selected.get(placement, ())) == selected:
            return
        uids = self._destinations.get(placement, _NOWHERE)
        touched = [
            (live, Asked(item, uid))
            for live in self._about(item, COPIES, {placement.cluster})
            if live.takes(placement)
            for uid in uids
        ]

        def write() -> None:
            _toggle(self._selected, placement, item, present=selected)
            _toggle(self._selecting, item, placement, present=selected)

        self._rewrite(touched, write)

    def put_upsync(self, placement: ObjectRef, rules: tuple[UpsyncRule, ...]) -> None:
        """Take which objects a placement wants from its edges."""
        if self._upsyncs.get(placement, ()) == rules:
            return
        touched = [
            (live, Asked(item, uid))
            for live in self._within({placement.cluster})
            if live.plan.source.rows == UPSYNCED and live.takes(placement)
            for uid in self._destinations.get(placement, _NOWHERE)
            for item in self._came_up(live, uid)
        ]

        def write() -> None:
            if rules:
                self._upsyncs[placement] = rules
            else:
                self._upsyncs.pop(placement, None)

        self._rewrite(touched, write)

    def put_destination(self, placement: ObjectRef, uid: str, new: Destination | None) -> None:
        """Take whether, and by which Location, a placement goes to an edge."""
        old = self._destinations.get(placement, _NOWHERE).get(uid)
        if old == new:
            return

        def write() -> None:
            self._reach(old, -1)
            if new is not None:
                self._destinations.setdefault(placement, {})[uid] = new
                self._reach(new, 1)
                return
            found = self._destinations[placement]
            del found[uid]
            if not found:
                del self._destinations[placement]

        self._rewrite(list(self._at(uid, placement)), write)

    def put_location(self, place: LocationKey, labels: Labels | None) -> None:
        """Take the labels of a Location; None: it is gone."""
        touched = [
            (live, asked)
            for uid in self._reached.get(place, ())
            for live, asked in self._at(uid)
            if "location" in live.reads
        ]
        self._rewrite(touched, lambda: _put(self._locations, place, labels))

    def put_target(self, uid: str, target: Target | None) -> None:
        """Take what is known of a SyncTarget; None: it is gone."""
        touched = [each for each in self._at(uid) if "syncTarget" in each[0].reads]
        self._rewrite(touched, lambda: _put(self._targets, uid, target))

    def put_lease(self, uid: str, lease: Lease | None) -> None:
        """Take whether an edge was heard of; None: it has no Lease."""
        touched = [each for each in self._at(uid) if "report" in each[0].reads]
        self._rewrite(touched, lambda: _put(self._leases, uid, lease))

    def put_noted(self, uid: str, noted: Mapping[ObjectRef, int] | None) -> None:
        """Take at which revisions of placements a mailbox is settled; None: of none."""
        before, after = self._noted.get(uid, _NOT_NOTED), noted or _NOT_NOTED
        changed = {
            each for each in before.keys() | after.keys() if before.get(each) != after.get(each)
        }
        touched = {
            (live.ref, asked): (live, asked)
            for placement in sorted(changed)
            for live, asked in self._at(uid, placement)
            if "report" in live.reads
        }
        self._rewrite(list(touched.values()), lambda: _put(self._noted, uid, noted or None))

    # -- which rows there are ----------------------------------------------------------------

    def _within(self, clusters: set[ClusterName]) -> Iterator[Live]:
        """Yield the queries that have rows of these clusters, and those that have all."""
        for cluster in sorted({"", *clusters}):
            yield from self._by_cluster.get(cluster, ())

    def _about(self, item: ObjectRef, rows: str, clusters: set[ClusterName]) -> Iterator[Live]:
        """Yield those of them that ask about an object."""
        for live in self._within(clusters):
            source = live.plan.source
            if source.rows == rows and source.takes(item):
                yield live

    def _all(self, live: Live) -> Iterable[Asked]:
        """Return every row a query may have, without repeats: two placements may lead to one."""
        found = {}
        for placement, edges in self._destinations.items():
            if live.takes(placement):
                for uid in edges:
                    found.update(dict.fromkeys(self._by(live, placement, uid)))
        return found

    def _at(self, uid: str, only: ObjectRef | None = None) -> Iterator[tuple[Live, Asked]]:
        """Yield the rows at an edge, without repeats; *only*: those a placement may lead to.

        With *only* the placement need not go there yet: whoever adds the destination asks for the
        rows that there will be.
        """
        going = (
            [only] if only is not None else [p for p, e in self._destinations.items() if uid in e]
        )
        for live in self._within({placement.cluster for placement in going}):
            found: dict[Asked, None] = {}
            for placement in going:
                if live.takes(placement):
                    found.update(dict.fromkeys(self._by(live, placement, uid)))
            yield from ((live, asked) for asked in found)

    def _by(self, live: Live, placement: ObjectRef, uid: str) -> Iterator[Asked]:
        """Yield the rows of a query that a placement leads to at an edge, if it goes there."""
        source = live.plan.source
        if source.rows == DESTINATIONS:
            yield Asked(NO_ITEM, uid)
        elif source.rows == UPSYNCED:
            yield from (Asked(item, uid) for item in self._came_up(live, uid))
        else:
            selected = self._selected.get(placement, ())
            yield from (Asked(item, uid) for item in selected if source.takes(item))

    def _came_up(self, live: Live, uid: str) -> list[ObjectRef]:
        takes = live.plan.source.takes
        return [item for item, found in self._upsynced.items() if uid in found and takes(item)]

    def _leading(self, live: Live, asked: Asked) -> ObjectRef | None:
        """Return the first placement by name that leads to a row; None: there is no such row.

        However many lead there it is one row, and which placement it shows must not depend on which
        of them came first.
        """
        item, uid = asked
        rows = live.plan.source.rows
        going: Collection[ObjectRef]
        if rows == COPIES:
            going = self._selecting.get(item, ())
            if len(going) == 1:
                # Nearly always, and this is asked for every row.
                (only,) = going
                there = uid in self._destinations.get(only, _NOWHERE)
                return only if there and live.takes(only) else None
        elif rows == UPSYNCED:
            going = [p for p, rules in self._upsyncs.items() if any(r.covers(item) for r in rules)]
        else:
            going = self._destinations
        found = [
            placement
            for placement in going
            if uid in self._destinations.get(placement, _NOWHERE) and live.takes(placement)
        ]
        return min(found, key=lambda each: (each.name, each.cluster)) if found else None

    def _row(self, live: Live, asked: Asked) -> Row | None:
        """Return a row as it is now.

        A placed object without a copy is a row all the same, of an edge that has it not yet. What
        nobody has brought up is none: nothing says that it should exist.
        """
        placement = self._leading(live, asked)
        if placement is None:
            return None
        item, uid = asked
        rows = live.plan.source.rows
        copy: Copy | None
        if rows == COPIES:
            copy = own_copy(self._copies.get(item, _NO_COPIES).get(uid), live.cluster)
        elif rows == UPSYNCED:
            copy = self._upsynced.get(item, _NO_COPIES).get(uid)
            if copy is None:
                return None
        else:
            copy = EDGE
        destination = self._destinations[placement][uid]
        return Row(
            Ident(destination.location, item, uid),
            destination,
            placement.name,
            copy,
            self._locations.get(destination[:2], _NO_LABELS),
            self._targets.get(uid, UNKNOWN_TARGET),
            self._leases.get(uid),
            self._noted.get(uid, _NOT_NOTED).get(placement, 0),
        )

    def _found(self, live: Live, ident: Ident) -> Row | None:
        return self._row(live, Asked(ident.item, ident.uid))

    # -- how rows follow ---------------------------------------------------------------------

    def _put_object(
        self,
        held: dict[ObjectRef, dict[str, Copy]],
        rows: str,
        item: ObjectRef,
        uid: str,
        copy: Copy | None,
    ) -> None:
        """Take an object; what is kept of it is compared, so other changes of it cost nothing."""
        if held.get(item, _NO_COPIES).get(uid) == copy:
            return
        asked = Asked(item, uid)
        leading = self._selecting.get(item, ()) if rows == COPIES else self._upsyncs
        clusters = {placement.cluster for placement in leading}
        touched = [(live, asked) for live in self._about(item, rows, clusters)]

        def write() -> None:
            found = held.setdefault(item, {})
            if copy is not None:
                found[uid] = copy
                return
            found.pop(uid, None)
            if not found:
                del held[item]

        self._rewrite(touched, write)

    def _rewrite(self, touched: list[tuple[Live, Asked]], write: Callable[[], None]) -> None:
        """Take rows out as they are, write, and take them in as they are then."""
        for live, asked in touched:
            row = self._row(live, asked)
            if row is not None:
                live.fold.remove(row)
        write()
        for live, asked in touched:
            self._add(live, asked)
        for ref in sorted({live.ref for live, _ in touched}):
            self._changed(ref)

    def _add(self, live: Live, asked: Asked) -> None:
        row = self._row(live, asked)
        if row is not None:
            live.fold.add(row)

    def _reach(self, destination: Destination | None, change: int) -> None:
        if destination is None:
            return
        place = (destination.cluster, destination.location)
        found = self._reached.setdefault(place, {})
        left = found.get(destination.uid, 0) + change
        if left:
            found[destination.uid] = left
        else:
            del found[destination.uid]
        if not found:
            del self._reached[place]


def _toggle(
    relation: dict[ObjectRef, set[ObjectRef]], one: ObjectRef, other: ObjectRef, *, present: bool
) -> None:
    found = relation.setdefault(one, set())
    if present:
        found.add(other)
        return
    found.discard(other)
    if not found:
        del relation[one]


def _put(table: dict[K, V], key: K, row: V | None) -> None:
    if row is None:
        table.pop(key, None)
    else:
        table[key] = row
