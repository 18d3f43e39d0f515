"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.deployment.decide import decide
from skerry.controllers.workload.deployment.events import connect
from skerry.controllers.workload.deployment.observe import Observed, Observer
from skerry.controllers.workload.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "deployment-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that rolls Deployments out."""
    deployments = context.factory.informer(DEPLOYMENTS)
    replica_sets = context.factory.informer(REPLICA_SETS)
    pods = context.factory.informer(PODS)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, deployments, replica_sets, pods)
    clock = context.client.clock
    observer = Observer(deployments, replica_sets, pods)
    reconciler = Reconciler(
        observer.observe,
        lambda observed: decide(observed, clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [deployments, replica_sets, pods])
