"""The map of the product: every table of the edge chain, in the order in which they derive.

An EdgePlacement says what goes where. The edge scheduler turns *where* into destinations and writes
them as slices; the placement translator turns *what* into copies in the mailbox of each
destination; a syncer takes them to its edge and brings their state back; the summarizer tells the
owner what it all comes to. Each step is a table, derived from those above it by one pure function::

    watched    placements  locations  sync_targets  slices  sources  mailboxes  customizers
               copies  syncer_configs  leases  rollouts  revisions  contents
    derived    destination   placement × SyncTarget          where it goes
               selected      placement × item                what goes
               manifest      placement                       what goes, fixed as a revision
               route         mailbox × item                  selected ⋈ destination, never stored
               desired       mailbox × item                  what a copy is to be
               difference    mailbox × item                  desired against copies
               report        item × SyncTarget               how a copy fares
               tally         placement × item                what its reports come to
               standing      placement                       what becomes of it at its destinations

Between ``difference`` and ``report`` lies the edge. Its syncer keeps tables of its own, for its one
mailbox (``AT_EDGE``)::

    watched    recorded         item    what was placed and brought up, in the syncer's journal
    derived    wanted           item    a copy, as it is to be at the edge
               present          item    the edge's object, by the fields that are ours
               difference       item    wanted against present, in the light of recorded
               status_writeback item    marks and status that the copy does not show yet
               upsync           item    objects born at the edge against their reports

Each of these is a function of one item's rows and keeps nothing, so that it is its own twin.

A placement with a Rollout is sent by revision: ``manifest`` is cut and written, ``slices`` say
which destination has which, and ``desired`` follows what ``revisions`` and ``contents`` say instead
of ``selected`` and ``sources``. Placements without a Rollout have no part in these.

To follow an object, read the functions in this order. Each has a twin that computes the same from
nothing but the inputs; property tests compare the two after every change. ``manifest`` alone is
its own twin: it keeps nothing, and is computed anew from its inputs for every revision.

How to read a row of the map when something is not at an edge: ask each derived table, from the
top, for the key of that object and that destination. The first that has no row, or another than
expected, is where to look; ``skerry explain`` does just that, and prints the reason its function
gives. A row that is there and pending is no error: some input has not been read yet.

The names are texts, so that the map imports nothing; a test checks that they all exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["watched", "derived"]


@dataclass(frozen=True, slots=True)
class ChainTable:
    """One table: what its keys and rows are, who keeps it, and where it comes from.

    ``source`` is, for a watched table, the objects it is read from. ``derived_by`` and
    ``reference`` are ``package.module:function``: the derivation, and its twin from scratch.
    """

    name: str
    kind: Kind
    key: str
    row: str
    owner: str
    source: str = ""
    derived_by: str = ""
    reference: str = ""


def _watched(name: str, key: str, row: str, owner: str, source: str) -> ChainTable:
    return ChainTable(name, "watched", key, row, owner, source=source)


def _derived(
    name: str, key: str, row: str, owner: str, derived_by: str, reference: str
) -> ChainTable:
    return ChainTable(name, "derived", key, row, owner, derived_by=derived_by, reference=reference)


_SCHEDULER = "edge scheduler"
_TRANSLATOR = "placement translator"
_SUMMARIZER = "summarizer"
_SYNCER = "syncer"
_ALL = "edge scheduler, placement translator, summarizer"

CHAIN: Final[tuple[ChainTable, ...]] = (
    _watched("placements", "placement", "what and where", _ALL, "EdgePlacement"),
    _watched("locations", "Location", "labels, taints, instances", _SCHEDULER, "Location"),
    _watched("sync_targets", "SyncTarget", "UID, labels, available", _SCHEDULER, "SyncTarget"),
    _derived(
        "destination",
        "placement, SyncTarget",
        "Location, SyncTarget",
        _SCHEDULER,
        derived_by="skerry.logic.fleet.placement.destination:DestinationTable",
        reference="skerry.logic.fleet.placement.reference:destinations",
    ),
    _watched(
        "slices",
        "placement, SyncTarget",
        "Location, SyncTarget, slot, revision",
        "placement translator, summarizer",
        "SinglePlacementSlice",
    ),
    _watched(
        "sources",
        "object in a workspace",
        "labels, digest",
        "placement translator, summarizer",
        "every placeable kind",
    ),
    _watched("mailboxes", "mailbox", "cluster", _TRANSLATOR, "Workspace"),
    _watched("customizers", "Customizer", "replacements", _TRANSLATOR, "Customizer"),
    _watched("copies", "mailbox, item", "digest, marks", _TRANSLATOR, "every placeable kind"),
    _watched("syncer_configs", "mailbox", "spec", _TRANSLATOR, "SyncerConfig"),
    _derived(
        "selected",
        "placement, item",
        "why",
        _TRANSLATOR,
        derived_by="skerry.logic.fleet.translation.selected:derive_selected",
        reference="skerry.logic.fleet.translation.selected:reference",
    ),
    _watched("rollouts", "placement", "when to cut", _TRANSLATOR, "Rollout"),
    _derived(
        "manifest",
        "placement",
        "digest of every item and input",
        _TRANSLATOR,
        derived_by="skerry.logic.fleet.translation.manifest:live_state",
        reference="skerry.logic.fleet.translation.manifest:live_state",
    ),
    _watched("revisions", "placement, number", "manifest", _TRANSLATOR, "PlacementRevision"),
    _watched("contents", "workspace, digest", "object", _TRANSLATOR, "RevisionContent"),
    _derived(
        "route",
        "mailbox, item",
        "placements, Locations, source",
        _TRANSLATOR,
        derived_by="skerry.logic.fleet.translation.route:Route",
        reference="skerry.logic.fleet.translation.reference:reference",
    ),
    _derived(
        "desired",
        "mailbox, item",
        "digest, object",
        _TRANSLATOR,
        derived_by="skerry.logic.fleet.translation.desired:Desired",
        reference="skerry.logic.fleet.translation.reference:reference",
    ),
    _derived(
        "difference",
        "mailbox, item",
        "create, update, delete, none or pending",
        _TRANSLATOR,
        derived_by="skerry.logic.fleet.translation.difference:Difference",
        reference="skerry.logic.fleet.translation.reference:reference",
    ),
    _watched("leases", "SyncTarget", "live or lapsed", _SUMMARIZER, "Lease of a mailbox"),
    _derived(
        "report",
        "item, SyncTarget",
        "delivered, health, numbers, conditions",
        _SUMMARIZER,
        derived_by="skerry.logic.fleet.summary.report:report_of",
        reference="skerry.logic.fleet.summary.report:reference",
    ),
    _derived(
        "tally",
        "placement, item",
        "counts, extremes, worst destinations",
        _SUMMARIZER,
        derived_by="skerry.logic.fleet.summary.tally:tally",
        reference="skerry.logic.fleet.summary.tally:reference",
    ),
    _derived(
        "standing",
        "placement",
        "destinations delivered, healthy, unhealthy, unknown",
        _SUMMARIZER,
        derived_by="skerry.logic.fleet.summary.standing:Standings",
        reference="skerry.logic.fleet.summary.standing:reference",
    ),
)


def _at_edge(name: str, row: str) -> ChainTable:
    function = f"skerry.logic.fleet.syncing.{name}:{name}"
    return _derived(name, "item", row, _SYNCER, derived_by=function, reference=function)


AT_EDGE: Final[tuple[ChainTable, ...]] = (
    _at_edge("wanted", "content, options, revision"),
    _at_edge("present", "UID, status, digest of our fields"),
    _watched("recorded", "item", "wish, UID, digests", _SYNCER, "the syncer's journal"),
    _at_edge("difference", "record, apply, delete or nothing; the outcome"),
    _at_edge("status_writeback", "marks, status"),
    _at_edge("upsync", "apply, patch, delete or nothing"),
)
