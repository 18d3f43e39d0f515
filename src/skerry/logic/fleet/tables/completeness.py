"""Unknown is not absent.

A watch that has not been read to the end shows some of what there is. What it does not show may be
there, so nothing follows from its absence. An input is therefore *complete* for a scope or it is
not; a row that depends on an incomplete scope is *pending*: it may be shown, and it waits. It never
becomes a deletion. ``verdict`` is the one place where that is decided; ``Completeness`` knows which
scopes were read and which rows wait for the others, so that a row is evaluated again when its
scope has been read, and not before.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from skerry.api.kinds import GroupResource
from skerry.api.refs import ClusterName
from skerry.kit.invariant import invariant
from skerry.logic.fleet.tables.table import Ordered

S = TypeVar("S", bound=Ordered)
K = TypeVar("K", bound=Ordered)


class Scope(NamedTuple):
    """The objects of one kind in one logical cluster."""

    cluster: ClusterName
    kind: GroupResource


class Verdict(Enum):
    """What has to happen so that the actual row is as desired."""

    NONE = "none"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    PENDING = "pending"


def verdict(
    desired: object | None, actual: object | None, *, same: bool, missing: object | None
) -> Verdict:
    """Compare a row with what is there; *same* tells whether two that exist are equal.

    *missing* is a scope the desired row depends on that has not been read to the end, or None. It
    decides before anything else: a row that would be created might be desired differently, and one
    that would be deleted might be desired.
    """
    if missing is not None:
        return Verdict.PENDING
    if desired is None:
        return Verdict.NONE if actual is None else Verdict.DELETE
    if actual is None:
        return Verdict.CREATE
    return Verdict.NONE if same else Verdict.UPDATE


class Completeness(Generic[S, K]):
    """Which scopes have been read to the end, and which rows are pending on the others.

    A scope is usually a ``Scope``; it may be the key of a watch that shows a kind in all clusters.
    """

    def __init__(self) -> None:
        self._complete: set[S] = set()
        self._pending: dict[K, S] = {}
        self._waiting: dict[S, set[K]] = {}

    def is_complete(self, scope: S) -> bool:
        return scope in self._complete

    def missing(self, scopes: Iterable[S]) -> S | None:
        """Return the first of *scopes* that is incomplete; None when all were read."""
        return next((scope for scope in scopes if scope not in self._complete), None)

    def complete(self, scope: S) -> list[K]:
        """Take that *scope* was read to the end; returns the rows to evaluate again, in order."""
        self._complete.add(scope)
        found = sorted(self._waiting.pop(scope, ()))
        for key in found:
            del self._pending[key]
        return found

    def incomplete(self, scope: S) -> None:
        """Take that *scope* is not known any more: its watch is a new one, or has gone."""
        self._complete.discard(scope)

    def park(self, key: K, scope: S) -> None:
        """Have the row *key* wait for *scope*, and for that one alone."""
        invariant(scope not in self._complete, f"{key} would wait for {scope}, which was read")
        self.unpark(key)
        self._pending[key] = scope
        self._waiting.setdefault(scope, set()).add(key)

    def unpark(self, key: K) -> None:
        """Have the row *key* wait no longer: it was evaluated, or nobody asks for it now."""
        scope = self._pending.pop(key, None)
        if scope is None:
            return
        waiting = self._waiting[scope]
        waiting.discard(key)
        if not waiting:
            del self._waiting[scope]

    def pending(self, key: K) -> S | None:
        """Return what the row *key* waits for; None when it is not pending."""
        return self._pending.get(key)

    def is_awaited(self, scope: S) -> bool:
        """Tell whether rows are pending on *scope*."""
        return scope in self._waiting
