"""Caches of informers that no server fills: a test puts in what was observed, and events follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.index import IndexFunction, Key
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue
from tests.kit.sim.twin import Twin

NO_INDEXES: Mapping[str, IndexFunction] = {}


def cache(
    gvr: GroupVersionResource, *objects: Object, indexes: Mapping[str, IndexFunction] = NO_INDEXES
) -> Informer:
    """Return an informer that holds *objects*; ``apply`` it further events."""
    informer = Informer(Client(Twin()), gvr, ids=SeededIds(0))
    for name, function in indexes.items():
        informer.index.add_index(name, function)
    for obj in objects:
        informer.apply("ADDED", obj)
    informer.synced.set()
    return informer


def queue_of_keys() -> WorkQueue[Key]:
    """Return a queue for handlers to add to."""
    return WorkQueue("test", ids=SeededIds(0))


async def drained(queue: WorkQueue[Key]) -> list[str]:
    """Take all keys that are due out of *queue*, in its order."""
    found = []
    while len(queue):
        key = await queue.get()
        queue.done(key)
        found.append(str(key))
    return found


def owned(
    name: str, kind: str = "", owner: str = "", namespace: str = "shop", **fields: Any
) -> Object:
    """Return an object that *owner* controls; without one, an orphan."""
    metadata: Object = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
    if owner:
        reference = {"kind": kind, "name": owner, "uid": f"u-{owner}", "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"metadata": metadata | fields.pop("metadata", {}), "spec": {}, **fields}
