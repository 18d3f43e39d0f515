"""A namespace is looked at when it begins to be deleted, and whenever it changes after that."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.kinds import GroupVersionResource
from skerry.logic.resource import Object
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler

NAMESPACES = GroupVersionResource("", "v1", "namespaces")


def waking(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the keys of terminating namespaces."""

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None and new["metadata"].get("deletionTimestamp"):
            add(key_of(new))

    return handle
