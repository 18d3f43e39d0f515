"""Which fields each message has: the facts of Kubernetes' API types, in ``fields.json``.

``kinds`` maps an apiVersion and kind to a message; ``messages`` maps a message to its fields, one
``number name type flags`` after the other, separated by semicolons. Flags: ``r`` repeated, ``m``
a map from strings, ``i`` inlined into the surrounding JSON object (its name is ``-``), ``o``
omitted from JSON when it has its zero value. The types are ``string``, ``bool``, ``int``,
``uint``, ``double``, ``bytes``, ``list`` (a message that wraps a list of strings) and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import orjson

# Options, Status and the like belong to every group version.
_META = "meta.k8s.io/v1"


class Field(NamedTuple):
    """One field of a message."""

    number: int
    name: str
    type: str
    repeated: bool
    is_map: bool
    inline: bool
    omits_zero: bool


class _Table(NamedTuple):
    kinds: Mapping[str, Mapping[str, str]]
    messages: Mapping[str, str]


@cache
def _table() -> _Table:
    raw = orjson.loads(files(__package__).joinpath("fields.json").read_bytes())
    return _Table(raw["kinds"], raw["messages"])


def message_of(api_version: str, kind: str) -> str | None:
    """Return the message that carries a kind, None for one that is not built in."""
    kinds = _table().kinds
    return kinds.get(api_version, {}).get(kind) or kinds[_META].get(kind)


@cache
def fields_of(message: str) -> Mapping[int, Field]:
    """Return the fields of *message* by number; read on first use, one message at a time."""
    text = _table().messages[message]
    fields = [_field(entry) for entry in text.split(";") if entry]
    return {field.number: field for field in fields}


def _field(entry: str) -> Field:
    number, name, type_name, *rest = entry.split(" ")
    flags = rest[0] if rest else ""
    return Field(
        int(number), name, type_name, "r" in flags, "m" in flags, "i" in flags, "o" in flags
    )
