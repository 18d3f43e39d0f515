"""What clients' rules about writes are matched with."""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.objects import Object, labels_of
from skerry.logic.machinery.admission.matching import NAMESPACES, Subject
from skerry.server.admission.operation import Operation
from skerry.server.observed import ObservedObjects
from skerry.store.base import Store


async def namespace_of(
    operation: Operation, namespaces: ObservedObjects, store: Store
) -> Object | None:
    """Return the Namespace of an object; None for cluster-scoped ones."""
    call = operation.call
    if not call.namespace:
        return None
    return await namespaces.find(store, call.info.cluster, call.namespace) or {}


def subject_of(operation: Operation, namespace: Object | None) -> Subject:
    """Return what rules compare with *operation*, whose object is in *namespace*."""
    call, obj, old = operation.call, operation.obj, operation.old
    info = call.resource.info
    labels: Mapping[str, str] | None = None
    if operation.type == NAMESPACES:
        labels = labels_of(obj)
    elif namespace is not None:
        labels = labels_of(namespace)
    return Subject(
        operation.verb,
        [info.gvr, *call.types.other_versions(info)],
        operation.subresource,
        info.namespaced,
        operation.name,
        labels_of(obj),
        None if old is None else labels_of(old),
        labels,
    )
