"""Wiring."""

from __future__ import annotations

from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.controllers.tenancy.heartbeat.decide import decide
from skerry.controllers.tenancy.heartbeat.keys import (
    NAME,
    enqueue_on_changes,
    with_conditions,
)
from skerry.controllers.tenancy.heartbeat.observe import Observed, Observer
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue


def build(workload: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that judges heartbeats; *workload* sees every SyncTarget."""
    targets = workload.factory.informer(SYNC_TARGETS, transform=with_conditions, packed=True)
    queue: WorkQueue[Key] = workload.queue(NAME)
    targets.add_handler(enqueue_on_changes(queue.add))
    clock = workload.client.clock
    reconciler = Reconciler(
        Observer(targets).observe,
        lambda observed: decide(observed, clock.now()),
        workload.executor(NAME),
    )
    return workload.controller(NAME, reconciler, queue, [targets])
