"""The tables of one owner, in the order in which they derive from each other.

Inputs are written at any time. ``settle`` lets the derived tables follow and returns what differs:
operators run in the order they were made, each after all its sources, and only those whose sources
changed. So a batch is seen whole, never half of it, and there are no cycles by construction.

    put, put, drop       inputs are other rows at once; derived tables and groups are as they were
    settle()             each operator that has to, once: derived rows follow
    settled.changes(t)   rows before and after; what came back to what it was is not among them
    put                  the next batch: to ask the last one for changes is a bug from here on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, TypeVar

from skerry.kit.invariant import invariant
from skerry.logic.fleet.tables.operators import (
    Fold,
    FoldRows,
    GroupRows,
    Groups,
    JoinRows,
    LookUp,
    MapRows,
    Meter,
    Operator,
    UnionRows,
)
from skerry.logic.fleet.tables.product import AttachRows, Folded, FoldProduct, Product, Sums
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Change, Ordered, Table

K = TypeVar("K", bound=Ordered)
R = TypeVar("R", bound=Ordered)
A = TypeVar("A", bound=Ordered)
B = TypeVar("B", bound=Ordered)
J = TypeVar("J", bound=Ordered)
G = TypeVar("G", bound=Ordered)
V = TypeVar("V")
W = TypeVar("W")
X = TypeVar("X")
C = TypeVar("C")
D = TypeVar("D")
F = TypeVar("F", bound=Fold[Any, Any])
S = TypeVar("S", bound=Sums[Any])


class Settled:
    """What one batch changed; to be read before the next one is settled.

    It compares with the rows as they are, so nothing is copied for whoever does not ask.
    """

    __slots__ = ("_batch", "_before", "_flow", "_touched")

    def __init__(
        self,
        flow: Dataflow,
        batch: int,
        before: dict[Any, dict[Any, Any]],
        touched: dict[Any, set[Any]],
    ) -> None:
        self._flow = flow
        self._batch = batch
        self._before = before
        self._touched = touched

    def __bool__(self) -> bool:
        """Tell whether anything was written."""
        return bool(self._before or self._touched)

    def changes(self, table: Table[K, V]) -> list[Change[K, V]]:
        """Return the rows of *table* that differ, in the order of keys."""
        before = self._before.get(table)
        if before is None:
            return []
        self._check()
        return table.changes(before)

    def groups(self, groups: Groups[G, F]) -> list[G]:
        """Return the groups that may have come to something else, in order."""
        return sorted(self._touched.get(groups, ()))

    def touched_in(self, several: Set[Groups[G, Any]]) -> set[G]:
        """Return the same of several, together and in no promised order."""
        found: set[G] = set()
        for groups, keys in self._touched.items():
            if groups in several:
                found |= keys
        return found

    def differs_in(self, tables: Set[Table[Any, Any]]) -> bool:
        """Tell whether anything was written to one of *tables*."""
        return not tables.isdisjoint(self._before)

    def keys(self, product: Product[J, A, B, V, W]) -> Iterator[tuple[J, A, B]]:
        """Yield the keys of a product whose rows differ, lazily and in a fixed order."""
        self._check()
        left, right = self._before.get(product.left, {}), self._before.get(product.right, {})
        return product.touched(left, right)

    def _check(self) -> None:
        invariant(self._flow.is_settled(self._batch), "a settled batch is read after a later write")


class Dataflow:
    """Makes tables and keeps the derived ones up. See the module's text."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._operators: list[Operator] = []
        # Which operators read a table or groups.
        self._readers: dict[Any, list[int]] = {}
        self._dirty: set[int] = set()
        self._batches = 0
        self._changed: list[Table[Any, Any]] = []
        self._regrouped: list[Groups[Any, Any]] = []

    @property
    def touched(self) -> int:
        """How many rows operators have read or written so far."""
        return self._meter.touched

    # -- inputs ------------------------------------------------------------------------------

    def table(self, name: str) -> Table[Any, Any]:
        """Return a new input; annotate it with the types of its keys and rows."""
        return Table(self, name)

    def relation(self, name: str, *, reverse: bool = False) -> Relation[Any, Any, Any]:
        """Return a new input by pairs; *reverse*: it can be asked from the second key, too."""
        return Relation(self, name, reverse=reverse)

    # -- operators ---------------------------------------------------------------------------

    def map(self, name: str, source: Table[K, V], row: Callable[[K, V], W | None]) -> Table[K, W]:
        """Return a table with ``row(key, row)`` for each row of *source*; None: no row."""
        result: Table[K, W] = Table(self, name, derived=True)
        self._derive((source,), MapRows(self._meter, source, result, row))
        return result

    def filter(self, name: str, source: Table[K, V], keep: Callable[[K, V], bool]) -> Table[K, V]:
        """Return a table with the rows of *source* to keep."""
        return self.map(name, source, lambda key, row: row if keep(key, row) else None)

    def union(self, name: str, *sources: Table[K, V]) -> Table[K, V]:
        """Return a table with the rows of all *sources*; of equal keys the first source's."""
        result: Table[K, V] = Table(self, name, derived=True)
        self._derive(sources, UnionRows(self._meter, sources, result))
        return result

    def lookup(
        self,
        name: str,
        left: Table[K, V],
        right: Table[R, W],
        on: Callable[[K, V], R | None],
        row: Callable[[K, V, W | None], X | None],
    ) -> Table[K, X]:
        """Return a table with ``row(key, left, right)``, the right row being the one named by *on*.

        Where *on* names none, or none is there, the right row is None.
        """
        result: Table[K, X] = Table(self, name, derived=True)
        self._derive((left, right), LookUp(self._meter, left, right, result, on, row))
        return result

    def join(
        self,
        name: str,
        left: Table[K, V],
        right: Table[R, W],
        left_on: Callable[[K, V], J],
        right_on: Callable[[R, W], J],
        row: Callable[[K, V, R, W], X | None],
    ) -> Relation[K, R, X]:
        """Return the pairs of rows that share a value, each as ``row`` makes it; None: no row."""
        return self.join_as(name, left, right, left_on, right_on, row, lambda other: other)

    def join_as(
        self,
        name: str,
        left: Table[K, V],
        right: Table[R, W],
        left_on: Callable[[K, V], J],
        right_on: Callable[[R, W], J],
        row: Callable[[K, V, R, W], X | None],
        key: Callable[[R], B],
    ) -> Relation[K, B, X]:
        """As ``join``; the pairs are of the left key and of ``key`` of the right one.

        Among the right rows that share a value, no two may be called the same.
        """
        result: Relation[K, B, X] = Relation(self, name, derived=True, reverse=True)
        operator = JoinRows(self._meter, left, right, result, left_on, right_on, row, key)
        self._derive((left, right), operator)
        return result

    def group(
        self,
        name: str,
        source: Table[K, V],
        by: Callable[[K, V], G],
        fold: Callable[[G], F],
    ) -> Groups[G, F]:
        """Return the rows of *source* folded by group."""
        result: Groups[G, F] = Groups(name, self._regroup)
        self._derive((source,), GroupRows(self._meter, source, result, by, fold))
        return result

    def rows(self, name: str, source: Groups[G, F], row: Callable[[G, F], X | None]) -> Table[G, X]:
        """Return a table with what each group comes to, for others to derive from."""
        result: Table[G, X] = Table(self, name, derived=True)
        self._derive((source,), FoldRows(self._meter, source, result, row))
        return result

    def product(
        self, name: str, left: Relation[J, A, V], right: Relation[J, B, W]
    ) -> Product[J, A, B, V, W]:
        """Return the product of two relations by the first key they share; it is never stored."""
        return Product(self._meter, name, left, right)

    def fold(
        self,
        name: str,
        product: Product[J, A, B, V, W],
        cells: Relation[A, B, C],
        facts: Table[B, D],
        row: Callable[[J, W, C | None, D | None], X],
        fold: Callable[[J, A, V, Iterable[tuple[B, X]]], F],
        mark: Callable[[V, X], int],
        sums: Callable[[], S],
    ) -> Folded[J, A, F, S]:
        """Return one fold for each left row of a product, over the right rows beside their cells.

        It is there as long as its left row is, even with nothing to fold. Beside each right row is
        also the fact of its key. And for each shared key what *sums* makes of the marks of its
        rows, summed up by right key; nothing where there is no sum but 0.
        """
        groups: Groups[tuple[J, A], F] = Groups(name, self._regroup)
        summed: Groups[J, S] = Groups(f"sums of {name}", self._regroup)
        result = Folded(groups, summed)
        operator = FoldProduct(
            self._meter, product, cells, facts, result, row=row, fold=fold, mark=mark, sums=sums
        )
        self._derive((product.left, product.right, cells, facts), operator)
        return result

    def attach(
        self,
        name: str,
        pairs: Relation[J, B, V],
        facts: Table[B, W],
        row: Callable[[B, V, W | None], X | None],
    ) -> Relation[J, B, X]:
        """Return for each pair ``row`` of it and of the fact of its second key; None: no row."""
        result: Relation[J, B, X] = Relation(self, name, derived=True)
        self._derive((pairs, facts), AttachRows(self._meter, pairs, facts, result, row))
        return result

    # -- batches -----------------------------------------------------------------------------

    def settle(self) -> Settled:
        """Let every derived table follow the inputs; returns what differs since the last time."""
        dirty = self._dirty
        while dirty:
            number = min(dirty)
            dirty.discard(number)
            self._operators[number].step()
        before: dict[Any, dict[Any, Any]] = {}
        for table in self._changed:
            before[table], table.before = table.before, {}
        touched: dict[Any, set[Any]] = {}
        for groups in self._regrouped:
            touched[groups], groups.touched = groups.touched, set()
        self._changed, self._regrouped = [], []
        self._batches += 1
        return Settled(self, self._batches, before, touched)

    def is_settled(self, batch: int) -> bool:
        """Tell whether *batch* was the last, and nothing was written since. For settled batches."""
        return batch == self._batches and not self._changed

    def began(self, table: Table[Any, Any]) -> None:
        """Take that *table* has its first change of this batch. For tables."""
        self._changed.append(table)
        self._dirty.update(self._readers.get(table, ()))

    def _regroup(self, groups: Groups[Any, Any]) -> None:
        self._regrouped.append(groups)
        self._dirty.update(self._readers.get(groups, ()))

    def _derive(self, sources: Iterable[Any], operator: Operator) -> None:
        for source in sources:
            invariant(not len(source), f"{source.name} has rows: derive before the first is put")
            self._readers.setdefault(source, []).append(len(self._operators))
        self._operators.append(operator)
