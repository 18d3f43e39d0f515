"""Checks that are always on."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class InvariantError(Exception):
    """A bug in skerry: something that cannot happen has happened."""


def invariant(condition: object, message: str) -> None:
    """Stop loudly unless *condition* holds; unlike ``assert``, ``-O`` does not remove it."""
    if not condition:
        raise InvariantError(message)


def present(value: T | None, message: str) -> T:
    """Return *value*, which cannot be None unless there is a bug."""
    if value is None:
        raise InvariantError(message)
    return value
