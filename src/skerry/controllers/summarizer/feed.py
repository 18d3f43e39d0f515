"""The status feed: what is watched of sources, copies and edges, once for all who read it.

The watches and the tables are the same for whoever derives something from what edges report: the
summaries here, and what other loops of the process keep up from the same events. ``app`` builds one
feed and hands it to each. Whoever of them runs first runs the feed as well; when that one stops,
because it no longer leads, the next takes over.

A feed each would be simpler, and each would hold every copy once more, which is most of what these
controllers hold. The informers of the views follow the hub whether or not anybody leads; what needs
a runner is reading what workspaces *serve*, and the watches of single clusters that follow from it.

A signal calls its subscribers at once, in the order in which they subscribed, and within the same
turn of the loop as the event. They enqueue and return; whoever computes something there would hold
up all the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    HEARTBEAT_LEASE,
    SINGLE_PLACEMENT_SLICES,
    SYNCER_CONFIGS,
)
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.summarizer.events import SummaryInputs
from skerry.controllers.summarizer.leases import Leases, Timer
from skerry.controllers.summarizer.projections import (
    BY_PLACEMENT,
    by_placement,
    lean_config,
    lean_slice,
)
from skerry.controllers.summarizer.watches import Cluster, KindWatches, Parked
from skerry.logic.fleet.placement.heartbeat import LEASES, lean_lease
from skerry.logic.fleet.placement.records import lean_mailbox
from skerry.logic.fleet.tables.completeness import Scope
from skerry.logic.machinery.plan import NOTHING, Plan
from skerry.runtime.client import Selection, cluster_of
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.workqueue import WorkQueue

NAME = "summarizer"
# Discovery is a few requests; a restart with a thousand workspaces has a thousand of them.
_KIND_WORKERS = 8
_HEARTBEATS = Selection(fields=f"metadata.name={HEARTBEAT_LEASE}")

K = TypeVar("K")


class Signal(Generic[K]):
    """Hands keys on to whoever asked for them, and keeps none.

    So whoever is to get all of them subscribes before any informer has read anything.
    """

    def __init__(self) -> None:
        self._subscribers: list[Callable[[K], None]] = []

    def subscribe(self, subscriber: Callable[[K], None]) -> None:
        self._subscribers.append(subscriber)

    def __call__(self, key: K) -> None:
        for subscriber in self._subscribers:
            subscriber(key)


@dataclass(frozen=True, slots=True)
class FeedViews:
    """Where the feed looks.

    ``hub`` speaks to all logical clusters at once (its client's cluster is ``*``); ``edge`` is the
    view of the provider's export ``edge.kcp.io``; ``provider`` is the workspace whose children the
    mailboxes are. Whoever builds them runs their factories.
    """

    hub: ControllerContext
    edge: InformerFactory
    provider: InformerFactory


class StatusFeed:
    """The watches, the tables they fill, and signals of what changed."""

    def __init__(self, views: FeedViews) -> None:
        hub, edge = views.hub, views.edge
        self._hub = hub
        self.summaries: Signal[Key] = Signal()
        self.sources: Signal[ObjectRef] = Signal()
        self.placed: Signal[ObjectRef] = Signal()
        self.parked: Signal[Parked] = Signal()
        self._running = asyncio.Lock()
        self.queue: WorkQueue[Cluster] = hub.queue(f"{NAME}-kinds")
        self.placements = edge.informer(EDGE_PLACEMENTS)
        self.slices = slices = edge.informer(
            SINGLE_PLACEMENT_SLICES, transform=lean_slice, packed=True
        )
        slices.index.add_index(BY_PLACEMENT, by_placement)
        mailboxes = views.provider.informer(WORKSPACES, transform=lean_mailbox, packed=True)
        self.inputs = inputs = SummaryInputs(
            slices.index, self.summaries, self.sources, self.placed, self._enqueue_cluster
        )
        self.watches = watches = KindWatches(hub, inputs, self.parked)
        heartbeats = self._heartbeats()
        mailboxes.add_handler(inputs.mailbox_changed)
        slices.add_handler(inputs.slice_changed)
        self.placements.add_handler(inputs.placement_changed)
        self.configs = configs = edge.informer(SYNCER_CONFIGS, transform=lean_config)
        configs.add_handler(inputs.config_changed)
        for informer in (watches.bindings, watches.definitions):
            informer.add_handler(self._types_changed)
        roles = [mailboxes, self.placements, slices, watches.bindings, watches.definitions]
        self.informers = [*roles, heartbeats, configs]
        self._reading: Controller[Cluster, None] = hub.controller(
            f"{NAME}-kinds",
            Reconciler(watches.read, _nothing, hub.executor(NAME)),
            self.queue,
            roles,
            _KIND_WORKERS,
        )

    def park(self, queue: str, key: tuple[str, ...], scope: Scope) -> None:
        """Have a key of a queue enqueued when *scope* was read; see ``on_parked``."""
        self.watches.park(Parked(queue, key), scope)

    def on_parked(self, queue: str, enqueue: Callable[[tuple[str, ...]], None]) -> None:
        """Have *enqueue* called with keys of a queue that waited long enough."""

        def come(parked: Parked) -> None:
            if parked.queue == queue:
                enqueue(parked.key)

        self.parked.subscribe(come)

    async def run(self) -> None:
        """Read what workspaces serve until cancelled; one at a time does, whoever shares it."""
        async with self._running, asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watches.run())
            tasks.create_task(self._reading.run())

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

    def _enqueue_cluster(self, cluster: ClusterName) -> None:
        self.queue.add(Cluster(cluster))

    def _types_changed(self, old: Object | None, new: Object | None) -> None:
        """Read anew what a cluster serves, if that matters to anybody."""
        cluster = cluster_of(new or old or {})
        if self.inputs.is_workload(cluster) or self.inputs.is_mailbox(cluster):
            self._enqueue_cluster(cluster)


def _call_later(seconds: float, then: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, then)


def _nothing(_: None) -> Plan:
    return NOTHING
