"""One summary: as it is, and as the copies say it should be.

Both sides are asked before anything is compared, and so is whether they are known to the end. A
summary without a cause is to be deleted, which is only so when every kind has been read: the copy
that would be its cause may be of a kind that is still on its way. With a cause, that kind alone
must be known. What has to wait is parked at the scope it waits for, and comes back by itself.

A summary of a busy object is written at most as often as its pace allows; observing it is what the
pace counts from, so that the reports that come in while it waits are in it too.
"""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.events import Owner, SummaryInputs
from skerry.controllers.summarizer.names import Cause
from skerry.controllers.summarizer.watches import EVERY_KIND, KindWatches, Parked
from skerry.logic.fleet.summary.content import MAX_DETAILS, Subject
from skerry.logic.fleet.summary.standing import Standing
from skerry.logic.fleet.summary.tables import Source
from skerry.logic.fleet.summary.tally import Tally, Totals
from skerry.logic.fleet.tables.completeness import Scope
from skerry.runtime.index import Index, Key
from skerry.runtime.pace import Pace

SUMMARIES = "summaries"
PLACEMENTS = "placements"


@dataclass(frozen=True, slots=True)
class DesiredSummary:
    """What a summary should say, and on whose behalf."""

    placement: ObjectRef
    owner_uid: str
    subject: Subject
    totals: Totals


@dataclass(frozen=True, slots=True)
class Observed:
    """``desired`` None: the summary has no cause. ``existing`` None: it is not there.

    ``missing`` is a scope that has to be read before either means anything.
    """

    key: Key
    existing: Object | None
    desired: DesiredSummary | None
    missing: Scope | None = None


@dataclass(frozen=True, slots=True)
class ObservedPlacement:
    """A placement, and what becomes of it at its destinations."""

    ref: ObjectRef
    placement: Object
    standing: Standing
    missing: Scope | None = None


class SummaryObserver:
    """Reads one summary at a time."""

    def __init__(
        self,
        inputs: SummaryInputs,
        watches: KindWatches,
        summaries: Index,
        cluster_summaries: Index,
        pace: Pace[Key],
    ) -> None:
        self._inputs = inputs
        self._watches = watches
        self._summaries = summaries
        self._cluster_summaries = cluster_summaries
        self._pace = pace

    async def observe(self, key: Key) -> Observed | None:
        """Return what is to be compared; None when there is nothing to compare."""
        cause = self._inputs.names.cause(key)
        held = self._summaries if key.namespace else self._cluster_summaries
        existing = held.get(key)
        # That there is a cause says the kind; that there is none says so of everything.
        kind = EVERY_KIND if cause is None else cause.item.group_resource
        missing = self._watches.missing(key.cluster, kind)
        if missing is not None:
            self._watches.park(Parked(SUMMARIES, key), missing)
            return Observed(key, existing, None, missing=missing)
        self._pace.observing(key)
        found = None if cause is None else self._found(cause)
        if cause is None or found is None:
            return None if existing is None else Observed(key, existing, None)
        owner, tally, source = found
        desired = DesiredSummary(
            cause.placement, owner.uid, _subject(cause.item, source), tally.totals(MAX_DETAILS)
        )
        return Observed(key, existing, desired)

    def _found(self, cause: Cause) -> tuple[Owner, Tally, Source] | None:
        placement, item = cause
        owner = self._inputs.owners.get(placement)
        tally = self._inputs.tables.tally(placement, item)
        source = self._inputs.tables.sources.get(item.at(placement.cluster))
        if owner is None or tally is None or source is None:
            return None
        return owner, tally, source


class PlacementObserver:
    """Reads the standing of one placement at a time."""

    def __init__(
        self,
        inputs: SummaryInputs,
        watches: KindWatches,
        placements: Index,
        pace: Pace[ObjectRef],
    ) -> None:
        self._inputs = inputs
        self._watches = watches
        self._placements = placements
        self._pace = pace

    async def observe(self, ref: ObjectRef) -> ObservedPlacement | None:
        """Return a placement and its standing; None when there is neither."""
        missing = self._watches.missing(ref.cluster)
        if missing is not None:
            self._watches.park(Parked(PLACEMENTS, ref), missing)
        else:
            self._pace.observing(ref)
        placement = self._placements.get(Key(ref.cluster, "", ref.name))
        standing = self._inputs.tables.standing(ref)
        if placement is None or standing is None:
            return None
        return ObservedPlacement(ref, placement, standing, missing)


def _subject(item: ObjectRef, source: Source) -> Subject:
    return Subject(
        item.group, source.version, item.resource, source.kind, item.namespace, item.name
    )
