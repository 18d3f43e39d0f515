"""Rows by key, and what the batch under way has changed of them.

A table remembers, for each key written since the last settling, the row as it was before. That is
all a batch is: the row now is in the table, so writes to one key consolidate by themselves, and a
key whose row came back to what it was drops out when the changes are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from skerry.kit.invariant import InvariantError


class Ordered(Protocol):
    """A key: hashable, and ordered among its like, so that every output has one order."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __hash__(self) -> int: ...


K = TypeVar("K", bound=Ordered)
V = TypeVar("V")


class Change(NamedTuple, Generic[K, V]):
    """One row that differs: ``old`` None when it is new, ``new`` None when it is gone."""

    key: K
    old: V | None
    new: V | None


class Batch(Protocol):
    """Where a table says that it has begun to differ."""

    def began(self, table: Table[Any, Any]) -> None: ...


class Table(Generic[K, V]):
    """Rows by key. ``None`` is never a row.

    Reads see a write at once; tables derived from this one follow when the flow is settled. A
    derived table is written by its operator alone.
    """

    def __init__(self, batch: Batch, name: str, *, derived: bool = False) -> None:
        self.name = name
        self._batch = batch
        self._derived = derived
        self._rows: dict[K, V] = {}
        # The rows written in this batch as they were before it. For operators and the flow.
        self.before: dict[K, V | None] = {}
        # Whether some key was written twice in this batch, and may be what it was.
        self._rewritten = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {len(self)} rows>"

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[K]:
        """Yield the keys in order."""
        return iter(sorted(self._rows))

    def get(self, key: K) -> V | None:
        return self._rows.get(key)

    def items(self) -> list[tuple[K, V]]:
        """Return every row, in the order of keys."""
        return [(key, self._rows[key]) for key in self]

    def put(self, key: K, row: V) -> None:
        """Have *row* under *key*; an equal one is no change."""
        if self._derived:
            raise self._is_derived()
        self.write(key, row)

    def drop(self, key: K) -> None:
        """Have no row under *key*; there need not be one."""
        if self._derived:
            raise self._is_derived()
        self.write(key, None)

    def _is_derived(self) -> InvariantError:
        return InvariantError(f"table {self.name} is derived: only its operator writes it")

    def write(self, key: K, row: V | None) -> None:
        """Put or drop a row of whatever table. For operators and the flow."""
        old = self._rows.get(key)
        if old == row:
            return
        self.note(key, old)
        if row is None:
            del self._rows[key]
        else:
            self._rows[key] = row

    def note(self, key: K, old: V | None) -> None:
        """Remember the row of *key* before this batch, unless it was written in it already."""
        before = self.before
        if not before:
            self._rewritten = False
            self._batch.began(self)
        if key not in before:
            before[key] = old
        else:
            self._rewritten = True

    def changes(self, before: dict[K, V | None] | None = None) -> list[Change[K, V]]:
        """Return what differs from *before*, by default of the batch under way, in key order."""
        known = self.before if before is None else before
        if not known:
            return []
        # A write that changes nothing is not noted: only a second one can undo the first.
        differs = before is None and not self._rewritten
        found = []
        for key in sorted(known) if len(known) > 1 else known:
            old, new = known[key], self.get(key)
            if differs or old != new:
                found.append(Change(key, old, new))
        return found
