"""Wiring."""

from __future__ import annotations

from collections.abc import Callable

from skerry.controllers.core.root_ca.decide import decide
from skerry.controllers.core.root_ca.keys import (
    CONFIG_MAPS,
    NAMESPACES,
    ONLY_ROOT_CAS,
    enqueue_on_config_maps,
    enqueue_on_namespaces,
)
from skerry.controllers.core.root_ca.observe import Observed, Observer
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue

NAME = "root-ca-certificate-publisher-controller"


def _never(_: Callable[[], None]) -> None:
    """The certificate does not change."""


def build(
    context: ControllerContext,
    certificate: Callable[[], str],
    on_change: Callable[[Callable[[], None]], None] = _never,
) -> Controller[Key, Observed]:
    """Return the controller that publishes *certificate* (PEM) to every namespace.

    *on_change* is given what to call when the certificate has changed.
    """
    namespaces = context.factory.informer(NAMESPACES)
    config_maps = context.factory.informer(CONFIG_MAPS, ONLY_ROOT_CAS)
    queue: WorkQueue[Key] = context.queue(NAME)
    namespaces.add_handler(enqueue_on_namespaces(queue.add))
    config_maps.add_handler(enqueue_on_config_maps(queue.add))

    def republish() -> None:
        for namespace in namespaces.index:
            queue.add(namespace)

    on_change(republish)
    reconciler = Reconciler(
        Observer(namespaces, config_maps, certificate).observe, decide, context.executor(NAME)
    )
    return context.controller(NAME, reconciler, queue, [namespaces, config_maps])
