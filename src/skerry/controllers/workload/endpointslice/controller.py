"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.endpointslice.decide import decide
from skerry.controllers.workload.endpointslice.events import connect
from skerry.controllers.workload.endpointslice.observe import Leftover, Observed, Observer
from skerry.controllers.workload.kinds import PODS, SERVICES, SLICES
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "endpointslice-controller"


def build(context: ControllerContext) -> Controller[Key, Observed | Leftover]:
    """Return the controller that tells which pods stand behind Services."""
    factory = context.factory
    services, pods = factory.informer(SERVICES), factory.informer(PODS)
    slices = factory.informer(SLICES)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, services, pods, slices)
    observer = Observer(context.client, services, pods, slices)
    reconciler: Reconciler[Key, Observed | Leftover] = Reconciler(
        observer.observe, decide, context.executor(NAME)
    )
    return context.controller(NAME, reconciler, queue, [services, pods, slices])
