"""An API object as it travels: what JSON makes of a manifest.

Two aliases, so that a signature can say "an object of the API" (``Object``), or "one that is only
read, or a part of one" (``Raw``), without knowing the machinery that serves its type. Objects out
of a cache are read-only by agreement; tests run with the mutation check on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from skerry.kit.text import whole_number

Object: TypeAlias = dict[str, Any]
Raw: TypeAlias = Mapping[str, Any]


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of an object, none where there is no metadata."""
    return (obj.get("metadata") or {}).get("labels") or {}


def section_of(obj: Raw, name: str) -> Raw:
    """Return the mapping *obj* has under *name*; empty where that is none, whatever it is."""
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def section_of_any(value: Any, name: str) -> Raw:
    """As ``section_of``, of what may be no mapping itself."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def revision_of(resource_version: object) -> int:
    """Return a resourceVersion as the number it is at every server; 0 when it is none.

    Opaque by the letter of the API; who compares two must know what to do with 0, which is
    older than everything.
    """
    return whole_number(str(resource_version or "")) or 0
