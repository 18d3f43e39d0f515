"""The status of a source object, where a placement asks for one.

It is asked about per object, not per placement: several placements may send one object, and what
they ask for has to come to one status. Where any of them asks for ``Aggregate`` that is made of all
destinations of those that do; else ``Singleton`` returns what the only destination reports, if the
placements that ask for it have only one between them. When nobody asks any more the last status
stays.

A Deployment with an aggregated status has a ReplicaSet that says the same, for tools that look
there (``reported_replicas``), where the workspace has the kind.

Edges are untrusted, and so is the status that comes of what they report: a workspace may refuse it.
That is said in an Event on the object, once, and holds up nothing else.

The object is read from the server before it is written: what is kept of a source in memory is its
labels and a digest of its status, and an Update needs all of it. So a source costs a read for each
observation with aggregation, and for a single destination only when the digests differ. A change
in between is a Conflict, and the next try reads again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from skerry.api.edge import AGGREGATE, SINGLETON, ReportedState
from skerry.api.errors import NotFound
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.watches import KindWatches, Parked
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.summary.aggregate import aggregated
from skerry.logic.fleet.summary.gathered import Gathered, gathered, united
from skerry.logic.fleet.summary.report import digest_of
from skerry.logic.fleet.summary.reported_replicas import (
    REPLICA_SETS,
    replica_set_name,
    replica_set_plan,
)
from skerry.logic.fleet.summary.returned import returnable
from skerry.logic.fleet.summary.selection import comes_back
from skerry.logic.fleet.summary.tables import Source
from skerry.logic.fleet.summary.tally import Tally
from skerry.logic.machinery.plan import NOTHING, Action, Announcement, Plan, Target, Update
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.pace import Pace

SOURCES = "sources"
REFUSED = "StatusRefused"
# Beyond this many remembered answers they are forgotten, and asked for once more.
_REMEMBERED = 10_000
_DEPLOYMENTS = GroupResource("apps", "deployments")


@dataclass(frozen=True, slots=True)
class ObservedSource:
    """A source as it is, and what its status is to be made of: a copy's, or what all come to."""

    ref: ObjectRef
    gvr: GroupVersionResource
    kind: str
    source: Object
    returned: Object | None = None
    gathered: Gathered | None = None
    # What reports on a Deployment beside its status, empty before there is one; None: not wanted.
    replica_set: Object | None = None


class SourceObserver:
    """Reads one source at a time."""

    def __init__(
        self, inputs: SummaryInputs, watches: KindWatches, client: Client, pace: Pace[ObjectRef]
    ) -> None:
        self._inputs = inputs
        self._watches = watches
        self._client = client
        self._pace = pace

    async def observe(self, ref: ObjectRef) -> ObservedSource | None:
        """Return a source and what its status is to be; None where nobody asks for one."""
        missing = self._watches.missing(ref.cluster, ref.group_resource)
        if missing is not None:
            self._watches.park(Parked(SOURCES, ref), missing)
            return None
        self._pace.observing(ref)
        source = self._inputs.tables.sources.get(ref)
        if source is None or not comes_back(ref.group_resource):
            return None
        gvr = GroupVersionResource(ref.group, source.version, ref.resource)
        aggregating = list(self._tallies(ref, AGGREGATE))
        if aggregating:
            live = await self._read(ref.cluster, gvr, ref)
            if live is None:
                return None
            found = gathered(united(aggregating), ref.cluster)
            beside = await self._replica_set(ref)
            return ObservedSource(ref, gvr, source.kind, live, gathered=found, replica_set=beside)
        return await self._singleton(ref, gvr, source)

    def _tallies(self, ref: ObjectRef, asked: ReportedState) -> Iterator[Tally]:
        """Yield what the placements come to that send an object and ask for *asked*."""
        for placement in self._inputs.asking(ref.cluster, asked):
            tally = self._inputs.tables.tally(placement, ref.at(""))
            if tally is not None:
                yield tally

    async def _singleton(
        self, ref: ObjectRef, gvr: GroupVersionResource, source: Source
    ) -> ObservedSource | None:
        """Return the status to return; None where none is asked for or it is there already."""
        tallies = list(self._tallies(ref, SINGLETON))
        only = united(tallies).only() if tallies else None
        if only is None or only.report.digest in ("", source.digest):
            return None
        copy = await self._read(self._inputs.mailbox_cluster(only.destination.uid), gvr, ref)
        live = await self._read(ref.cluster, gvr, ref)
        status = returnable(copy, ref.cluster)
        if status is None or live is None:
            return None
        return ObservedSource(ref, gvr, source.kind, live, returned=status)

    async def _replica_set(self, ref: ObjectRef) -> Object | None:
        """Return the ReplicaSet that reports on a Deployment; None where there can be none."""
        if ref.group_resource != _DEPLOYMENTS:
            return None
        name = replica_set_name(ref.name)
        try:
            return await self._client.for_cluster(ref.cluster).get(
                REPLICA_SETS, name, ref.namespace
            )
        except NotFound as error:
            # Without a name it is the kind that the workspace does not have.
            return {} if error.details.get("name") == name else None

    async def _read(
        self, cluster: ClusterName, gvr: GroupVersionResource, item: ObjectRef
    ) -> Object | None:
        if not cluster:
            return None
        try:
            return await self._client.for_cluster(cluster).get(gvr, item.name, item.namespace)
        except NotFound:
            return None


