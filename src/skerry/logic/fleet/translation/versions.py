"""At which version a type is written to a mailbox that several workspaces contribute to.

Every contributor must serve it. If all of them prefer the same version, that one; else the most
stable and newest of those they share. Without any in common the newest of all is taken, so that
the answer is the same every time, and the disagreement is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skerry.logic.fleet.translation.types import ServedType
from skerry.logic.machinery.crd.versions import ordered


class Agreement(NamedTuple):
    """A version; ``shared`` tells whether every contributor serves it."""

    version: str
    shared: bool


def agreed_version(types: Iterable[ServedType]) -> Agreement:
    """Return the version for a type that each of *types* describes as one workspace serves it."""
    found = list(types)
    preferred = {each.versions[0] for each in found}
    if len(preferred) == 1:
        return Agreement(preferred.pop(), shared=True)
    shared = set(found[0].versions).intersection(*(each.versions for each in found[1:]))
    if shared:
        return Agreement(ordered(shared)[0], shared=True)
    return Agreement(ordered({v for each in found for v in each.versions})[0], shared=False)
