"""Wiring."""

from __future__ import annotations

from skerry.controllers.workload.event_recording import event_recording_executor
from skerry.controllers.workload.kinds import CLAIMS, PODS, REVISIONS, STATEFUL_SETS
from skerry.controllers.workload.statefulset.decide import decide
from skerry.controllers.workload.statefulset.events import connect
from skerry.controllers.workload.statefulset.observe import Observed, Observer
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "statefulset-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps StatefulSets' numbered pods."""
    factory = context.factory
    sets, pods = factory.informer(STATEFUL_SETS), factory.informer(PODS)
    revisions, claims = factory.informer(REVISIONS), factory.informer(CLAIMS)
    queue: WorkQueue[Key] = context.queue(NAME)
    connect(queue, sets, pods, revisions)
    clock = context.client.clock
    reconciler = Reconciler(
        Observer(sets, pods, revisions, claims).observe,
        lambda observed: decide(observed, clock.now()),
        event_recording_executor(context, NAME),
    )
    return context.controller(NAME, reconciler, queue, [sets, pods, revisions, claims])
