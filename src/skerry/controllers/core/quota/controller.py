"""Wiring."""

from __future__ import annotations

from skerry.controllers.core.quota.decide import decide
from skerry.controllers.core.quota.keys import IN_NAMESPACE, QUOTAS
from skerry.controllers.core.quota.observe import Observed, Observer
from skerry.runtime.client import EVERYTHING, Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, by_namespace
from skerry.runtime.informer import enqueue_present
from skerry.runtime.workqueue import WorkQueue

NAME = "resourcequota-controller"


def build(
    context: ControllerContext,
    selection: Selection = EVERYTHING,
    *,
    workloads: bool = True,
    clusters: bool = False,
) -> Controller[Key, Observed]:
    """Return the controller that counts what the quotas of *selection* limit.

    Without *workloads* pods and their like are objects among others, counted by number only. With
    *clusters* a quota may count all of its cluster.
    """
    quotas = context.factory.informer(QUOTAS, selection)
    quotas.index.add_index(IN_NAMESPACE, by_namespace)
    queue: WorkQueue[Key] = context.queue(NAME)
    quotas.add_handler(enqueue_present(queue.add))
    observer = Observer(context.factory, quotas, queue.add, workloads=workloads, clusters=clusters)
    clock = context.client.clock
    reconciler = Reconciler(
        observer.observe,
        lambda observed: decide(observed, clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [quotas])
