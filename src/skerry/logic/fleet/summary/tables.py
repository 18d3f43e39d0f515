"""The tables of the summarizer: from what is watched to the tallies.

::

    placements ─┐
    sources ────┼─ selected ─┐
    namespaces ─┘            ├─ route ─┐
    destinations ────────────┘         ├─ tally ── standing
    reports ───────────────────────────┤
    leases ────────────────────────────┘

A placement selects objects of its own workspace; each of those goes to each of its destinations.
That product is never stored. A report touches the placements that both select its object and go to
its mailbox, and nothing else; a Lease that lapses touches those that go to its mailbox.

Items are called without their cluster, because the copies of an object are: two workspaces that
place an object of one name at one edge share the copy there, and so its report, unless what they
place differs. Then the copy is of one of them and names the others, for whom it reports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.refs import ClusterName, ObjectRef, namespace_ref
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.summary.freshness import Lease
from skerry.logic.fleet.summary.report import Report
from skerry.logic.fleet.summary.standing import Hold, Standing, Standings
from skerry.logic.fleet.summary.tally import Tally, tally
from skerry.logic.fleet.tables.flow import Dataflow, Settled
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table

Labels = Mapping[str, str]
Selects = Callable[[ObjectRef, Labels, Labels], bool]
"""Tells whether an item with labels, in a namespace with labels, is placed."""

_NO_LABELS: Labels = {}


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


class Candidate(NamedTuple):
    """What decides whether an object is placed: its labels and those of its namespace."""

    labels: Labels
    within: Labels
    has_status: bool


class Touched(NamedTuple):
    """What a batch may have changed: summaries by placement and item, standings by placement."""

    summaries: list[tuple[ObjectRef, ObjectRef]]
    standings: list[ObjectRef]


class SummaryTables:
    """See the module's text. Inputs are written by whoever watches; ``settle`` does the rest.

    ``leases``, ``holds`` and ``noted`` are by SyncTarget UID; ``noted`` are the revisions at which
    the mailbox is settled, for placements with a Rollout. A Lease that lapsed is a change of a row,
    made by a timer outside; one that is merely renewed is none.
    """

    def __init__(self) -> None:
        flow = self.flow = Dataflow()
        self.placements: Table[ObjectRef, Selects] = flow.table("placements")
        self.sources: Table[ObjectRef, Source] = flow.table("sources")
        self.namespaces: Table[ObjectRef, Labels] = flow.table("namespaces")
        self.destinations: Relation[ObjectRef, str, Destination] = flow.relation("destinations")
        self.reports: Relation[ObjectRef, str, Report] = flow.relation("reports")
        self.leases: Table[str, Lease] = flow.table("leases")
        self.holds: Table[str, Hold] = flow.table("holds")
        self.noted: Table[str, Mapping[ObjectRef, int]] = flow.table("noted")
        candidates = flow.lookup(
            "candidates", self.sources, self.namespaces, _namespace, _candidate
        )
        self.selected: Relation[ObjectRef, ObjectRef, bool] = flow.join_as(
            "selected",
            self.placements,
            candidates,
            left_on=_cluster,
            right_on=_cluster,
            row=_selected,
            key=_item,
        )
        self.route = flow.product("route", self.selected, self.destinations)
        self.tallies, deviations = tally(flow, self.route, self.reports, self.leases)
        self._standings = Standings(
            flow,
            self.selected,
            self.destinations,
            self.tallies,
            deviations,
            self.leases,
            self.holds,
        )
        # The last batch, for those who derive something else from the same tables.
        self.settled: Settled = flow.settle()

    def set_destinations(self, placement: ObjectRef, found: Iterable[Destination]) -> None:
        """Take in where an EdgePlacement goes now.

        Two Locations may lead to one SyncTarget. Its edge is one destination nevertheless, or its
        replicas would be summed twice; the first Location in order stands for it.
        """
        rows: dict[str, Destination] = {}
        for destination in sorted(found):
            rows.setdefault(destination.uid, destination)
        self.destinations.replace(placement, rows)

    def drop_placement(self, placement: ObjectRef) -> None:
        """Forget an EdgePlacement and where it goes."""
        self.placements.drop(placement)
        self.destinations.replace(placement, {})

    def settle(self) -> Touched:
        """Let the tallies follow what was written; returns what that may have changed, in order."""
        settled = self.settled = self.flow.settle()
        summaries = settled.groups(self.tallies)
        sources = settled.changes(self.sources)
        if sources:
            summaries = sorted({*summaries, *self._about(change.key for change in sources)})
        return Touched(summaries, self._standings.touched(settled))

    def _about(self, sources: Iterable[ObjectRef]) -> Iterator[tuple[ObjectRef, ObjectRef]]:
        """Yield the summaries of these objects: a summary names their version and kind."""
        for ref in sources:
            item = ref.at("")
            for placement in self.selected.having(item):
                if placement.cluster == ref.cluster:
                    yield placement, item

    def tally(self, placement: ObjectRef, item: ObjectRef) -> Tally | None:
        """Return the reports of an object; None unless it is placed and its kind has a status."""
        found = self.tallies.get((placement, item))
        return found if isinstance(found, Tally) else None

    def standing(self, placement: ObjectRef) -> Standing | None:
        """Return what becomes of a placement; None when there is no such placement."""
        return self._standings.of(placement) if placement in self.placements else None


def _namespace(ref: ObjectRef, _: Source) -> ObjectRef | None:
    return namespace_ref(ref.namespace, ref.cluster) if ref.namespace else None


def _candidate(ref: ObjectRef, source: Source, within: Labels | None) -> Candidate | None:
    """Return what decides about an object; nothing in a namespace that is not known is placed."""
    if ref.namespace and within is None:
        return None
    return Candidate(source.labels, _NO_LABELS if within is None else within, source.has_status)


def _cluster(ref: ObjectRef, _: object) -> ClusterName:
    return ref.cluster


def _item(ref: ObjectRef) -> ObjectRef:
    return ref.at("")


def _selected(_: ObjectRef, selects: Selects, ref: ObjectRef, candidate: Candidate) -> bool | None:
    """Return whether the kind of a selected object has a status; None when it is not selected."""
    chosen = selects(ref.at(""), candidate.labels, candidate.within)
    return candidate.has_status if chosen else None


def reference(
    placements: Mapping[ObjectRef, Selects],
    sources: Mapping[ObjectRef, Source],
    namespaces: Mapping[ObjectRef, Labels],
) -> dict[tuple[ObjectRef, ObjectRef], bool]:
    """Compute from scratch what is selected; see ``tally.reference`` for the rest."""
    found = {}
    for placement, selects in placements.items():
        for ref, source in sources.items():
            within = namespaces.get(namespace_ref(ref.namespace, ref.cluster))
            there = not ref.namespace or within is not None
            if ref.cluster == placement.cluster and there:
                item = ref.at("")
                if selects(item, source.labels, (ref.namespace and within) or {}):
                    found[placement, item] = source.has_status
    return found
