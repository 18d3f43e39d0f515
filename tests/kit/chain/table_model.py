"""One small flow with every operator in it, and the same computed from the inputs alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from skerry.logic.fleet.tables.flow import Dataflow, Settled
from skerry.logic.fleet.tables.operators import Groups
from skerry.logic.fleet.tables.relation import Relation
from skerry.logic.fleet.tables.table import Table

# A write to an input: its name, the key and the row; None drops.
Write = tuple[str, Any, int | None]
Rows = dict[str, dict[Any, Any]]

KEYS = ["a", "b", "c"]
_row = st.one_of(st.none(), st.integers(0, 6))
_key = st.sampled_from(KEYS)
writes: st.SearchStrategy[Write] = st.one_of(
    st.tuples(st.sampled_from(["left", "right", "facts"]), _key, _row),
    st.tuples(st.sampled_from(["where", "cells"]), st.tuples(_key, _key), _row),
)
batches = st.lists(st.lists(writes, max_size=6), max_size=8)


class Sum:
    """A fold that also counts, so that a row left behind shows."""

    def __init__(self, rows: Iterable[tuple[Any, int]] = ()) -> None:
        self.sum = self.count = 0
        for key, row in rows:
            self.add(key, row)

    def add(self, _: Any, row: int) -> None:
        self.sum += row
        self.count += 1

    def remove(self, _: Any, row: int) -> None:
        self.sum -= row
        self.count -= 1

    def replace(self, _: Any, old: int, new: int) -> None:
        self.sum += new - old


def _mapped(_: str, row: int) -> int | None:
    return row * 2 if row % 3 else None


def _named(_: str, row: int) -> str | None:
    return KEYS[row % 4] if row % 4 < len(KEYS) else None


def _looked_up(_: str, row: int, found: int | None) -> tuple[int, int | None] | None:
    return None if row == 6 else (row, found)


def _parity(_: str, row: int) -> int:
    return row % 2


def _joined(_: str, row: int, __: str, other: int) -> int | None:
    return row + other if (row + other) % 4 else None


def _cell(key: str, row: int, cell: int | None, fact: int | None) -> int:
    found = (row * 10 + (9 if cell is None else cell)) * (1 if fact is None else fact)
    return found + (key == "a")


def _mark(left: int, row: int) -> int:
    return left * (row % 3)


def _attached(key: str, row: int, fact: int | None) -> str | None:
    return None if fact == 1 else f"{key} {row} {fact}"


def _begin(_: str, __: str, ___: int, rows: Iterable[tuple[str, int]]) -> Sum:
    return Sum(rows)


class MarkSums:
    """Sums by right key."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self.sums)

    def add(self, b: str, mark: int) -> None:
        self.sums[b] = self.sums.get(b, 0) + mark
        if not self.sums[b]:
            del self.sums[b]


def marks_of(groups: Groups[str, MarkSums]) -> dict[tuple[str, str], int]:
    """Return every sum of marks by both keys."""
    found = {j: groups.get(j) or MarkSums() for j in groups}
    return {(j, b): mark for j, marks in found.items() for b, mark in marks.sums.items()}


