"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.cronjob.decide import decide
from skerry.controllers.workload.cronjob.events import connect
from skerry.controllers.workload.cronjob.observe import Observed, Observer
from skerry.controllers.workload.kinds import CRON_JOBS, JOBS
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "cronjob-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that starts Jobs by schedule."""
    cron_jobs, jobs = context.factory.informer(CRON_JOBS), context.factory.informer(JOBS)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, cron_jobs, jobs)
    clock = context.client.clock
    reconciler = Reconciler(
        Observer(cron_jobs, jobs).observe,
        lambda observed: decide(observed, clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [cron_jobs, jobs])
