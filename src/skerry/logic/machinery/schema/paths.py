"""Where in an object something was found, kept cheaply until somebody asks.

A path is a linked pair ``(parent, segment)``, the root is ``None``. Making one costs a tuple;
only a finding renders it. Segments are field names, list indexes and ``MapKey`` (the key of a
free-form map), which Kubernetes prints as ``.key`` when a schema rule fails and as ``[key]``
where it builds a field path.
"""

from __future__ import annotations

from typing import Any, TypeAlias


class MapKey(str):
    """A key of a free-form map rather than a declared field."""

    __slots__ = ()


Path: TypeAlias = "tuple[Any, str | int] | None"


def segments(path: Path) -> list[str | int]:
    """Return the segments from the root down."""
    found: list[str | int] = []
    while path is not None:
        path, segment = path
        found.append(segment)
    found.reverse()
    return found


def dotted(path: Path, prefix: str = "") -> str:
    """Render as schema rules and strict decoding do: ``spec.labels.app``, ``spec.ports[0]``."""
    text = prefix
    for segment in segments(path):
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else segment
    return text


def bracketed(path: Path, prefix: str = "") -> str:
    """Render as Kubernetes field paths do: the keys of free-form maps stand in brackets."""
    text = prefix
    for segment in segments(path):
        if isinstance(segment, int | MapKey):
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else segment
    return text
