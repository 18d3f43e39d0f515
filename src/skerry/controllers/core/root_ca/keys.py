"""A namespace is looked at when it changes and when its ConfigMap changes or goes."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Selection
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
ROOT_CA_NAME = "kube-root-ca.crt"
ONLY_ROOT_CAS = Selection(fields=f"metadata.name={ROOT_CA_NAME}")


def enqueue_on_namespaces(add: Callable[[Key], None]) -> Handler:
    """Return the handler for namespaces."""

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None:
            add(key_of(new))

    return handle


def enqueue_on_config_maps(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds the namespace of a ConfigMap, whatever happened to it."""

    def handle(old: Object | None, new: Object | None) -> None:
        changed = key_of(new or old or {})
        add(Key(changed.cluster, "", changed.namespace))

    return handle
