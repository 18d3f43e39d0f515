"""A Service is looked at when it or its slices change, or a pod that it selects or selected."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_self
from skerry.logic.machinery.selectors import Selector
from skerry.runtime.index import Key, by_namespace, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue

IN_NAMESPACE = "namespace"
BY_SERVICE = "service"
SERVICE_NAME = "kubernetes.io/service-name"


def _service_of(obj: Object) -> Iterable[Hashable]:
    name = (obj["metadata"].get("labels") or {}).get(SERVICE_NAME)
    return ((obj["metadata"].get("namespace", ""), name),) if name else ()


def connect(queue: WorkQueue[Key], services: Informer, pods: Informer, slices: Informer) -> None:
    """Enqueue what depends on events of the three types."""
    services.index.add_index(IN_NAMESPACE, by_namespace)
    pods.index.add_index(IN_NAMESPACE, by_namespace)
    slices.index.add_index(BY_SERVICE, _service_of)
    services.add_handler(enqueue_self(queue.add))
    pods.add_handler(_enqueue_selecting(services, queue.add))
    slices.add_handler(_enqueue_service(services, queue.add))


def _enqueue_selecting(services: Informer, add: Callable[[Key], None]) -> Handler:
    def handle(old: Object | None, new: Object | None) -> None:
        known = [obj for obj in (old, new) if obj is not None]
        place = key_of(known[0])
        for service in services.index.by(IN_NAMESPACE, (place.cluster, place.namespace)):
            labels = service["spec"].get("selector")
            if labels and any(
                Selector.from_labels(labels).matches(obj["metadata"].get("labels")) for obj in known
            ):
                add(key_of(service))

    return handle


def _enqueue_service(services: Informer, add: Callable[[Key], None]) -> Handler:
    """Enqueue the Service that a slice names; that one is gone is no slice's to say."""

    def handle(old: Object | None, new: Object | None) -> None:
        for obj in (old, new):
            name = None if obj is None else (obj["metadata"].get("labels") or {}).get(SERVICE_NAME)
            if obj is not None and name:
                place = key_of(obj)
                key = Key(place.cluster, place.namespace, name)
                if services.index.get(key) is not None:
                    add(key)

    return handle
