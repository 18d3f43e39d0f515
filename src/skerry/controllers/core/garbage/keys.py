"""Which change wakes which node: the graph knows; here the informers are tied to it."""

from __future__ import annotations

from collections.abc import Callable

from skerry.api.kinds import GroupVersionResource, ResourceInfo
from skerry.controllers.core.garbage.graph import Graph, NodeKey, node_of
from skerry.logic.resource import Object
from skerry.runtime.informer import Handler

DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def feeding(graph: Graph, info: ResourceInfo, add: Callable[[NodeKey], None]) -> Handler:
    """Return the handler that keeps *graph* up to date with one type."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is not None:
            wakes = graph.put(node_of(info, new))
        elif old is not None:
            wakes = graph.remove(node_of(info, old).key)
        else:
            return
        for key in sorted(wakes):  # the same order in every run of a seed
            add(key)

    return handle
