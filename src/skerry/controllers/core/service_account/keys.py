"""A namespace is looked at when it changes and when its ServiceAccount goes."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Selection
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
SERVICE_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
DEFAULT_NAME = "default"
ONLY_DEFAULTS = Selection(fields=f"metadata.name={DEFAULT_NAME}", metadata_only=True)


def enqueue_on_namespaces(add: Callable[[Key], None]) -> Handler:
    """Return the handler for namespaces."""

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None:
            add(key_of(new))

    return handle


def enqueue_on_loss(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the namespace of an object that is gone."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            gone = key_of(old)
            add(Key(gone.cluster, "", gone.namespace))

    return handle