class Model:
    def __init__(self) -> None:
        flow = self.flow = Dataflow()
        self.left: Table[str, int] = flow.table("left")
        self.right: Table[str, int] = flow.table("right")
        self.where: Relation[str, str, int] = flow.relation("where")
        self.cells: Relation[str, str, int] = flow.relation("cells")
        self.facts: Table[str, int] = flow.table("facts")
        self.inputs: dict[str, Table[Any, int]] = {
            table.name: table
            for table in (self.left, self.right, self.where, self.cells, self.facts)
        }
        mapped = flow.map("mapped", self.left, _mapped)
        kept = flow.filter("kept", self.right, lambda _, row: row > 2)
        united = flow.union("united", mapped, kept)
        looked_up = flow.lookup("looked_up", self.left, united, _named, _looked_up)
        self.joined = flow.join("joined", self.left, self.right, _parity, _parity, _joined)
        self.groups = flow.group("groups", self.right, _parity, lambda _: Sum())
        sums = flow.rows("sums", self.groups, lambda _, fold: (fold.count, fold.sum))
        self.product = flow.product("product", self.joined, self.where)
        self.folded, self.summed = flow.fold(
            "folded", self.product, self.cells, self.facts, _cell, _begin, _mark, MarkSums
        )
        attached = flow.attach("attached", self.where, self.facts, _attached)
        self.sums_of_products = flow.rows(
            "sums_of_products", self.folded, lambda _, fold: (fold.count, fold.sum)
        )
        self.derived: dict[str, Table[Any, Any]] = {
            table.name: table
            for table in (
                mapped,
                kept,
                united,
                looked_up,
                self.joined,
                sums,
                self.sums_of_products,
                attached,
            )
        }

    def write(self, batch: Iterable[Write]) -> None:
        for name, key, row in batch:
            if row is None:
                self.inputs[name].drop(key)
            else:
                self.inputs[name].put(key, row)

    def settle(self, batch: Iterable[Write]) -> Settled:
        self.write(batch)
        return self.flow.settle()

    def given(self) -> Rows:
        return {name: dict(table.items()) for name, table in self.inputs.items()}

    def rows(self) -> Rows:
        """Return every derived row, stored or virtual."""
        found = {name: dict(table.items()) for name, table in self.derived.items()}
        found["marks"] = marks_of(self.summed)
        found["product"] = {
            (j, a, b): self.product.get(j, a, b)
            for j in KEYS
            for a in KEYS
            for b in KEYS
            if self.product.get(j, a, b) is not None
        }
        found["joining"] = {
            (a, b): self.product.joining(a, b)
            for a in KEYS
            for b in KEYS
            if self.product.joining(a, b)
        }
        return found


def reference(given: Rows) -> Rows:
    """Compute every derived row from the inputs alone."""
    left, right, where, cells, facts = (
        given[name] for name in ("left", "right", "where", "cells", "facts")
    )
    mapped = {key: row * 2 for key, row in left.items() if row % 3}
    kept = {key: row for key, row in right.items() if row > 2}
    united = {**kept, **mapped}
    joined = {
        (k, r): row + other
        for k, row in left.items()
        for r, other in right.items()
        if row % 2 == other % 2 and (row + other) % 4
    }
    product = {
        (j, a, b): (row, there)
        for (j, a), row in joined.items()
        for (i, b), there in where.items()
        if i == j
    }
    parts: dict[Any, list[int]] = {key: [] for key in joined}
    marks: dict[Any, int] = {}
    for j, a, b in product:
        row = _cell(j, where[j, b], cells.get((a, b)), facts.get(b))
        parts[j, a].append(row)
        marks[j, b] = marks.get((j, b), 0) + _mark(joined[j, a], row)
    parities: dict[int, list[int]] = {}
    for row in right.values():
        parities.setdefault(row % 2, []).append(row)
    joining: dict[Any, list[str]] = {}
    for j, a, b in sorted(product):
        joining.setdefault((a, b), []).append(j)
    return {
        "mapped": mapped,
        "kept": kept,
        "united": united,
        "looked_up": {
            key: (row, united.get(_named(key, row) or "")) for key, row in left.items() if row != 6
        },
        "joined": joined,
        "sums": {key: (len(rows), sum(rows)) for key, rows in parities.items()},
        "sums_of_products": {key: (len(rows), sum(rows)) for key, rows in parts.items()},
        "product": product,
        "joining": joining,
        "marks": {key: mark for key, mark in marks.items() if mark},
        "attached": {
            (j, b): made
            for (j, b), row in where.items()
            if (made := _attached(b, row, facts.get(b))) is not None
        },
    }
