"""Caches of informers that no server fills: a test puts in what was observed, and events follow."""

from __future__ import annotations

from collections.abc import Mapping

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.index import IndexFunction
from skerry.runtime.informer import Informer
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
