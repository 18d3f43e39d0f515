"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.daemonset.decide import decide
from skerry.controllers.workload.daemonset.events import connect
from skerry.controllers.workload.daemonset.observe import Observed, Observer
from skerry.controllers.workload.event_recording import event_recording_executor
from skerry.controllers.workload.kinds import DAEMON_SETS, NODES, PODS, REVISIONS
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue
from skerry.runtime.write_overlay import InformerOverlay

NAME = "daemonset-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps a pod of each DaemonSet on every node."""
    factory = context.factory
    sets, pods = factory.informer(DAEMON_SETS), factory.informer(PODS)
    revisions, nodes = factory.informer(REVISIONS), factory.informer(NODES)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, sets, pods, revisions, nodes)
    overlay = InformerOverlay(pods)
    clock = context.client.clock

    reconciler = Reconciler(
        Observer(context.client, (sets, revisions, nodes), overlay, context.ids).observe,
        lambda observed: decide(observed, clock.now()),
        event_recording_executor(context, NAME, overlay),
    )
    return context.controller(NAME, reconciler, queue, [sets, pods, revisions, nodes])