def decide_source(observed: ObservedSource, now: datetime) -> Plan:
    """Give the source the status it is to have, unless it has that."""
    source, gvr = observed.source, observed.gvr
    status, reason = observed.returned, "SingletonReported"
    if observed.gathered is not None:
        status = aggregated(gvr.group, observed.kind, source, observed.gathered, rfc3339(now))
        reason = "DestinationsReported"
    if status is None:
        return NOTHING
    ref = observed.ref
    beside = NOTHING
    if observed.replica_set is not None:
        beside = replica_set_plan(ref.cluster, source, status, observed.replica_set)
    if digest_of(source.get("status")) == digest_of(status):
        return beside
    target = Target(gvr, ref.name, ref.namespace, ref.cluster)
    obj = {**source, "status": status}
    update = Update(target, obj, reason, subresource="status", refusal_is_fine=True)
    return replace(beside, actions=[update, *beside])


class SourceExecutor(Executor):
    """Writes a status once: what a server refused, or did not keep, is not sent again.

    Not until the object or what is reported of it has changed, that is.
    """

    def __init__(self, hub: ControllerContext, writer: Client, controller: str) -> None:
        super().__init__(writer, controller, metrics=hub.metrics, dry_run=hub.dry_run)
        self._recorder = hub.recorder
        self._answered: dict[Target, tuple[object, str]] = {}

    async def execute(self, plan: Plan) -> list[Outcome]:
        """Carry out what has not been tried in vain."""
        fresh = [each for each in plan if not self._was_tried(each)]
        outcomes = await super().execute(Plan(fresh))
        for action, outcome in zip(fresh, outcomes, strict=True):
            if not isinstance(action, Update):
                continue
            if outcome.result in ("refused", "unchanged"):
                self._remember(action)
            refused = outcome.result == "refused" and action.subresource == "status"
            if refused and self._recorder is not None:
                message = "the status that its destinations report is not accepted for this object"
                self._recorder.announce(Announcement(action.object, "Warning", REFUSED, message))
        return outcomes

    def _was_tried(self, action: Action) -> bool:
        return isinstance(action, Update) and self._answered.get(action.target) == _tried(action)

    def _remember(self, update: Update) -> None:
        if len(self._answered) >= _REMEMBERED:
            self._answered.clear()
        self._answered[update.target] = _tried(update)


def _tried(update: Update) -> tuple[object, str]:
    """Return what tells one attempt from another: on which version, and what."""
    obj = update.object
    written = obj[update.subresource or "spec"]
    return obj["metadata"].get("resourceVersion"), digest_of(written)
