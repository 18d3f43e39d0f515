"""What new workspaces begin with, made once and rendered for each.

Workspaces of one type and one owner begin alike, but for their own name and path, the moment, and
what makes each object itself. So their objects are made and encoded once, with placeholders where
those belong; a further workspace is one substitution per object. Placeholders are random: nothing
that anybody has written is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, TypeVar

import orjson

from skerry.kit.ids import IdSource
from skerry.store.base import Write

_SHARED: Final = ("cluster", "path", "now", "parent", "name", "owner_uid")
# Different for every object: its uid. After that, ends of generated names.
_UID, _SUFFIX = len(_SHARED), len(_SHARED) + 1

T = TypeVar("T")


class Placeholders:
    """Stand-ins for what differs, among them some *names*; each is a text found nowhere else."""

    def __init__(self, ids: IdSource, names: int = 0) -> None:
        self.all = tuple(ids.uid() for _ in range(_SUFFIX + names))
        self.cluster, self.path, self.now, self.parent, self.name, self.owner_uid = self.all[
            : len(_SHARED)
        ]
        self.uid, self.suffixes = self.all[_UID], self.all[_SUFFIX:]


class ObjectTemplate:
    """Creates of objects, as templates in which placeholders stand for what differs."""

    def __init__(self, writes: Sequence[Write], placeholders: Placeholders) -> None:
        self._renderers = [_renderer_of(write, placeholders) for write in writes]
        self._names = len(placeholders.suffixes)

    def render(
        self,
        ids: IdSource,
        *,
        cluster: str,
        path: str,
        now: str,
        parent: str = "",
        name: str = "",
        owner_uid: str = "",
    ) -> list[Write]:
        """Return the creates of one workspace's content."""
        values = [cluster, path, now, parent, name, owner_uid, ""]
        values += [ids.suffix() for _ in range(self._names)]
        encoded = [orjson.dumps(value)[1:-1] for value in values]
        writes = []
        for key_of, value_of in self._renderers:
            encoded[_UID] = ids.uid().encode()
            writes.append(Write(key_of(values), value_of(encoded), expected=0))
        return writes


_KeyOf = Callable[[Sequence[str]], str]
_ValueOf = Callable[[Sequence[bytes]], bytes]


def _renderer_of(write: Write, placeholders: Placeholders) -> tuple[_KeyOf, _ValueOf]:
    """Return how key and value are made of what differs."""
    text, key_slots = _pattern(write.key, placeholders)
    # Latin-1 is one character per byte, whatever the bytes mean.
    stored, slots = _pattern((write.value or b"").decode("latin-1"), placeholders)
    value, key_values, values = stored.encode("latin-1"), _taken(key_slots), _taken(slots)

    def key_of(differing: Sequence[str]) -> str:
        return text % key_values(differing)

    def value_of(differing: Sequence[bytes]) -> bytes:
        return value % values(differing)

    return key_of, value_of


def _pattern(text: str, placeholders: Placeholders) -> tuple[str, list[int]]:
    """Return *text* as a format, and which of what differs fills its places."""
    found = re.compile("|".join(placeholders.all))
    slots = [placeholders.all.index(match) for match in found.findall(text)]
    return found.sub("%s", text.replace("%", "%%")), slots


def _taken(slots: Sequence[int]) -> Callable[[Sequence[T]], tuple[T, ...]]:
    """Return the function that takes the values at *slots*."""
    if len(slots) == 1:
        # Of one place an itemgetter returns the value itself.
        (only,) = slots
        return lambda values: (values[only],)
    if not slots:
        return lambda values: ()
    return itemgetter(*slots)
