"""Which change enqueues which node: the graph knows; here one type's changes are fed into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.core.garbage.graph import Graph, Node, NodeKey, unpacked
from skerry.runtime.answers import EventKind

DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")

# Others get the loop after this many objects of a list.
_CHUNK = 500


class Feed:
    """Keeps a graph up to date with one type; what a reflector fills."""

    def __init__(
        self, graph: Graph, gvr: GroupVersionResource, add: Callable[[NodeKey], None]
    ) -> None:
        self._graph = graph
        self._gvr = gvr
        self._add = add
        self.synced = asyncio.Event()

    async def replace(self, items: Sequence[Node]) -> None:
        gone = {unpacked(key) for key in self._graph.of_type(self._gvr)}
        for count, node in enumerate(items, 1):
            gone.discard(node.key)
            self._enqueue(self._graph.put(node))
            if count % _CHUNK == 0:
                await asyncio.sleep(0)
        for key in sorted(gone):
            self._enqueue(self._graph.remove(key))
        self.synced.set()

    def apply(self, kind: EventKind, item: Node) -> None:
        if kind == "DELETED":
            self._enqueue(self._graph.remove(item.key))
        else:
            self._enqueue(self._graph.put(item))

    async def clear(self) -> None:
        """Take the type out of the graph: its objects went with it."""
        await self.replace(())

    def _enqueue(self, keys: set[NodeKey]) -> None:
        for key in sorted(keys):  # the same order in every run of a seed
            self._add(key)
