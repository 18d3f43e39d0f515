"""Wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.core.garbage.decide import decide
from skerry.controllers.core.garbage.graph import Graph, NodeKey
from skerry.controllers.core.garbage.keys import DEFINITIONS
from skerry.controllers.core.garbage.monitors import Monitors
from skerry.controllers.core.garbage.observe import Observed, Observer
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.workqueue import WorkQueue

NAME = "garbage-collector-controller"
# As kube-controller-manager: a cascade is many small independent deletions.
_WORKERS = 20


@dataclass(frozen=True)
class GarbageCollector:
    """The graph's feeders and the controller that acts on it."""

    graph: Graph
    monitors: Monitors
    controller: Controller[NodeKey, Observed]

    async def run(self) -> None:
        """Collect until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.monitors.run())
            await self.monitors.wait_filled()
            tasks.create_task(self.controller.run())


def build(
    context: ControllerContext,
    labels: str = "",
    also_defining: Sequence[GroupVersionResource] = (),
) -> GarbageCollector:
    """Return the garbage collector of what *labels* select.

    Objects of the types *also_defining* bring new types, as CustomResourceDefinitions do.
    """
    queue: WorkQueue[NodeKey] = context.queue(NAME)
    graph = Graph()
    monitors = Monitors(
        context.client,
        context.factory,
        graph,
        queue.add,
        Selection(labels=labels, metadata_only=True),
        (DEFINITIONS, *also_defining),
    )
    reconciler = Reconciler(
        Observer(context.client, graph, monitors).observe, decide, context.executor(NAME)
    )
    controller = context.controller(NAME, reconciler, queue, workers=_WORKERS)
    return GarbageCollector(graph, monitors, controller)
