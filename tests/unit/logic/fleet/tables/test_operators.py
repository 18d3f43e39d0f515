"""Operators one by one; that they equal a recomputation is tested for all of them in test_flow."""

from __future__ import annotations

from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.table import Change, Table
from tests.kit.chain.table_model import Sum


def flow_with(*names: str) -> tuple[Dataflow, list[Table[str, int]]]:
    flow = Dataflow()
    return flow, [flow.table(name) for name in names]


def test_a_row_mapped_to_none_is_no_row() -> None:
    flow, (numbers,) = flow_with("numbers")
    odd = flow.map("odd", numbers, lambda _, row: row if row % 2 else None)

    numbers.put("a", 1)
    numbers.put("b", 2)
    flow.settle()

    assert odd.items() == [("a", 1)]


def test_a_filter_keeps_the_rows_as_they_are() -> None:
    flow, (numbers,) = flow_with("numbers")
    large = flow.filter("large", numbers, lambda _, row: row > 1)

    numbers.put("a", 1)
    numbers.put("b", 2)
    flow.settle()

    assert large.items() == [("b", 2)]


def test_of_equal_keys_a_union_has_the_first_tables_row() -> None:
    flow, (first, second) = flow_with("first", "second")
    both = flow.union("both", first, second)
    first.put("a", 1)
    second.put("a", 2)
    second.put("b", 2)
    flow.settle()

    first.drop("a")
    settled = flow.settle()

    assert settled.changes(both) == [Change("a", 1, 2)]
    assert both.items() == [("a", 2), ("b", 2)]


def test_a_row_finds_the_one_it_names_when_that_comes() -> None:
    flow, (names, numbers) = flow_with("names", "numbers")
    found = flow.lookup(
        "found", names, numbers, lambda _, row: f"n{row}", lambda _, __, number: number
    )
    names.put("a", 1)
    flow.settle()
    assert found.items() == []

    numbers.put("n1", 7)
    numbers.put("n2", 8)
    flow.settle()
    assert found.items() == [("a", 7)]

    names.put("a", 2)
    flow.settle()
    assert found.items() == [("a", 8)]


def test_a_row_that_names_nothing_finds_nothing() -> None:
    flow, (names, numbers) = flow_with("names", "numbers")
    found = flow.lookup(
        "found", names, numbers, lambda *_: None, lambda _, row, number: (row, number)
    )

    names.put("a", 1)
    flow.settle()

    assert found.items() == [("a", (1, None))]


def test_a_join_meets_only_what_shares_a_value() -> None:
    flow, (left, right) = flow_with("left", "right")
    met: list[tuple[str, str]] = []

    def meet(key: str, _: int, other: str, __: int) -> int:
        met.append((key, other))
        return 1

    flow.join("joined", left, right, lambda _, row: row, lambda _, row: row, meet)
    for table in (left, right):
        for number in range(10):
            table.put(f"{table.name}{number}", number)

    flow.settle()

    assert sorted(met) == [(f"left{n}", f"right{n}") for n in range(10)]


def test_right_rows_may_be_called_the_same_where_they_share_nothing() -> None:
    flow, (left, right) = flow_with("left", "right")
    joined = flow.join_as(
        "joined",
        left,
        right,
        left_on=lambda _, row: row,
        right_on=lambda _, row: row,
        row=lambda *_: True,
        key=lambda other: other[0],
    )
    left.put("p", 1)
    left.put("q", 2)
    right.put("a1", 1)
    right.put("a2", 2)
    flow.settle()
    assert list(joined) == [("p", "a"), ("q", "a")]

    right.drop("a1")
    flow.settle()

    assert list(joined) == [("q", "a")]


def test_a_group_is_there_while_it_has_rows() -> None:
    flow, (numbers,) = flow_with("numbers")
    groups = flow.group("parity", numbers, lambda _, row: row % 2, lambda _: Sum())
    numbers.put("a", 1)
    numbers.put("b", 3)
    flow.settle()
    assert list(groups) == [1]
    assert len(groups) == 1

    numbers.drop("a")
    numbers.put("b", 2)
    settled = flow.settle()

    assert settled.groups(groups) == [0, 1]
    assert 1 not in groups
    found = groups.get(0)
    assert found is not None
    assert (found.count, found.sum) == (1, 2)


def test_a_row_that_stays_in_its_group_is_replaced_there() -> None:
    flow, (numbers,) = flow_with("numbers")
    groups = flow.group("parity", numbers, lambda _, row: row % 2, lambda _: Sum())
    numbers.put("a", 1)
    flow.settle()
    before = groups.get(1)

    numbers.put("a", 5)
    flow.settle()

    assert groups.get(1) is before
    assert before is not None
    assert (before.count, before.sum) == (1, 5)


def test_what_a_group_comes_to_is_a_row_others_can_derive_from() -> None:
    flow, (numbers,) = flow_with("numbers")
    groups = flow.group("parity", numbers, lambda _, row: row % 2, lambda _: Sum())
    sums = flow.rows("sums", groups, lambda _, fold: fold.sum)
    large = flow.filter("large", sums, lambda _, row: row > 3)
    for key, row in (("a", 1), ("b", 2), ("c", 4)):
        numbers.put(key, row)

    settled = flow.settle()

    assert settled.changes(large) == [Change(0, None, 6)]
