"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.job.decide import decide
from skerry.controllers.workload.job.keys import connect
from skerry.controllers.workload.job.observe import Observed, Observer
from skerry.controllers.workload.kinds import JOBS, PODS
from skerry.controllers.workload.recent import RecentWrites
from skerry.controllers.workload.telling import telling_executor
from skerry.logic.machinery.plan import Plan
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "job-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that runs Jobs."""
    jobs, pods = context.factory.informer(JOBS), context.factory.informer(PODS)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, jobs, pods)
    recent = RecentWrites(context.client, pods)
    clock = context.client.clock

    def decided(observed: Observed) -> Plan:
        return recent.note(observed.key, decide(observed, clock.now()))

    observer = Observer(jobs, pods, recent, context.ids)
    reconciler = Reconciler(observer.observe, decided, telling_executor(context, NAME))
    return context.controller(NAME, reconciler, queue, [jobs, pods])
