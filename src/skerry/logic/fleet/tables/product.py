"""Products stay factored.

What goes, times where it goes: the items of a placement and its destinations are a million rows at
ten thousand edges and a hundred objects, and most of them are equal. So the product of two
relations that share their first key is *virtual*. Nothing of it is stored; a row is put together
when asked for; a change of one factor says which keys it touches by iterating over the other.

A fold over a product goes by factor as well. For each row of the left factor it folds the rows of
the right one, each beside its *cell*: what is known of just that pair, such as the report of an
item in a mailbox. A cell's change finds the products it is in through the smaller of the two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from skerry.logic.fleet.tables.operators import Fold, Groups, Meter
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Change, Ordered

J = TypeVar("J", bound=Ordered)
A = TypeVar("A", bound=Ordered)
B = TypeVar("B", bound=Ordered)
V = TypeVar("V")
W = TypeVar("W")
C = TypeVar("C")
R = TypeVar("R")
F = TypeVar("F", bound=Fold[Any, Any])


class Product(Generic[J, A, B, V, W]):
    """Rows by (j, a, b): a row of the left relation by (j, a) and one of the right by (j, b)."""

    def __init__(
        self, meter: Meter, name: str, left: Relation[J, A, V], right: Relation[J, B, W]
    ) -> None:
        self.name = name
        self.left = left
        self.right = right
        self._meter = meter
        left.keep_reverse()
        right.keep_reverse()

    def __len__(self) -> int:
        """Return how many rows there would be; one multiplication for each shared key."""
        return sum(len(self.left.of(j)) * len(self.right.of(j)) for j in self.left.firsts())

    def get(self, j: J, a: A, b: B) -> tuple[V, W] | None:
        """Return a row, put together now."""
        left, right = self.left.at(j, a), self.right.at(j, b)
        return None if left is None or right is None else (left, right)

    def joining(self, a: A, b: B) -> list[J]:
        """Return every j with a row (j, a, b), in order."""
        return sorted(self.shared(a, b))

    def shared(self, a: A, b: B) -> Iterable[J]:
        """As ``joining``, in no promised order: looks through the smaller of the two sides."""
        lefts, rights = self.left.having(a), self.right.having(b)
        few, many = (lefts, rights) if len(lefts) <= len(rights) else (rights, lefts)
        self._meter.touched += len(few)
        return [j for j in few if j in many]

    def touched(
        self, left: dict[tuple[J, A], V | None], right: dict[tuple[J, B], W | None]
    ) -> Iterator[tuple[J, A, B]]:
        """Yield, lazily, each key whose row differs from what these rows of before made.

        First what changed on the left, then what changed on the right alone; sorted within.
        """
        gone: dict[J, list[B]] = {}
        rights = self.right.changes(right)
        for (j, b), _, new in rights:
            if new is None:
                gone.setdefault(j, []).append(b)
        changed = set()
        for (j, a), _, _ in self.left.changes(left):
            changed.add((j, a))
            for b in sorted([*self.right.of(j), *gone.get(j, ())]):
                yield j, a, b
        for (j, b), _, _ in rights:
            for a in sorted(self.left.of(j)):
                if (j, a) not in changed:
                    yield j, a, b


class FoldProduct(Generic[J, A, B, V, W, C, R, F]):
    """Keeps one fold for each row of the left factor, over the rows of the right one."""

    def __init__(
        self,
        meter: Meter,
        product: Product[J, A, B, V, W],
        cells: Relation[A, B, C],
        result: Groups[tuple[J, A], F],
        row: Callable[[W, C | None], R],
        fold: Callable[[J, A, V, Iterable[tuple[B, R]]], F],
    ) -> None:
        """*row* puts a row of the right factor and its cell together; *fold* begins with rows.

        A left row that becomes another one begins anew, so it should hold no more than the fold
        depends on.
        """
        self._meter = meter
        self._product = product
        self._cells = cells
        self._result = result
        self._row = row
        self._fold = fold

    def step(self) -> None:
        left, right, result = self._product.left, self._product.right, self._result
        begun = set()
        for (j, a), _, row in left.changes():
            begun.add((j, a))
            result.set((j, a), None if row is None else self._begin(j, a, row))
        moved = set()
        for change in right.changes():
            moved.add(change.key)
            self._right_changed(change, begun)
        for (a, b), old, new in self._cells.changes():
            for j in self._product.shared(a, b):
                # Where the right row is another one too, its step has seen the cell as well.
                found = right.at(j, b)
                if found is None or (j, b) in moved or (j, a) in begun:
                    continue
                self._replace((j, a), b, self._row(found, old), self._row(found, new))

    def _begin(self, j: J, a: A, left: V) -> F:
        rights, cells = self._product.right.of(j), self._cells.of(a)
        self._meter.touched += 1 + len(rights)
        rows = ((b, self._row(right, cells.get(b))) for b, right in rights.items())
        return self._fold(j, a, left, rows)

    def _right_changed(self, change: Change[tuple[J, B], W], begun: set[tuple[J, A]]) -> None:
        (j, b), old, new = change
        before = self._cells.before
        for a in self._product.left.of(j):
            if (j, a) in begun:
                continue
            cell = self._cells.at(a, b)
            was = before.get((a, b), cell) if before else cell
            self._replace(
                (j, a),
                b,
                None if old is None else self._row(old, was),
                None if new is None else self._row(new, cell),
            )

    def _replace(self, group: tuple[J, A], b: B, old: R | None, new: R | None) -> None:
        self._meter.touched += 1
        fold = self._result.get(group)
        if fold is None:
            return
        self._result.touch(group)
        if old is None:
            fold.add(b, new)
        elif new is None:
            fold.remove(b, old)
        else:
            fold.replace(b, old, new)
