"""Which summary has which name.

``<placement>-<resource>-<name>`` need not be unique: two API groups may have a resource of one
name, and dashes can be read in two ways. Of those who would share a name the first in order has
it and the others' are hashed, so the names depend only on which summaries there are.
"""

from __future__ import annotations

from typing import NamedTuple

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.summary.content import Subject, summary_name
from skerry.runtime.index import Key


class Cause(NamedTuple):
    """What a summary is there for: an object, placed by a placement."""

    placement: ObjectRef
    item: ObjectRef


class Names:
    """Names of the summaries there should be."""

    def __init__(self) -> None:
        self._claims: dict[Key, list[Cause]] = {}
        self._named: dict[Key, Cause] = {}
        self._keys: dict[Cause, Key] = {}

    def cause(self, key: Key) -> Cause | None:
        """Return what the summary at *key* is there for."""
        return self._named.get(key)

    def key(self, cause: Cause) -> Key | None:
        """Return where the summary of *cause* is."""
        return self._keys.get(cause)

    def claim(self, cause: Cause) -> set[Key]:
        """Give *cause* a name; returns the keys that now mean something else."""
        if cause in self._keys:
            return set()
        plain = _key(cause, hashed=False)
        return self._assign(plain, [*self._claims.get(plain, ()), cause])

    def release(self, cause: Cause) -> set[Key]:
        """Take the name of *cause* away; returns the keys that now mean something else."""
        if cause not in self._keys:
            return set()
        plain = _key(cause, hashed=False)
        return self._assign(plain, [each for each in self._claims[plain] if each != cause])

    def _assign(self, plain: Key, claims: list[Cause]) -> set[Key]:
        before = {self._keys[each]: each for each in self._claims.get(plain, ())}
        claims.sort()
        after = {_key(each, hashed=number > 0): each for number, each in enumerate(claims)}
        for key, cause in before.items():
            del self._keys[cause], self._named[key]
        for key, cause in after.items():
            self._keys[cause] = key
            self._named[key] = cause
        if claims:
            self._claims[plain] = claims
        else:
            del self._claims[plain]
        return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def _key(cause: Cause, *, hashed: bool) -> Key:
    placement, item = cause
    subject = Subject(item.group, "", item.resource, "", item.namespace, item.name)
    name = summary_name(placement.name, subject, hashed=hashed)
    return Key(placement.cluster, item.namespace, name)
