"""Small sets the server consults itself: followed by changes, asked of the store in doubt."""

from __future__ import annotations

from typing import Any

from skerry.api.keys import ObjectKey
from skerry.server.change import Change
from skerry.server.codec import encode
from skerry.server.observed import ObservedObjects
from skerry.store.base import Event, Write
from skerry.store.memory import MemoryStore


def stored(name: str, **fields: Any) -> bytes:
    metadata = {"name": name, "managedFields": [{}], **fields}
    return encode({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata})


def key(name: str, namespace: str = "n", cluster: str = "root") -> str:
    return ObjectKey("", "limitranges", cluster, namespace, name).path()


def changed(name: str, value: bytes | None, namespace: str = "n") -> Change:
    return Change(Event(2, key(name, namespace), value, stored(name), 1))


def test_objects_come_and_go_by_place() -> None:
    found = ObservedObjects("", "limitranges")
    found.observe(changed("a", stored("a")))
    found.observe(changed("b", stored("b"), "other"))
    assert list(found.within("root", "n")) == ["a"]
    assert "managedFields" not in found.within("root", "n")["a"]["metadata"]
    found.observe(changed("a", None))
    assert found.within("root", "n") == {}
    assert list(found.by_place) == [("root", "other")]
    found.observe(changed("never", None, "nowhere"))


def test_what_has_no_effect_is_as_good_as_absent() -> None:
    found = ObservedObjects("", "limitranges", lambda obj: "inert" in obj["metadata"]["name"])
    found.observe(changed("inert", stored("inert")))
    assert found.within("root", "n") == {}
    found.observe(changed("a", stored("a")))
    assert list(found.within("root", "n")) == ["a"]


async def test_what_another_server_just_made_is_found_in_the_store() -> None:
    store, found = MemoryStore("test"), ObservedObjects("", "limitranges")
    await store.commit([Write(key("new"), stored("new"))])
    fresh = await found.find(store, "root", "new", "n")
    assert fresh is not None
    assert fresh["metadata"]["name"] == "new"
    assert await found.find(store, "root", "other", "n") is None
    found.observe(changed("known", stored("known")))
    assert await found.find(store, "root", "known", "n") is found.within("root", "n")["known"]
    await store.close()
