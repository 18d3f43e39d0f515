"""Products stay factored.

What goes, times where it goes: the items of a placement and its destinations are a million rows at
ten thousand edges and a hundred objects, and most of them are equal. So the product of two
relations that share their first key is *virtual*. Nothing of it is stored; a row is put together
when asked for; a change of one factor says which keys it touches by iterating over the other.

A fold over a product goes by factor as well. For each row of the left factor it folds the rows of
the right one, each beside its *cell*, what is known of just that pair, such as the report of an
item in a mailbox, and the *fact* of its right key, such as whether the edge was heard of. A cell's
change finds the products it is in through the smaller of the two sides. Across the left factor, for
each row of the right one, *marks* are summed up: small numbers that say how a row deviates. Most
rows do not, and a sum of nothing is not stored. The sums of all rows that share a key are one fold.

For example, placement ``web`` sends two objects to three edges::

    left    (web, deployment)   (web, service)
    right   (web, florin)       (web, guilder)       (web, krone)
    cells   (deployment, florin): healthy            facts   krone: not heard of

There are six rows and none is stored. The tally of ``deployment`` is a fold over three: florin with
its report, guilder without one, krone as unknown whatever it reported last. How ``florin`` fares
with all of ``web`` is a sum of marks over two. A report from florin finds ``web`` by asking who
sends that item (left) and who goes there (right), and costs two rows, however many edges there are.

**Each row once.** A batch may change a left row, a right row, a cell and a fact of the same product
row. Whoever comes first in ``FoldProduct.step`` sees all four as they are after the batch, so those
who come later must leave that row alone, or it would be counted twice. The order is left, right,
facts, cells, and each step passes over what an earlier one has been through:

* a left row that changed *begins* its fold anew from all right rows: nobody else touches that fold;
* a right row that changed is replaced in the other folds, with the cell and the fact of before as
  what is taken out, and those of now as what is put in;
* a fact that changed does the same for right rows that did not;
* a cell that changed, for whatever is left.

What is taken out must be exactly what was put in, or a fold drifts for ever. So what is taken out
is always made from rows of before the batch, all four of them, and never from a mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from skerry.logic.fleet.tables.operators import Fold, Groups, Meter
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Change, Ordered, Table

J = TypeVar("J", bound=Ordered)
A = TypeVar("A", bound=Ordered)
B = TypeVar("B", bound=Ordered)
V = TypeVar("V")
W = TypeVar("W")
C = TypeVar("C")
T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Fold[Any, Any])
B_contra = TypeVar("B_contra", contravariant=True)
S = TypeVar("S", bound="Sums[Any]")


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


class Sums(Protocol[B_contra]):
    """The sums of marks by right key, of all rows that share the first."""

    def add(self, b: B_contra, mark: int, /) -> None:
        """Add a mark, or take one back, which is never 0, to the sum of a right key."""

    def __bool__(self) -> bool:
        """Tell whether there is any sum but 0."""


class Folded(NamedTuple, Generic[J, A, F, S]):
    """What a fold over a product comes to: by row of the left factor, and the sums of marks."""

    groups: Groups[tuple[J, A], F]
    sums: Groups[J, S]


class FoldProduct(Generic[J, A, B, V, W, C, T, R, F, S]):
    """Keeps one fold for each row of the left factor, over the rows of the right one."""

    def __init__(
        self,
        meter: Meter,
        product: Product[J, A, B, V, W],
        cells: Relation[A, B, C],
        facts: Table[B, T],
        result: Folded[J, A, F, S],
        *,
        row: Callable[[J, W, C | None, T | None], R],
        fold: Callable[[J, A, V, Iterable[tuple[B, R]]], F],
        mark: Callable[[V, R], int],
        sums: Callable[[], S],
    ) -> None:
        """*row* puts a right row, its cell and its fact together, for one key of the left.

        *fold* begins with rows.

        A left row that becomes another one begins anew, so it should hold no more than the fold
        depends on.
        """
        self._meter = meter
        self._product = product
        self._cells = cells
        self._facts = facts
        self._result = result.groups
        self._sums = result.sums
        self._row = row
        self._fold = fold
        self._mark = mark
        self._begin_sums = sums

    def step(self) -> None:
        left, right, facts = self._product.left, self._product.right, self._facts
        # Mostly cells alone have changed.
        begun = self._lefts_changed() if left.before else set()
        moved = set()
        for change in right.changes() if right.before else ():
            moved.add(change.key)
            self._right_changed(change, begun)
        changed = set()
        for b, was, now in facts.changes() if facts.before else ():
            changed.add(b)
            self._fact_changed(b, was, now, moved, begun)
        for (a, b), old, new in self._cells.changes():
            if b in changed:
                continue  # the step of its fact has seen the cell as well
            fact = facts.get(b)
            for j in self._product.shared(a, b):
                # Where the right row is another one too, its step has seen the cell as well.
                if (j, b) in moved or (j, a) in begun:
                    continue
                found, kept = right.of(j)[b], left.of(j)[a]
                rows = self._row(j, found, old, fact), self._row(j, found, new, fact)
                self._replace(j, a, kept, b, *rows)

    # -- rows of the left factor -------------------------------------------------------------

    def _lefts_changed(self) -> set[tuple[J, A]]:
        """Begin and end folds; returns those whose left row is another one now."""
        left = self._product.left
        changes = left.changes()
        moved = self._rights_moved() if changes else {}
        begun = set()
        for (j, a), old, new in changes:
            begun.add((j, a))
            if not left.of(j):
                # Nothing goes anywhere any more: that is no matter of single rows.
                if j in self._sums:
                    self._sums.set(j, None)
            elif old is not None:
                self._end(j, a, old, moved.get(j, {}))
            self._result.set((j, a), None if new is None else self._begin(j, a, new))
        return begun

    def _rights_moved(self) -> dict[J, dict[B, W | None]]:
        moved: dict[J, dict[B, W | None]] = {}
        for (j, b), old in self._product.right.before.items():
            moved.setdefault(j, {})[b] = old
        return moved

    def _begin(self, j: J, a: A, left: V) -> F:
        rights, cells = self._product.right.of(j), self._cells.of(a)
        self._meter.touched += 1 + len(rights)
        rows = [
            (b, self._row(j, right, cells.get(b), self._facts.get(b)))
            for b, right in rights.items()
        ]
        for b, row in rows:
            self._add(j, b, self._mark(left, row))
        return self._fold(j, a, left, rows)

    def _end(self, j: J, a: A, left: V, moved: dict[B, W | None]) -> None:
        """Take back the marks of a left row, as they were before this batch."""
        rights = self._product.right.of(j)
        self._meter.touched += len(rights)
        before = [(b, right) for b, right in rights.items() if b not in moved]
        before.extend((b, right) for b, right in moved.items() if right is not None)
        for b, right in before:
            cell = self._cells.before.get((a, b), self._cells.at(a, b))
            fact = self._facts.before.get(b, self._facts.get(b))
            self._add(j, b, -self._mark(left, self._row(j, right, cell, fact)))

    # -- rows of the right factor, facts, cells ----------------------------------------------

    def _right_changed(self, change: Change[tuple[J, B], W], begun: set[tuple[J, A]]) -> None:
        (j, b), old, new = change
        fact = self._facts.get(b)
        fact_before = self._facts.before.get(b, fact)
        for a, left in self._product.left.of(j).items():
            if (j, a) in begun:
                continue
            cell, was = self._cell(a, b)
            self._replace(
                j,
                a,
                left,
                b,
                None if old is None else self._row(j, old, was, fact_before),
                None if new is None else self._row(j, new, cell, fact),
            )

    def _fact_changed(
        self, b: B, was: T | None, now: T | None, moved: set[tuple[J, B]], begun: set[tuple[J, A]]
    ) -> None:
        for j in sorted(self._product.right.having(b)):
            right = self._product.right.at(j, b)
            if right is None or (j, b) in moved:
                continue
            for a, left in self._product.left.of(j).items():
                if (j, a) not in begun:
                    cell, before = self._cell(a, b)
                    old = self._row(j, right, before, was)
                    new = self._row(j, right, cell, now)
                    self._replace(j, a, left, b, old, new)

    def _cell(self, a: A, b: B) -> tuple[C | None, C | None]:
        """Return the cell as it is, and as it was before this batch."""
        cell, before = self._cells.at(a, b), self._cells.before
        return cell, before.get((a, b), cell) if before else cell

    def _replace(self, j: J, a: A, left: V, b: B, old: R | None, new: R | None) -> None:
        self._meter.touched += 1
        fold = self._result.get((j, a))
        if fold is None:
            return
        self._result.touch((j, a))
        if old is None:
            fold.add(b, new)
        elif new is None:
            fold.remove(b, old)
        else:
            fold.replace(b, old, new)
        mark = 0 if new is None else self._mark(left, new)
        if old is not None:
            mark -= self._mark(left, old)
        if mark:
            self._add(j, b, mark)

    def _add(self, j: J, b: B, mark: int) -> None:
        if not mark:
            return
        sums = self._sums.get(j)
        if sums is None:
            sums = self._begin_sums()
            self._sums.set(j, sums)
        self._sums.touch(j)
        sums.add(b, mark)
        if not sums:
            self._sums.set(j, None)


class AttachRows(Generic[J, B, V, W, R]):
    """Pairs beside the fact of their second key; only those that come to something are stored."""

    def __init__(
        self,
        meter: Meter,
        pairs: Relation[J, B, V],
        facts: Table[B, W],
        result: Relation[J, B, R],
        row: Callable[[B, V, W | None], R | None],
    ) -> None:
        self._meter = meter
        self._pairs = pairs
        self._facts = facts
        self._result = result
        self._row = row
        pairs.keep_reverse()

    def step(self) -> None:
        for (j, b), _, pair in self._pairs.changes():
            self._evaluate(j, b, pair)
        for b, _, _ in self._facts.changes():
            for j in self._pairs.having(b):
                self._evaluate(j, b, self._pairs.at(j, b))

    def _evaluate(self, j: J, b: B, pair: V | None) -> None:
        self._meter.touched += 1
        made = None if pair is None else self._row(b, pair, self._facts.get(b))
        self._result.write_pair(j, b, made)
