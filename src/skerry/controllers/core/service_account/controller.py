"""Wiring."""

from __future__ import annotations

from skerry.controllers.core.service_account.decide import decide
from skerry.controllers.core.service_account.keys import (
    NAMESPACES,
    ONLY_DEFAULTS,
    SERVICE_ACCOUNTS,
    enqueue_on_loss,
    enqueue_on_namespaces,
)
from skerry.controllers.core.service_account.observe import Observed, Observer
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "serviceaccount-controller"


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps default ServiceAccounts."""
    namespaces = context.factory.informer(NAMESPACES)
    accounts = context.factory.informer(SERVICE_ACCOUNTS, ONLY_DEFAULTS)
    queue: WorkQueue[Key] = context.queue(NAME)
    namespaces.add_handler(enqueue_on_namespaces(queue.add))
    accounts.add_handler(enqueue_on_loss(queue.add))
    reconciler = Reconciler(Observer(namespaces, accounts).observe, decide, context.executor(NAME))
    return context.controller(NAME, reconciler, queue, [namespaces, accounts])
