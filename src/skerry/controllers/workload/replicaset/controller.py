"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.kinds import PODS, REPLICA_SETS
from skerry.controllers.workload.recent import RecentWrites
from skerry.controllers.workload.replicaset.decide import decide
from skerry.controllers.workload.replicaset.keys import connect
from skerry.controllers.workload.replicaset.observe import Observed, Observer
from skerry.controllers.workload.telling import telling_executor
from skerry.logic.machinery.plan import Plan
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.workqueue import WorkQueue

NAME = "replicaset-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps ReplicaSets at their size."""
    replica_sets = context.factory.informer(REPLICA_SETS)
    pods = context.factory.informer(PODS)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, replica_sets, pods)
    recent = RecentWrites(context.client, pods)
    clock = context.client.clock

    def decided(observed: Observed) -> Plan:
        return recent.note(key_of(observed.replica_set), decide(observed, clock.now()))

    observer = Observer(replica_sets, pods, recent, context.ids)
    reconciler = Reconciler(observer.observe, decided, telling_executor(context, NAME))
    return context.controller(NAME, reconciler, queue, [replica_sets, pods])
