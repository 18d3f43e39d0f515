"""Checks that are always on."""

from __future__ import annotations


class InvariantError(Exception):
    """A bug in skerry: something that cannot happen has happened."""


def invariant(condition: object, message: str) -> None:
    """Stop loudly unless *condition* holds; unlike ``assert``, ``-O`` does not remove it."""
    if not condition:
        raise InvariantError(message)
