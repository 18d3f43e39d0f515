"""Map, filter, union, lookup, join and group: how one stored table derives from others.

Each operator has a ``step`` that reads the changes of its sources in the batch under way and writes
its result. A step touches the rows that changed and those they meet, never a whole table, and says
so to the meter; nothing here keeps a copy of a source's rows.

The promise of every operator is the same, and the property tests hold it against a twin that
computes the whole: after any batches, in any order, the result is the one that its function gives
for the sources as they are now. Three things keep that true.

* Operators run in the order of the flow, sources before results, each once per batch. So a step
  sees its sources settled, and what it reads of a table is the row after the batch; the row before
  is in the change.
* A result is written row by row, and a row that is written as it was is no change. A batch that
  undoes itself therefore goes no further than the first table that sees it so.
* What is kept beside the tables are indexes (who names whom, who shares a value, how many rows a
  group has), and each follows from rows alone. They are moved when a row's key into them changes,
  before anything is looked up by them.

Functions handed in must be pure in their rows: one that looks at something else would not be asked
again when that changes. What depends on a second table is a ``LookUp`` or a ``JoinRows``, never a
closure over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Change, Ordered, Table

K = TypeVar("K", bound=Ordered)
R = TypeVar("R", bound=Ordered)
G = TypeVar("G", bound=Ordered)
J = TypeVar("J", bound=Ordered)
B = TypeVar("B", bound=Ordered)
V = TypeVar("V")
W = TypeVar("W")
X = TypeVar("X")
K_contra = TypeVar("K_contra", contravariant=True)
V_contra = TypeVar("V_contra", contravariant=True)


class Meter:
    """Counts the rows that operators read or wrote."""

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched = 0


class Operator(Protocol):
    """Keeps one result up with its sources."""

    def step(self) -> None: ...


class Fold(Protocol[K_contra, V_contra]):
    """What a group comes to. Invertible: what is added and removed again leaves it as it was."""

    def add(self, key: K_contra, row: V_contra) -> None: ...

    def remove(self, key: K_contra, row: V_contra) -> None: ...

    def replace(self, key: K_contra, old: V_contra, new: V_contra) -> None:
        """Remove *old* and add *new*; two rows of one key often have much in common."""


F = TypeVar("F", bound=Fold[Any, Any])
# What a group is held as: mostly a fold of rows.
E = TypeVar("E")


class MapRows(Generic[K, V, W]):
    """One row for one row; where the function returns None there is none."""

    def __init__(
        self,
        meter: Meter,
        source: Table[K, V],
        result: Table[K, W],
        row: Callable[[K, V], W | None],
    ) -> None:
        self._meter = meter
        self._source = source
        self._result = result
        self._row = row

    def step(self) -> None:
        for key, _, new in self._source.changes():
            self._meter.touched += 1
            self._result.write(key, None if new is None else self._row(key, new))


class UnionRows(Generic[K, V]):
    """The rows of several tables; of equal keys the row of the first table that has one.

    A row that goes from the first table uncovers the one below it, so every change asks all.
    """

    def __init__(self, meter: Meter, sources: tuple[Table[K, V], ...], result: Table[K, V]) -> None:
        self._meter = meter
        self._sources = sources
        self._result = result

    def step(self) -> None:
        for source in self._sources:
            for key, _, _ in source.changes():
                self._meter.touched += 1
                rows = (each.get(key) for each in self._sources)
                self._result.write(key, next((row for row in rows if row is not None), None))


class LookUp(Generic[K, V, R, W, X]):
    """Each row on the left finds at most one on the right, by a key it names.

    The right row may be missing: the function is asked all the same, and says what that means.
    When a right row comes, goes or changes, every row that names it is written anew, which is why
    who names it is kept.
    """

    def __init__(
        self,
        meter: Meter,
        left: Table[K, V],
        right: Table[R, W],
        result: Table[K, X],
        on: Callable[[K, V], R | None],
        row: Callable[[K, V, W | None], X | None],
    ) -> None:
        self._meter = meter
        self._left = left
        self._right = right
        self._result = result
        self._on = on
        self._row = row
        self._naming: dict[R, set[K]] = {}

    def step(self) -> None:
        for key, old, new in self._left.changes():
            before = None if old is None else self._on(key, old)
            now = None if new is None else self._on(key, new)
            if before != now:
                _move(self._naming, before, now, key)
            self._write(key, new, now)
        for named, _, _ in self._right.changes():
            for key in self._naming.get(named, ()):
                self._write(key, self._left.get(key), named)

    def _write(self, key: K, row: V | None, named: R | None) -> None:
        self._meter.touched += 1
        found = None if named is None else self._right.get(named)
        self._result.write(key, None if row is None else self._row(key, row, found))


class JoinRows(Generic[K, V, R, W, J, B, X]):
    """Every pair of rows that share a value; the function says what becomes of it, if anything.

    A row that comes or changes meets those that share its value. One that goes takes the pairs it
    is in with it, which the result knows: nothing is evaluated for that.

    In a step both indexes move before anything is evaluated. A pair of which both rows changed is
    then met twice, once from each side, and evaluated from the left alone.
    """

    def __init__(
        self,
        meter: Meter,
        left: Table[K, V],
        right: Table[R, W],
        result: Relation[K, B, X],
        left_on: Callable[[K, V], J],
        right_on: Callable[[R, W], J],
        row: Callable[[K, V, R, W], X | None],
        key: Callable[[R], B],
    ) -> None:
        """*key* is what the result calls a right row: unique among those that share a value."""
        self._meter = meter
        self._left = left
        self._right = right
        self._result = result
        self._left_on = left_on
        self._right_on = right_on
        self._row = row
        self._key = key
        self._lefts: dict[J, set[K]] = {}
        self._rights: dict[J, set[R]] = {}

    def step(self) -> None:
        lefts, rights = self._left.changes(), self._right.changes()
        _reindex(self._lefts, lefts, self._left_on, self._drop_left)
        _reindex(self._rights, rights, self._right_on, self._drop_right)
        for key, _, new in lefts:
            if new is not None:
                for other in self._rights.get(self._left_on(key, new), ()):
                    self._evaluate(key, new, other, self._right.get(other))
        evaluated = {key for key, _, _ in lefts}
        for other, _, found in rights:
            if found is not None:
                for key in self._lefts.get(self._right_on(other, found), ()):
                    if key not in evaluated:
                        self._evaluate(key, self._left.get(key), other, found)

    def _evaluate(self, key: K, row: V | None, other: R, found: W | None) -> None:
        self._meter.touched += 1
        if row is not None and found is not None:
            made = self._row(key, row, other, found)
            self._result.write_pair(key, self._key(other), made)

    def _drop_left(self, key: K, _: J) -> None:
        for other in list(self._result.of(key)):
            self._meter.touched += 1
            self._result.write_pair(key, other, None)

    def _drop_right(self, other: R, shared: J) -> None:
        called = self._key(other)
        sharing = self._lefts.get(shared, ())
        for key in [key for key in self._result.having(called) if key in sharing]:
            self._meter.touched += 1
            self._result.write_pair(key, called, None)


class Groups(Generic[G, E]):
    """Folds by group, live: a fold changes in place, so a batch says which groups it touched.

    What a group comes to is asked of its fold when somebody wants to know. Between two askings a
    thousand rows may have come in; they cost a thousand additions and one answer.
    """

    def __init__(self, name: str, began: Callable[[Groups[Any, Any]], None]) -> None:
        """*began* is called when the first group of a batch is touched."""
        self.name = name
        self._began = began
        self._folds: dict[G, E] = {}
        # The groups of this batch. For operators and the flow.
        self.touched: set[G] = set()

    def __len__(self) -> int:
        return len(self._folds)

    def __contains__(self, key: object) -> bool:
        return key in self._folds

    def __iter__(self) -> Iterator[G]:
        """Yield the groups in order."""
        return iter(sorted(self._folds))

    def get(self, key: G) -> E | None:
        return self._folds.get(key)

    def touch(self, key: G) -> None:
        """Take that a group differs. For operators."""
        if not self.touched:
            self._began(self)
        self.touched.add(key)

    def set(self, key: G, fold: E | None) -> None:
        """Have *fold* for a group, or none. For operators."""
        self.touch(key)
        if fold is None:
            self._folds.pop(key, None)
        else:
            self._folds[key] = fold


class GroupRows(Generic[K, V, G, F]):
    """The rows of a table folded by group; a group is there while it has rows.

    A fold is never emptied by removals: with its last row the group goes, and the next row begins
    a fresh one. So a fold that loses a little in each addition and removal cannot drift for ever.
    """

    def __init__(
        self,
        meter: Meter,
        source: Table[K, V],
        result: Groups[G, F],
        by: Callable[[K, V], G],
        fold: Callable[[G], F],
    ) -> None:
        self._meter = meter
        self._source = source
        self._result = result
        self._by = by
        self._fold = fold
        self._sizes: dict[G, int] = {}

    def step(self) -> None:
        for key, old, new in self._source.changes():
            before = None if old is None else self._by(key, old)
            if old is not None and new is not None and before == self._by(key, new):
                self._replace(self._by(key, new), key, old, new)
                continue
            if old is not None and before is not None:
                self._remove(before, key, old)
            if new is not None:
                self._add(self._by(key, new), key, new)

    def _replace(self, group: G, key: K, old: V, new: V) -> None:
        self._meter.touched += 1
        fold = self._result.get(group)
        if fold is not None:
            fold.replace(key, old, new)
            self._result.touch(group)

    def _add(self, group: G, key: K, row: V) -> None:
        self._meter.touched += 1
        fold = self._result.get(group)
        if fold is None:
            fold = self._fold(group)
            self._result.set(group, fold)
        fold.add(key, row)
        self._sizes[group] = self._sizes.get(group, 0) + 1
        self._result.touch(group)

    def _remove(self, group: G, key: K, row: V) -> None:
        self._meter.touched += 1
        size = self._sizes[group] - 1
        if not size:
            del self._sizes[group]
            self._result.set(group, None)
            return
        self._sizes[group] = size
        fold = self._result.get(group)
        if fold is not None:
            fold.remove(key, row)
        self._result.touch(group)


class FoldRows(Generic[G, F, X]):
    """What the touched groups come to, stored as rows."""

    def __init__(
        self,
        meter: Meter,
        source: Groups[G, F],
        result: Table[G, X],
        row: Callable[[G, F], X | None],
    ) -> None:
        self._meter = meter
        self._source = source
        self._result = result
        self._row = row

    def step(self) -> None:
        for key in self._source.touched:
            self._meter.touched += 1
            fold = self._source.get(key)
            self._result.write(key, None if fold is None else self._row(key, fold))


def _move(index: dict[J, set[K]], before: J | None, now: J | None, key: K) -> None:
    """Index *key* under *now* instead of *before*."""
    if before is not None:
        keys = index[before]
        keys.discard(key)
        if not keys:
            del index[before]
    if now is not None:
        index.setdefault(now, set()).add(key)


def _reindex(
    index: dict[J, set[K]],
    changes: list[Change[K, V]],
    on: Callable[[K, V], J],
    drop: Callable[[K, J], None],
) -> None:
    """Index changed rows under the value they join by now; drop the pairs of those that left."""
    for key, old, new in changes:
        before = None if old is None else on(key, old)
        now = None if new is None else on(key, new)
        if before != now:
            _move(index, before, now, key)
            if before is not None:
                drop(key, before)
