"""Wiring."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from skerry.api.edge import STATUS_QUERIES
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.kinds import GroupResource
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.status_queries import MAX_BYTES
from skerry.controllers.status_queries.decide import decide
from skerry.controllers.status_queries.events import QueryInputs
from skerry.controllers.status_queries.feed import Feed
from skerry.controllers.status_queries.observe import QUERIES, Observed, QueryObserver
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target
from skerry.logic.machinery.plan import NOTHING, Plan
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import InformerFactory
from skerry.runtime.pace import Pace
from skerry.runtime.workqueue import WorkQueue

NAME = QUERIES
WORKERS = 4
# A kind is listed by one worker; two queries seldom ask about new kinds at once.
_KIND_WORKERS = 2
# An interrupted watch resumes within a second; what lasts longer is worth a condition.
_GAP_SECONDS = 5.0

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Views:
    """Where queries look.

    ``hub`` speaks to all logical clusters at once, ``edge`` is the view of the provider's export
    ``edge.kcp.io``, ``scheduling`` and ``workload`` are those of root's exports. Queries in
    *provider*, a logical cluster, see everything.
    """

    hub: ControllerContext
    edge: InformerFactory
    scheduling: InformerFactory
    workload: InformerFactory
    provider: ClusterName


class StatusQueries:
    """Loops over the tables of queries: kinds to read, and queries to answer."""

    def __init__(
        self, views: Views, feed: Feed, *, workers: int = WORKERS, max_bytes: int = MAX_BYTES
    ) -> None:
        hub, edge = views.hub, views.edge
        self._hub, self._feed = hub, feed
        clock = hub.client.clock
        self.queue: WorkQueue[ObjectRef] = hub.queue(NAME)
        self.kind_queue: WorkQueue[GroupResource] = hub.queue(f"{NAME}-kinds")
        pace = Pace(self.queue, clock)
        queries = edge.informer(STATUS_QUERIES)
        locations = views.scheduling.informer(LOCATIONS, transform=lean_location, packed=True)
        targets = views.workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
        self.inputs = inputs = QueryInputs(
            feed,
            views.provider,
            locations.index,
            targets.index,
            pace.enqueue,
            self.kind_queue.add,
        )
        feed.on_parked(QUERIES, lambda key: pace.enqueue(ObjectRef(*key)))
        queries.add_handler(inputs.query_changed)
        locations.add_handler(inputs.location_changed)
        targets.add_handler(inputs.target_changed)
        informers = [*feed.informers, queries, locations, targets]
        self._reading: Controller[GroupResource, None] = hub.controller(
            f"{NAME}-kinds",
            Reconciler(inputs.read, _nothing, hub.executor(NAME)),
            self.kind_queue,
            informers,
            _KIND_WORKERS,
        )
        observer = QueryObserver(
            inputs, feed, queries.index, pace, clock, self.queue.add_after, max_bytes
        )
        self._answering: Controller[ObjectRef, Observed] = hub.controller(
            NAME,
            Reconciler(
                observer.observe,
                lambda observed: decide(observed, clock.now()),
                hub.executor(NAME),
            ),
            self.queue,
            informers,
            workers,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        _log.info("starting controller", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._feed.run())
            tasks.create_task(self._reading.run())
            tasks.create_task(self._answering.run())
            tasks.create_task(self._watch_gaps())

    async def _watch_gaps(self) -> None:
        """Have queries say it when a watch of their kind is interrupted for long."""
        followed: dict[GroupResource, bool] = {}
        while True:
            await self._hub.client.clock.sleep(_GAP_SECONDS)
            for kind in self.inputs.kinds():
                now = self._feed.watches.is_followed(kind)
                if followed.get(kind, True) != now:
                    self.inputs.interrupted(kind)
                followed[kind] = now


def _nothing(_: None) -> Plan:
    return NOTHING
