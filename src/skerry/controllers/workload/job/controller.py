"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.event_recording import event_recording_executor
from skerry.controllers.workload.job.decide import decide
from skerry.controllers.workload.job.events import connect
from skerry.controllers.workload.job.observe import Observed, Observer
from skerry.controllers.workload.kinds import JOBS, PODS
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue
from skerry.runtime.write_overlay import InformerOverlay

NAME = "job-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that runs Jobs."""
    jobs, pods = context.factory.informer(JOBS), context.factory.informer(PODS)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, jobs, pods)
    overlay = InformerOverlay(pods)
    clock = context.client.clock

    reconciler = Reconciler(
        Observer(context.client, jobs, overlay, context.ids).observe,
        lambda observed: decide(observed, clock.now()),
        event_recording_executor(context, NAME, overlay),
    )
    return context.controller(NAME, reconciler, queue, [jobs, pods])
