"""Wiring: one feed fills the tables, and four loops write what follows from them.

    summarizer              a summary, by its key                at most twice a second each
    summarizer-sources      an object of a workspace             at most twice a second each
    summarizer-placements   a placement: its status              at most once a second each
    summarizer-verdicts     a placement with a Rollout           at most twice a second each
    summarizer-kinds        a logical cluster: what it serves    the feed's own (``feed``)

Between a signal of the feed and a queue there is a ``Pace``: it enqueues a key now, or when enough
time has passed since the key was observed last. Nothing is counted or lost by that. A key is in the
queue once, and what it stands for is read from the tables when its turn comes.

A key whose observation finds something unread is parked in the feed with the name of its queue, and
comes back through one signal for all queues (``_enqueue_parked``); whoever shares the feed and does
not know the name passes over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from skerry.api.edge import (
    CLUSTER_STATUS_SUMMARIES,
    PLACEMENT_REVISIONS,
    ROLLOUTS,
    STATUS_SUMMARIES,
)
from skerry.api.refs import ObjectRef
from skerry.controllers.summarizer.decide import decide
from skerry.controllers.summarizer.feed import NAME, FeedViews, StatusFeed
from skerry.controllers.summarizer.observe import (
    PLACEMENTS,
    SUMMARIES,
    Observed,
    ObservedPlacement,
    PlacementObserver,
    SummaryObserver,
)
from skerry.controllers.summarizer.projections import BY_PLACEMENT, lean_summary
from skerry.controllers.summarizer.sources import (
    SOURCES,
    ObservedSource,
    SourceExecutor,
    SourceObserver,
    decide_source,
)
from skerry.controllers.summarizer.status import decide_placement
from skerry.controllers.summarizer.verdicts import (
    Judge,
    ObservedVerdicts,
    by_revision,
    decide_verdicts,
    lean_manifest,
)
from skerry.controllers.summarizer.watches import Parked
from skerry.kit.log import Logger
from skerry.runtime.client import Client
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.pace import Pace
from skerry.runtime.workqueue import WorkQueue

# Of summaries and of sources; a write each, to a hub that may be far away.
WORKERS = 8
# A status that others write, too, and that every report may change the counts of.
_PLACEMENT_SECONDS = 1.0

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Views:
    """Where the summarizer looks: through the feed, and at the summaries by ``edge``.

    ``hub`` speaks to all logical clusters at once. ``writer`` writes into workspaces what
    edges report, and is somebody whom the policies of exporters bound: that an edge says so gives
    nobody a status that an exporter keeps to itself. ``has_rollouts``: the export offers Rollouts,
    and their destinations are judged.
    """

    hub: ControllerContext
    edge: InformerFactory
    provider: InformerFactory
    writer: Client
    has_rollouts: bool = True


class Summarizer:
    """Loops over the tables of one feed: summaries, sources, placements."""

    def __init__(
        self, views: Views, *, workers: int = WORKERS, feed: StatusFeed | None = None
    ) -> None:
        """*feed* is one shared with others; without it the summarizer has its own."""
        hub, edge = views.hub, views.edge
        self._hub = hub
        self.feed = feed or StatusFeed(FeedViews(hub, edge, views.provider))
        self.inputs, self.watches = self.feed.inputs, self.feed.watches
        clock = hub.client.clock
        self.queue: WorkQueue[Key] = hub.queue(NAME)
        self.source_queue: WorkQueue[ObjectRef] = hub.queue(f"{NAME}-sources")
        self.placement_queue: WorkQueue[ObjectRef] = hub.queue(f"{NAME}-placements")
        self._pace = Pace(self.queue, clock)
        self._source_pace = Pace(self.source_queue, clock)
        self._placement_pace = Pace(self.placement_queue, clock, _PLACEMENT_SECONDS)
        self._subscribe()
        summaries = edge.informer(STATUS_SUMMARIES, transform=lean_summary)
        cluster_summaries = edge.informer(CLUSTER_STATUS_SUMMARIES, transform=lean_summary)
        for informer in (summaries, cluster_summaries):
            informer.add_handler(self.inputs.summary_changed)
        informers = [*self.feed.informers, summaries, cluster_summaries]
        observer = SummaryObserver(
            self.inputs, self.watches, summaries.index, cluster_summaries.index, self._pace
        )
        self._summaries: Controller[Key, Observed] = hub.controller(
            NAME,
            Reconciler(observer.observe, decide, hub.executor(NAME)),
            self.queue,
            informers,
            workers,
        )
        self._sources = self._source_loop(views.writer, informers, workers)
        self._placements = self._placement_loop(self.feed.placements, informers)
        self._verdicts = self._judging_loop(edge, informers) if views.has_rollouts else None

    def _subscribe(self) -> None:
        """Have enqueued, each at its pace, what the feed says has changed.

        Before any informer has read anything, since a signal keeps nothing for those who come late.
        """
        self.feed.summaries.subscribe(self._pace.enqueue)
        self.feed.sources.subscribe(self._source_pace.enqueue)
        self.feed.placed.subscribe(self._placement_pace.enqueue)
        self.feed.parked.subscribe(self._enqueue_parked)

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

    def _judging_loop(
        self, edge: InformerFactory, informers: Sequence[Informer]
    ) -> Controller[ObjectRef, ObservedVerdicts]:
        """Judge the destinations of placements with a Rollout."""
        hub = self._hub
        rollouts = edge.informer(ROLLOUTS)
        revisions = edge.informer(PLACEMENT_REVISIONS, transform=lean_manifest)
        revisions.index.add_index(BY_PLACEMENT, by_revision)
        queue: WorkQueue[ObjectRef] = hub.queue(f"{NAME}-verdicts")
        clock = hub.client.clock
        pace = Pace(queue, clock)
        judge = Judge(self.feed, rollouts, revisions, clock, pace.enqueue, pace.observing)
        return hub.controller(
            f"{NAME}-verdicts",
            Reconciler(judge.observe, decide_verdicts, hub.executor(NAME)),
            queue,
            [*informers, rollouts, revisions],
        )

    def _source_loop(
        self, writer: Client, informers: Sequence[Informer], workers: int
    ) -> Controller[ObjectRef, ObservedSource]:
        """Return the loop that reads with the hub's client, and writes with *writer* alone."""
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

    async def run(self) -> None:
        """Work until cancelled; may be run again, as leadership comes and goes.

        The tables stay and go on being filled meanwhile: most watches need no leader (``feed``).
        """
        _log.info("starting controller", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.feed.run())
            tasks.create_task(self._summaries.run())
            tasks.create_task(self._sources.run())
            tasks.create_task(self._placements.run())
            if self._verdicts is not None:
                tasks.create_task(self._verdicts.run())
            if self._hub.recorder is not None:
                tasks.create_task(self._hub.recorder.run())

    def _enqueue_parked(self, parked: Parked) -> None:
        """Enqueue a key that waited for something to be read, which it has been by now."""
        if parked.queue == SUMMARIES:
            self._pace.enqueue(Key(*parked.key))
        elif parked.queue == SOURCES:
            self._source_pace.enqueue(ObjectRef(*parked.key))
        elif parked.queue == PLACEMENTS:
            self._placement_pace.enqueue(ObjectRef(*parked.key))


def build(views: Views, *, workers: int = WORKERS, feed: StatusFeed | None = None) -> Summarizer:
    """Return the controller that summarises reported states."""
    return Summarizer(views, workers=workers, feed=feed)
