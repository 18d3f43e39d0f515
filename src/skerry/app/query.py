"""The status feed, and the controllers on it: summaries and the answers to StatusQueries.

Run together they share one feed; run alone, each has its own.
"""

from __future__ import annotations

import asyncio

from skerry.api.edge import EXPORT, ROLLOUTS, STATUS_QUERIES
from skerry.app.edge_environment import EdgeEnvironment, Runnable
from skerry.controllers.status_queries import controller as status_queries
from skerry.controllers.summarizer import controller as summarizer
from skerry.controllers.summarizer.feed import FeedViews, StatusFeed
from skerry.kit.log import Logger
from skerry.runtime.client import EVERYWHERE
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory

_SCHEDULING, _WORKLOAD = "scheduling.kcp.io", "workload.kcp.io"

log = Logger("controllers")


async def build_summarizer(environment: EdgeEnvironment) -> Runnable:
    """Return the controller that summarises reported states."""
    edge = await environment.provider_view(EXPORT, quiet=True)
    recorder = EventRecorder(environment.client("base"), "summarizer", metrics=environment.metrics)
    views = summarizer.Views(
        environment.context(environment.following("admin", EVERYWHERE), recorder=recorder),
        edge.factory,
        environment.following("espw", environment.provider),
        environment.client("base"),
        str(ROLLOUTS.group_resource) in edge.resources,
    )
    workers = environment.concurrency or summarizer.WORKERS
    return summarizer.build(views, workers=workers, feed=_feed(environment, edge.factory))


async def build_status_queries(environment: EdgeEnvironment) -> Runnable:
    """Return the controller that answers StatusQueries; one that does nothing without the kind."""
    edge = await environment.provider_view(EXPORT, quiet=True)
    scheduling = await environment.root_view(_SCHEDULING, quiet=True)
    workload = await environment.root_view(_WORKLOAD, quiet=True)
    if str(STATUS_QUERIES.group_resource) not in edge.resources:
        log.info("the edge export offers no StatusQueries", v=1)
        return _Idle()
    views = status_queries.Views(
        _hub(environment),
        edge.factory,
        scheduling.factory,
        workload.factory,
        edge.exporter,
    )
    return status_queries.StatusQueries(
        views,
        _feed(environment, edge.factory),
        workers=environment.concurrency or status_queries.WORKERS,
        max_bytes=environment.query_memory,
    )


class _Idle:
    """A controller without anything to do: an older export lacks its kind."""

    async def run(self) -> None:
        await asyncio.Event().wait()


def _hub(environment: EdgeEnvironment) -> ControllerContext:
    return environment.context(environment.following("admin", EVERYWHERE))


def _feed(environment: EdgeEnvironment, edge: InformerFactory) -> StatusFeed:
    """Return the one feed of an environment."""
    provider = environment.following("espw", environment.provider)
    return environment.shared(
        StatusFeed, lambda: StatusFeed(FeedViews(_hub(environment), edge, provider))
    )
