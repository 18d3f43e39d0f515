"""The objects an informer holds, by key and by whatever they are asked for by.

Keys are ``(cluster, namespace, name)``; cluster is empty on a plain server, namespace for
cluster-scoped objects. Objects handed out are shared and read-only: copy before changing. Tests
switch the mutation check on, which finds whoever did not.

``packed`` keeps encoded bytes instead of dicts (a fifth of the memory, nothing for the garbage
collector to walk) and decodes on each read. What an object is indexed under is worked out when it
comes and when it goes, so an index function depends on the object alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from sys import intern
from typing import Any, NamedTuple

import orjson

from skerry.api.objects import Object
from skerry.kit.invariant import invariant
from skerry.runtime.client import cluster_of


class Key(NamedTuple):
    """Where an object is, within its type."""

    cluster: str
    namespace: str
    name: str

    def __str__(self) -> str:
        local = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.cluster}|{local}" if self.cluster else local


IndexFunction = Callable[[Object], Iterable[Hashable]]


def key_of(obj: Mapping[str, Any]) -> Key:
    """Return where *obj* is.

    Many caches name the same places, and mailboxes hold objects of the same names: each text is
    kept once.
    """
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    return Key(intern(cluster_of(obj)), intern(namespace), intern(metadata["name"]))


def by_namespace(obj: Object) -> Iterable[Hashable]:
    """Index under ``(cluster, namespace)``."""
    key = key_of(obj)
    return ((key.cluster, key.namespace),)


class MutatedObject(Exception):
    """Somebody changed an object of the cache."""


class Index:
    """Objects of one type, by key and by secondary indexes."""

    def __init__(self, *, packed: bool = False, mutation_check: bool = False) -> None:
        self._packed = packed
        self._held: dict[Key, Any] = {}
        self._functions: dict[str, IndexFunction] = {}
        self._indexes: dict[str, dict[Hashable, dict[Key, None]]] = {}
        self._proofs: dict[Key, bytes] | None = {} if mutation_check and not packed else None

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: Key) -> bool:
        return key in self._held

    def get(self, key: Key) -> Object | None:
        """Return the object at *key*; shared, read-only."""
        held = self._held.get(key)
        return None if held is None else self._opened(held)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._held)

    def objects(self) -> Iterator[Object]:
        """Yield every object, in no particular order; do not wait in between."""
        return map(self._opened, self._held.values())

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index every object, present and future, under what *function* returns."""
        if self._functions.get(name) is function:
            return
        invariant(name not in self._functions, f"index {name!r} is defined twice")
        self._functions[name] = function
        self._indexes[name] = {}
        for key, held in self._held.items():
            self._enter(key, name, function(self._opened(held)))

    def keys_by(self, name: str, value: Hashable) -> list[Key]:
        """Return the keys an index holds for *value*, in the order they came."""
        return list(self._indexes[name].get(value, ()))

    def by(self, name: str, value: Hashable) -> list[Object]:
        """Return the objects an index holds for *value*."""
        return [self._opened(self._held[key]) for key in self._indexes[name].get(value, ())]

    def first(self, name: str, value: Hashable) -> Object | None:
        """Return the object that came first of those an index holds for *value*."""
        for key in self._indexes[name].get(value, ()):
            return self._opened(self._held[key])
        return None

    def values(self, name: str) -> Iterable[Hashable]:
        """Return everything an index has entries for."""
        return self._indexes[name].keys()

    def entries(self, obj: Object) -> tuple[tuple[str, Hashable], ...]:
        """Return the index names and values *obj* would be found under."""
        return tuple((name, value) for name, f in self._functions.items() for value in f(obj))

    def put(self, key: Key, obj: Object) -> Object | None:
        """Hold *obj* at *key*; returns what was there."""
        old = self.remove(key)
        if self._packed:
            # An exact copy: orjson's own buffer is kept at 2.6 times its content.
            self._held[key] = bytes(memoryview(orjson.dumps(obj)))
        else:
            self._held[key] = obj
        if self._proofs is not None:
            self._proofs[key] = _proof(obj)
        for name, function in self._functions.items():
            self._enter(key, name, function(obj))
        return old

    def remove(self, key: Key) -> Object | None:
        """Hold nothing at *key*; returns what was there."""
        held = self._held.pop(key, None)
        if held is None:
            return None
        if self._proofs is not None:
            _verify(key, held, self._proofs.pop(key))
        old = self._opened(held)
        # Asked again rather than kept: for most objects that would be as large as the object.
        for name, function in self._functions.items():
            entries = self._indexes[name]
            for value in set(function(old)):
                entries[value].pop(key, None)
                if not entries[value]:
                    del entries[value]
        return old

    def check_unchanged(self) -> None:
        """Raise ``MutatedObject`` when a held object was changed; needs the mutation check."""
        for key, proof in (self._proofs or {}).items():
            _verify(key, self._held[key], proof)

    def _enter(self, key: Key, name: str, values: Iterable[Hashable]) -> None:
        entries = self._indexes[name]
        for value in values:
            entries.setdefault(value, {})[key] = None

    def _opened(self, held: Any) -> Object:
        opened: Object = orjson.loads(held) if self._packed else held
        return opened


def _proof(obj: Object) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def _verify(key: Key, obj: Object, proof: bytes) -> None:
    if _proof(obj) != proof:
        raise MutatedObject(f"the cached object {key} was changed by its reader: copy it first")
