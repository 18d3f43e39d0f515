"""Wiring."""

from __future__ import annotations

from skerry.controllers.core.namespace.decide import decide
from skerry.controllers.core.namespace.keys import NAMESPACES, enqueue_on_changes
from skerry.controllers.core.namespace.observe import Observed, Observer
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.informer import without_managed_fields
from skerry.runtime.workqueue import WorkQueue

NAME = "namespace-controller"
# One namespace is some fifty requests; ten at once, as kube-controller-manager.
_WORKERS = 10


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that ends namespaces."""
    namespaces = context.factory.informer(NAMESPACES, transform=without_managed_fields, packed=True)
    queue: WorkQueue[Key] = context.queue(NAME)
    namespaces.add_handler(enqueue_on_changes(queue.add))
    clock = context.client.clock
    reconciler = Reconciler(
        Observer(context.client, namespaces).observe,
        lambda observed: decide(observed, clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [namespaces], _WORKERS)
