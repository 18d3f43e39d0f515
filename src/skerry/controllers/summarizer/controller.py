"""Wiring."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from skerry.api.edge import EDGE_PLACEMENTS, SINGLE_PLACEMENT_SLICES
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.board import Board
from skerry.controllers.summarizer.decide import ObservedDelivery, decide, decide_delivery
from skerry.controllers.summarizer.forms import (
    BY_PLACEMENT,
    by_placement,
    lean_metadata,
    lean_summary,
)
from skerry.controllers.summarizer.keys import NAME, WORKSPACES, Pace
from skerry.controllers.summarizer.kinds import Cluster, Kinds
from skerry.controllers.summarizer.observe import Observed, Observer
from skerry.kit.log import Logger
from skerry.logic.fleet.summary.content import CLUSTER_SCOPED, NAMESPACED
from skerry.logic.machinery.plan import NOTHING, Plan
from skerry.runtime.client import cluster_of
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.workqueue import WorkQueue

WORKERS = 8
# Discovery is a few requests; a restart with a thousand workspaces has a thousand of them.
_KIND_WORKERS = 8

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Views:
    """Where the summarizer looks.

    ``hub`` speaks to all logical clusters at once (its client's cluster is ``*``) and writes to
    any of them; ``edge`` is the view of the provider's export ``edge.kcp.io``; ``provider`` is the
    workspace whose children the mailboxes are. Whoever builds them runs their factories.
    """

    hub: ControllerContext
    edge: InformerFactory
    provider: InformerFactory


class Summarizer:
    """Three loops over one board: which kinds there are, the summaries, the delivery counts."""

    def __init__(self, views: Views, *, workers: int = WORKERS) -> None:
        hub, edge = views.hub, views.edge
        clock = hub.client.clock
        self.queue: WorkQueue[Key] = hub.queue(NAME)
        self.placement_queue: WorkQueue[ObjectRef] = hub.queue(f"{NAME}-deliveries")
        self.kind_queue: WorkQueue[Cluster] = hub.queue(f"{NAME}-kinds")
        self._pace = Pace(self.queue, clock)
        self._placement_pace = Pace(self.placement_queue, clock)
        self._placements = edge.informer(EDGE_PLACEMENTS)
        slices = edge.informer(SINGLE_PLACEMENT_SLICES, transform=lean_slice, packed=True)
        slices.index.add_index(BY_PLACEMENT, by_placement)
        summaries = edge.informer(NAMESPACED, transform=lean_summary)
        cluster_summaries = edge.informer(CLUSTER_SCOPED, transform=lean_summary)
        mailboxes = views.provider.informer(WORKSPACES, transform=lean_workspace)
        self.kinds = Kinds(hub)
        self.board = Board(
            slices.index, self._pace.wake, self._placement_pace.wake, self._wake_cluster
        )
        self.kinds.tell(self.board)
        self._add_handlers(slices, summaries, cluster_summaries, mailboxes)
        roles = [mailboxes, self._placements, slices, self.kinds.bindings, self.kinds.definitions]
        informers = [*roles, summaries, cluster_summaries]
        observer = Observer(
            self.board, self.kinds, summaries, cluster_summaries, hub.client, self._pace
        )
        self._following: Controller[Cluster, None] = hub.controller(
            f"{NAME}-kinds",
            Reconciler(self.kinds.follow, _nothing, hub.executor(NAME)),
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
        self._deliveries: Controller[ObjectRef, ObservedDelivery] = hub.controller(
            f"{NAME}-deliveries",
            Reconciler(self._observe_delivery, decide_delivery, hub.executor(NAME)),
            self.placement_queue,
            informers,
        )

    def _add_handlers(
        self,
        slices: Informer,
        summaries: Informer,
        cluster_summaries: Informer,
        mailboxes: Informer,
    ) -> None:
        board = self.board
        mailboxes.add_handler(board.mailbox_changed)
        slices.add_handler(board.slice_changed)
        self._placements.add_handler(board.placement_changed)
        for informer in (summaries, cluster_summaries):
            informer.add_handler(board.summary_changed)
        for informer in (self.kinds.bindings, self.kinds.definitions):
            informer.add_handler(self._types_changed)

    async def run(self) -> None:
        """Work until cancelled."""
        _log.info("starting controller", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.kinds.run())
            tasks.create_task(self._following.run())
            tasks.create_task(self._summaries.run())
            tasks.create_task(self._deliveries.run())

    def _wake_cluster(self, cluster: str) -> None:
        self.kind_queue.add((cluster,))

    def _types_changed(self, old: Object | None, new: Object | None) -> None:
        """Look again at what a cluster serves, if that matters to anybody."""
        cluster = cluster_of(new or old or {})
        if self.board.is_workload(cluster) or self.board.is_mailbox(cluster):
            self._wake_cluster(cluster)

    async def _observe_delivery(self, ref: ObjectRef) -> ObservedDelivery | None:
        if not self.kinds.is_settled(ref.cluster):
            wake = self._placement_pace.wake
            self.kinds.call_again(ref.cluster, ref, lambda: wake(ref))
            return None
        self._placement_pace.looking(ref)
        placement = self._placements.index.get(Key(ref.cluster, "", ref.name))
        delivered = self.board.ledger.delivered(ref)
        if placement is None or delivered is None:
            return None
        return ObservedDelivery(ref, placement, delivered)


def build(views: Views, *, workers: int = WORKERS) -> Summarizer:
    """Return the controller that summarises reported states."""
    return Summarizer(views, workers=workers)


def lean_slice(obj: Object) -> Object:
    """Keep of a slice whose it is and where it sends things."""
    return {
        "metadata": lean_metadata(obj, ("ownerReferences",)),
        "destinations": obj.get("destinations") or [],
    }


def lean_workspace(obj: Object) -> Object:
    """Keep of a Workspace the cluster it leads to."""
    return {
        "metadata": lean_metadata(obj),
        "spec": {"cluster": (obj.get("spec") or {}).get("cluster", "")},
    }


def _nothing(_: None) -> Plan:
    return NOTHING
