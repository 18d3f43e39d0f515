"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.daemonset.decide import decide
from skerry.controllers.workload.daemonset.keys import connect
from skerry.controllers.workload.daemonset.observe import Observed, Observer
from skerry.controllers.workload.kinds import DAEMON_SETS, NODES, PODS, REVISIONS
from skerry.controllers.workload.recent import RecentWrites
from skerry.controllers.workload.telling import telling_executor
from skerry.logic.machinery.plan import Plan
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.workqueue import WorkQueue

NAME = "daemonset-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps a pod of each DaemonSet on every node."""
    factory = context.factory
    sets, pods = factory.informer(DAEMON_SETS), factory.informer(PODS)
    revisions, nodes = factory.informer(REVISIONS), factory.informer(NODES)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, sets, pods, revisions, nodes)
    recent = RecentWrites(context.client, pods)
    clock = context.client.clock

    def decided(observed: Observed) -> Plan:
        return recent.note(key_of(observed.daemon_set), decide(observed, clock.now()))

    observer = Observer((sets, pods, revisions, nodes), recent, context.ids)
    reconciler = Reconciler(observer.observe, decided, telling_executor(context, NAME))
    return context.controller(NAME, reconciler, queue, [sets, pods, revisions, nodes])
