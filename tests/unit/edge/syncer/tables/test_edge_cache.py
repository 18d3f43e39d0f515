"""Watches at the edge: few namespaces one by one, many at once, each shared."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.edge_cache import EdgeCache
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.syncing.access import MAX_NAMESPACES
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.twin import Twin

MAPS = GroupVersionResource("", "v1", "configmaps")
PAGE = ObjectRef("", "", "configmaps", "shop", "page")


def edge_cache() -> EdgeCache:
    return EdgeCache(InformerFactory(Client(Twin()), ids=SeededIds(0)))


def page(version: str = "1") -> Object:
    metadata = {"name": "page", "namespace": "shop", "uid": "u", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


async def test_a_namespace_has_one_watch_for_all_who_ask() -> None:
    cache = edge_cache()
    assert cache.watch(MAPS, "shop") is cache.watch(MAPS, "shop")
    assert cache.watch(MAPS, "shop") is not cache.watch(MAPS, "bank")


async def test_what_was_not_read_yet_is_not_known() -> None:
    cache = edge_cache()
    assert not cache.known(MAPS, PAGE)
    cache.watch(MAPS, "shop").synced.set()
    assert cache.known(MAPS, PAGE)
    assert cache.get(MAPS, PAGE) is None
    assert not cache.known(MAPS, PAGE._replace(namespace="bank"))


async def test_rows_and_their_changes_are_sent_with_their_names() -> None:
    cache = edge_cache()
    sent: list[tuple[ObjectRef, bool, bool]] = []
    cache.changed.connect(lambda ref, old, new: sent.append((ref, old is None, new is None)))
    watch = cache.watch(MAPS, "shop")
    watch.apply("ADDED", page())
    watch.apply("MODIFIED", page("2"))
    found = cache.get(MAPS, PAGE)
    assert found is not None
    assert found["metadata"]["uid"] == "u"
    watch.apply("DELETED", page("2"))
    assert sent == [(PAGE, True, False), (PAGE, False, False), (PAGE, False, True)]
    assert cache.get(MAPS, PAGE) is None


async def test_a_place_is_complete_once_and_after_its_rows_were_sent() -> None:
    cache = edge_cache()
    sent: list[object] = []
    cache.changed.connect(lambda ref, _old, _new: sent.append(ref.name))
    cache.completed.connect(lambda gvr, namespace: sent.append((gvr, namespace)))
    watch = cache.watch(MAPS, "shop")
    await watch.replace([page()])
    await watch.replace([])
    assert sent == ["page", (MAPS, "shop"), "page"]


async def test_in_many_namespaces_a_type_is_watched_once_for_the_whole_edge() -> None:
    cache = edge_cache()
    first = cache.watch(MAPS, "n0")
    for number in range(1, MAX_NAMESPACES):
        cache.watch(MAPS, f"n{number}")
    wide = cache.watch(MAPS, "one-too-many")
    assert cache.watch(MAPS, "and-another") is wide
    # From then on everybody is served by it, also those who had a watch of their own.
    assert cache.watch(MAPS, "n0") is wide is not first
