"""Stores of what plugins look up: by name, by namespace, and how often they changed."""

from __future__ import annotations

from skerry.api.kinds import GroupVersion
from skerry.api.objects import Object
from skerry.scheduler.cache.objects import KINDS, ClusterObjects, ObjectStore, key_of


def obj(name: str, namespace: str = "", **fields: object) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"metadata": metadata, **fields}


def test_objects_are_known_by_namespace_and_name() -> None:
    assert key_of(obj("a", "n")) == "n/a"
    assert key_of(obj("a")) == "a"
    store = ObjectStore()
    store.set(obj("a", "n", v=1))
    store.set(obj("a", v=2))
    assert (store.get("a", "n") or {})["v"] == 1
    assert (store.get("a") or {})["v"] == 2
    assert store.get("b") is None
    assert (len(store), len(list(store))) == (2, 2)


def test_a_namespace_has_its_own_and_no_longer_than_they_live() -> None:
    store = ObjectStore()
    store.set(obj("a", "n"))
    store.set(obj("b", "m"))
    assert store.within("n") == [obj("a", "n")]
    store.remove(obj("a", "n"))
    store.remove(obj("never", "x"))
    assert store.within("n") == store.within("x") == []


def test_every_change_moves_the_generation() -> None:
    store = ObjectStore()
    seen = [store.generation]
    store.set(obj("a"))
    seen.append(store.generation)
    store.set(obj("a"))
    seen.append(store.generation)
    store.remove(obj("a"))
    seen.append(store.generation)
    assert seen == sorted(set(seen))


def test_listeners_hear_of_what_is_set_until_they_stop() -> None:
    store, heard = ObjectStore(), list[str]()
    stop = store.subscribe(lambda each: heard.append(each["metadata"]["name"]))
    store.set(obj("a"))
    stop()
    store.set(obj("b"))
    assert heard == ["a"]


def test_a_store_may_change_while_it_is_gone_through() -> None:
    store = ObjectStore()
    store.set(obj("a"))
    for _ in store:
        store.set(obj("b"))
    assert len(store) == 2


def test_there_is_a_store_for_every_kind() -> None:
    objects = ClusterObjects()
    stores = [objects.store(attribute) for attribute in KINDS]
    assert len({id(store) for store in stores}) == len(KINDS)
    assert set(vars(objects)) == set(KINDS)
    assert all(GroupVersion.parse(version).version for version, _ in KINDS.values())
