"""A namespace is looked at when it begins to be deleted and when its finalizers change.

Not when its status does: we write that ourselves, and would enqueue it without end.
"""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler

NAMESPACES = GroupVersionResource("", "v1", "namespaces")


def enqueue_on_changes(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the keys of terminating namespaces."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is None or not new["metadata"].get("deletionTimestamp"):
            return
        if old is None or _stage(old) != _stage(new):
            add(key_of(new))

    return handle


def _stage(namespace: Object) -> tuple[object, ...]:
    metadata = namespace["metadata"]
    finalizers = (namespace.get("spec") or {}).get("finalizers")
    return (metadata.get("deletionTimestamp"), metadata.get("finalizers"), finalizers)
