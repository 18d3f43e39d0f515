"""Wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE,
    SINGLE_PLACEMENT_SLICES,
    SYNCER_CONFIGS,
)
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.summarizer.decide import decide
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.leases import Leases, Timer, lean_lease
from skerry.controllers.summarizer.observe import (
    SUMMARIES,
    Observed,
    ObservedPlacement,
    PlacementObserver,
    SummaryObserver,
)
from skerry.controllers.summarizer.pace import Pace
from skerry.controllers.summarizer.projections import (
    BY_PLACEMENT,
    by_placement,
    lean_config,
    lean_slice,
    lean_summary,
    lean_workspace,
)
from skerry.controllers.summarizer.sources import (
    SOURCES,
    ObservedSource,
    SourceExecutor,
    SourceObserver,
    decide_source,
)
from skerry.controllers.summarizer.status import decide_placement
from skerry.controllers.summarizer.watches import Cluster, KindWatches, Parked
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.logic.fleet.summary.content import CLUSTER_SCOPED, NAMESPACED
from skerry.logic.machinery.plan import NOTHING, Plan
from skerry.runtime.client import Client, Selection, cluster_of
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.workqueue import WorkQueue

NAME = "summarizer"
WORKERS = 8
# Discovery is a few requests; a restart with a thousand workspaces has a thousand of them.
_KIND_WORKERS = 8
# A status that others write, too, and that every report may change the counts of.
_PLACEMENT_SECONDS = 1.0
_HEARTBEATS = Selection(fields=f"metadata.name={HEARTBEAT_LEASE}")

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Views:
    """Where the summarizer looks.

    ``hub`` speaks to all logical clusters at once (its client's cluster is ``*``); ``edge`` is the
    view of the provider's export ``edge.kcp.io``; ``provider`` is the workspace whose children the
    mailboxes are. Whoever builds them runs their factories. ``writer`` writes into workspaces what
    edges report, and is somebody whom the policies of exporters bound: that an edge says so gives
    nobody a status that an exporter keeps to itself.
    """

    hub: ControllerContext
    edge: InformerFactory
    provider: InformerFactory
    writer: Client


class Summarizer:
    """Loops over the same tables: the kinds there are, summaries, sources, placements."""

    def __init__(self, views: Views, *, workers: int = WORKERS) -> None:
        hub, edge = views.hub, views.edge
        self._hub = hub
        clock = hub.client.clock
        self.queue: WorkQueue[Key] = hub.queue(NAME)
        self.source_queue: WorkQueue[ObjectRef] = hub.queue(f"{NAME}-sources")
        self.placement_queue: WorkQueue[ObjectRef] = hub.queue(f"{NAME}-placements")
        self.kind_queue: WorkQueue[Cluster] = hub.queue(f"{NAME}-kinds")
        self._pace = Pace(self.queue, clock)
        self._source_pace = Pace(self.source_queue, clock)
        self._placement_pace = Pace(self.placement_queue, clock, _PLACEMENT_SECONDS)
        placements = edge.informer(EDGE_PLACEMENTS)
        slices = edge.informer(SINGLE_PLACEMENT_SLICES, transform=lean_slice, packed=True)
        slices.index.add_index(BY_PLACEMENT, by_placement)
        summaries = edge.informer(NAMESPACED, transform=lean_summary)
        cluster_summaries = edge.informer(CLUSTER_SCOPED, transform=lean_summary)
        mailboxes = views.provider.informer(WORKSPACES, transform=lean_workspace)
        self.inputs = inputs = SummaryInputs(
            slices.index,
            self._pace.enqueue,
            self._source_pace.enqueue,
            self._placement_pace.enqueue,
            self._enqueue_cluster,
        )
        self.watches = watches = KindWatches(hub, inputs, self._enqueue_parked)
        heartbeats = self._heartbeats()
        mailboxes.add_handler(inputs.mailbox_changed)
        slices.add_handler(inputs.slice_changed)
        placements.add_handler(inputs.placement_changed)
        configs = edge.informer(SYNCER_CONFIGS, transform=lean_config)
        configs.add_handler(inputs.config_changed)
        for informer in (summaries, cluster_summaries):
            informer.add_handler(inputs.summary_changed)
        for informer in (watches.bindings, watches.definitions):
            informer.add_handler(self._types_changed)
        roles = [mailboxes, placements, slices, watches.bindings, watches.definitions]
        informers = [*roles, summaries, cluster_summaries, heartbeats, configs]
        observer = SummaryObserver(
            inputs, watches, summaries.index, cluster_summaries.index, self._pace
        )
        self._reading: Controller[Cluster, None] = hub.controller(
            f"{NAME}-kinds",
            Reconciler(watches.read, _nothing, hub.executor(NAME)),
            self.kind_queue,
            roles,
            _KIND_WORKERS,
        )
        self._summaries: Controller[Key, Observed] = hub.controller(
            NAME,
            Reconciler(observer.observe, decide, hub.executor(NAME)),
            self.queue,
            informers,
            workers,
        )
        self._sources = self._source_loop(views.writer, informers, workers)
        self._placements = self._placement_loop(placements, informers)

    def _placement_loop(
        self, placements: Informer, informers: Sequence[Informer]
    ) -> Controller[ObjectRef, ObservedPlacement]:
        hub = self._hub
        observer = PlacementObserver(
            self.inputs, self.watches, placements.index, self._placement_pace
        )
        return hub.controller(
            f"{NAME}-placements",
            Reconciler(
                observer.observe,
                lambda observed: decide_placement(observed, hub.client.clock.now()),
                hub.executor(NAME),
            ),
            self.placement_queue,
            informers,
        )

    def _source_loop(
        self, writer: Client, informers: Sequence[Informer], workers: int
    ) -> Controller[ObjectRef, ObservedSource]:
        hub = self._hub
        observer = SourceObserver(self.inputs, self.watches, hub.client, self._source_pace)
        return hub.controller(
            f"{NAME}-sources",
            Reconciler(
                observer.observe,
                lambda observed: decide_source(observed, hub.client.clock.now()),
                SourceExecutor(hub, writer, NAME),
            ),
            self.source_queue,
            informers,
            workers,
        )

    def _heartbeats(self) -> Informer:
        """Follow the Leases of mailboxes, whether or not this process leads."""
        hub = self._hub
        informer = hub.factory.informer(LEASES, _HEARTBEATS, transform=lean_lease, packed=True)
        leases = Leases(
            hub.client.clock,
            self.inputs.leases_changed,
            lambda: informer.following_since,
            _call_later,
        )
        informer.add_handler(leases.lease_changed)
        return informer

    async def run(self) -> None:
        """Work until cancelled."""
        _log.info("starting controller", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watches.run())
            tasks.create_task(self._reading.run())
            tasks.create_task(self._summaries.run())
            tasks.create_task(self._sources.run())
            tasks.create_task(self._placements.run())
            if self._hub.recorder is not None:
                tasks.create_task(self._hub.recorder.run())

    def _enqueue_cluster(self, cluster: ClusterName) -> None:
        self.kind_queue.add(Cluster(cluster))

    def _enqueue_parked(self, parked: Parked) -> None:
        if parked.queue == SUMMARIES:
            self._pace.enqueue(Key(*parked.key))
        elif parked.queue == SOURCES:
            self._source_pace.enqueue(ObjectRef(*parked.key))
        else:
            self._placement_pace.enqueue(ObjectRef(*parked.key))

    def _types_changed(self, old: Object | None, new: Object | None) -> None:
        """Read anew what a cluster serves, if that matters to anybody."""
        cluster = cluster_of(new or old or {})
        if self.inputs.is_workload(cluster) or self.inputs.is_mailbox(cluster):
            self._enqueue_cluster(cluster)


def build(views: Views, *, workers: int = WORKERS) -> Summarizer:
    """Return the controller that summarises reported states."""
    return Summarizer(views, workers=workers)


def _call_later(seconds: float, then: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, then)


def _nothing(_: None) -> Plan:
    return NOTHING
