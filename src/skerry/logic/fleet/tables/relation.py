"""Rows by a pair of keys, found from either side.

Placement and item, placement and mailbox, item and mailbox: the chain is made of such pairs. They
are kept as dictionaries of dictionaries, so no tuple is stored for a pair; at a million rows that
is the memory. The way back, from the second key to the first, is an index that costs as much as
the rows do, so it is kept only where somebody asks that way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from skerry.kit.invariant import InvariantError, invariant
from skerry.logic.fleet.tables.table import Batch, Ordered, Table

A = TypeVar("A", bound=Ordered)
B = TypeVar("B", bound=Ordered)
V = TypeVar("V")

_NO_ROWS: Mapping[Any, Any] = MappingProxyType({})
_NOBODY: frozenset[Any] = frozenset()


class Relation(Table[tuple[A, B], V], Generic[A, B, V]):
    """A table whose key is a pair."""

    def __init__(
        self, batch: Batch, name: str, *, derived: bool = False, reverse: bool = False
    ) -> None:
        """*reverse*: keep the index that ``having`` asks."""
        super().__init__(batch, name, derived=derived)
        self._of: dict[A, dict[B, V]] = {}
        self._having: dict[B, set[A]] | None = {} if reverse else None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and len(key) == 2 and key[1] in self._of.get(key[0], _NO_ROWS)

    def __iter__(self) -> Iterator[tuple[A, B]]:
        return ((a, b) for a in sorted(self._of) for b in sorted(self._of[a]))

    def items(self) -> list[tuple[tuple[A, B], V]]:
        return [((a, b), self._of[a][b]) for a, b in self]

    def get(self, key: tuple[A, B]) -> V | None:
        rows = self._of.get(key[0])
        return None if rows is None else rows.get(key[1])

    def at(self, a: A, b: B) -> V | None:
        """Return the row of a pair."""
        rows = self._of.get(a)
        return None if rows is None else rows.get(b)

    def of(self, a: A) -> Mapping[B, V]:
        """Return the rows of *a* as they are now, not to be written; in no promised order."""
        return self._of.get(a, _NO_ROWS)

    def firsts(self) -> list[A]:
        """Return every first key that has rows, in order."""
        return sorted(self._of)

    def having(self, b: B) -> Collection[A]:
        """Return every first key with a row for *b*; in no promised order."""
        if self._having is None:
            raise InvariantError(f"relation {self.name} keeps no index of the way back")
        return self._having.get(b, _NOBODY)

    def keep_reverse(self) -> None:
        """Keep the index that ``having`` asks from now on; for wiring, while there are no rows."""
        if self._having is None:
            invariant(not self._count, f"relation {self.name} has rows: ask for the index before")
            self._having = {}

    def put_pair(self, a: A, b: B, row: V) -> None:
        """Have *row* for a pair; an equal one is no change."""
        if self._derived:
            raise self._is_derived()
        self.write_pair(a, b, row)

    def drop_pair(self, a: A, b: B) -> None:
        """Have no row for a pair; there need not be one."""
        if self._derived:
            raise self._is_derived()
        self.write_pair(a, b, None)

    def replace(self, a: A, rows: Mapping[B, V]) -> None:
        """Make the rows of *a* exactly these."""
        for b in [b for b in self.of(a) if b not in rows]:
            self.drop_pair(a, b)
        for b, row in rows.items():
            self.put_pair(a, b, row)

    def write(self, key: tuple[A, B], row: V | None) -> None:
        self.write_pair(*key, row)

    def write_pair(self, a: A, b: B, row: V | None) -> None:
        """Put or drop a row of whatever relation. For operators and the flow."""
        rows = self._of.get(a)
        old = None if rows is None else rows.get(b)
        if old == row:
            return
        self.note((a, b), old)
        if row is None:
            self._remove(a, b)
            return
        if rows is None:
            rows = self._of[a] = {}
        rows[b] = row
        if old is None:
            self._count += 1
            if self._having is not None:
                self._having.setdefault(b, set()).add(a)

    def _remove(self, a: A, b: B) -> None:
        rows = self._of[a]
        del rows[b]
        self._count -= 1
        if not rows:
            del self._of[a]
        if self._having is not None:
            firsts = self._having[b]
            firsts.discard(a)
            if not firsts:
                del self._having[b]
