"""Operators one by one; that they equal a recomputation is tested for all of them in test_flow."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.tables.operators import Groups
from skerry.logic.fleet.tables.table import Change, Table
from tests.kit.chain.table_model import Sum

_row = st.one_of(st.none(), st.integers(0, 5))
# Batches of writes to two inputs: which of them, the key, the row; None drops.
histories = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from("abcd"), _row), max_size=5), max_size=6
)
Batch = list[tuple[int, str, int | None]]


def flow_with(*names: str) -> tuple[Dataflow, list[Table[str, int]]]:
    flow = Dataflow()
    return flow, [flow.table(name) for name in names]


def write(tables: list[Table[str, int]], batch: Batch) -> None:
    for number, key, row in batch:
        if row is None:
            tables[number].drop(key)
        else:
            tables[number].put(key, row)


def rows_of(groups: Groups[int, Sum]) -> dict[int, tuple[int, int]]:
    found = {key: groups.get(key) for key in groups}
    return {key: (fold.count, fold.sum) for key, fold in found.items() if fold is not None}


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


# -- each against what its function gives for the sources as they are ----------------------------


@given(histories)
def test_a_map_is_its_function_of_every_row_and_is_asked_of_changed_rows_alone(
    history: list[Batch],
) -> None:
    flow, tables = flow_with("numbers", "others")
    asked: list[str] = []

    def half(key: str, row: int) -> int | None:
        asked.append(key)
        return None if row % 2 else row // 2

    halves = flow.map("halves", tables[0], half)
    for batch in history:
        before = dict(tables[0].items())
        asked.clear()
        write(tables, batch)
        flow.settle()

        after = dict(tables[0].items())
        assert dict(halves.items()) == {k: row // 2 for k, row in after.items() if not row % 2}
        assert asked == [key for key in sorted(after) if before.get(key) != after[key]]


@given(histories)
def test_a_union_is_its_first_table_laid_over_its_second(history: list[Batch]) -> None:
    flow, tables = flow_with("over", "under")
    both = flow.union("both", *tables)
    for batch in history:
        write(tables, batch)
        flow.settle()

        assert dict(both.items()) == {**dict(tables[1].items()), **dict(tables[0].items())}


@given(histories)
def test_a_union_of_tables_that_share_no_key_does_not_depend_on_their_order(
    history: list[Batch],
) -> None:
    flow, tables = flow_with("left", "right")
    apart = [
        flow.filter("early", tables[0], lambda key, _: key < "c"),
        flow.filter("late", tables[1], lambda key, _: key >= "c"),
    ]
    one, other = flow.union("one", *apart), flow.union("other", *reversed(apart))
    for batch in history:
        write(tables, batch)
        settled = flow.settle()

        assert one.items() == other.items()
        assert settled.changes(one) == settled.changes(other)


@given(histories)
def test_a_lookup_is_its_function_of_each_row_and_the_row_it_names(history: list[Batch]) -> None:
    flow, tables = flow_with("left", "right")
    names = ["a", "b", None, "z"]
    found = flow.lookup(
        "found",
        tables[0],
        tables[1],
        on=lambda _, row: names[row % 4],
        row=lambda _, row, other: (row, other) if row != 5 else None,
    )
    for batch in history:
        write(tables, batch)
        flow.settle()

        right: dict[str | None, int] = dict(tables[1].items())
        assert dict(found.items()) == {
            key: (row, right.get(names[row % 4])) for key, row in tables[0].items() if row != 5
        }


@given(histories)
def test_a_join_has_the_pairs_that_share_a_value_and_no_others(history: list[Batch]) -> None:
    flow, tables = flow_with("left", "right")
    joined = flow.join(
        "joined",
        tables[0],
        tables[1],
        left_on=lambda _, row: row % 3,
        right_on=lambda _, row: row % 3,
        row=lambda key, row, other, found: (row, found) if key != other else None,
    )
    for batch in history:
        write(tables, batch)
        flow.settle()

        left, right = (dict(table.items()) for table in tables)
        assert dict(joined.items()) == {
            (key, other): (left[key], right[other])
            for key in left
            for other in right
            if left[key] % 3 == right[other] % 3 and key != other
        }


@given(histories)
def test_groups_fold_each_row_once_and_an_empty_one_is_not_there(history: list[Batch]) -> None:
    flow, tables = flow_with("numbers", "others")
    groups = flow.group("thirds", tables[0], lambda _, row: row % 3, lambda _: Sum())
    for batch in history:
        before = rows_of(groups)
        write(tables, batch)
        settled = flow.settle()

        expected: dict[int, list[int]] = {}
        for row in dict(tables[0].items()).values():
            expected.setdefault(row % 3, []).append(row)
        after = rows_of(groups)
        assert after == {key: (len(rows), sum(rows)) for key, rows in expected.items()}
        assert {
            key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
        } <= set(settled.groups(groups))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1))
def test_what_is_added_to_a_fold_and_removed_again_leaves_it_as_it_was(
    passing: list[tuple[str, int]],
) -> None:
    flow, (numbers, _) = flow_with("numbers", "others")
    groups = flow.group("all", numbers, lambda *_: 0, lambda _: Sum())
    numbers.put("stays", 7)
    flow.settle()
    fold = groups.get(0)

    for key, row in passing:
        numbers.put(key, row)
        flow.settle()
    for key in dict(passing):
        numbers.drop(key)
    flow.settle()

    assert groups.get(0) is fold, "it had a row all the time"
    assert rows_of(groups) == {0: (1, 7)}


# -- surprises -----------------------------------------------------------------------------------


def test_a_row_that_names_another_one_is_not_asked_about_the_first_again() -> None:
    flow, (left, right) = flow_with("left", "right")
    asked: list[Any] = []

    def ask(*of: Any) -> int:
        asked.append(of)
        return 1

    flow.lookup("found", left, right, lambda _, row: f"n{row}", ask)
    left.put("a", 1)
    flow.settle()
    left.put("a", 2)
    flow.settle()
    asked.clear()

    right.put("n1", 7)
    flow.settle()
    assert asked == []

    right.put("n2", 8)
    flow.settle()
    assert asked == [("a", 2, 8)]


def test_a_row_that_goes_with_the_one_it_names_leaves_nothing() -> None:
    flow, (left, right) = flow_with("left", "right")
    found = flow.lookup("found", left, right, lambda *_: "n", lambda _, row, other: (row, other))
    left.put("a", 1)
    right.put("n", 7)
    flow.settle()

    left.drop("a")
    right.drop("n")
    settled = flow.settle()

    assert settled.changes(found) == [Change("a", (1, 7), None)]
    assert len(found) == 0


def test_a_pair_of_which_both_rows_change_is_evaluated_once() -> None:
    flow, (left, right) = flow_with("left", "right")
    met: list[tuple[int, int]] = []

    def meet(_: str, row: int, __: str, other: int) -> int:
        met.append((row, other))
        return row + other

    joined = flow.join("joined", left, right, lambda *_: 0, lambda *_: 0, meet)
    left.put("a", 1)
    right.put("b", 2)
    flow.settle()
    left.put("a", 3)
    right.put("b", 4)
    flow.settle()

    assert met == [(1, 2), (3, 4)]
    assert joined.items() == [(("a", "b"), 7)]


def test_a_row_that_leaves_a_join_takes_its_pairs_along_without_a_question() -> None:
    flow, (left, right) = flow_with("left", "right")
    met: list[Any] = []

    def meet(*pair: Any) -> int:
        met.append(pair)
        return 1

    joined = flow.join("joined", left, right, lambda _, row: row, lambda _, row: row, meet)
    left.put("a", 1)
    for key in "xyz":
        right.put(key, 1)
    flow.settle()
    met.clear()

    left.put("a", 2)
    right.put("x", 3)
    flow.settle()

    assert (met, len(joined)) == ([], 0)


def test_a_group_that_was_empty_begins_with_a_fresh_fold() -> None:
    flow, (numbers,) = flow_with("numbers")
    begun: list[int] = []

    def begin(group: int) -> Sum:
        begun.append(group)
        return Sum()

    groups = flow.group("parity", numbers, lambda _, row: row % 2, begin)
    numbers.put("a", 1)
    flow.settle()
    first = groups.get(1)
    numbers.drop("a")
    flow.settle()
    assert groups.get(1) is None

    numbers.put("a", 3)
    flow.settle()

    assert begun == [1, 1]
    assert groups.get(1) is not first
    assert rows_of(groups) == {1: (1, 3)}


def test_groups_come_in_order_and_are_said_to_be_touched_once_a_batch() -> None:
    flow, (numbers,) = flow_with("numbers")
    groups = flow.group("all", numbers, lambda _, row: row, lambda _: Sum())
    for key, row in (("a", 3), ("b", 1), ("c", 2), ("d", 1)):
        numbers.put(key, row)

    assert flow.settle().groups(groups) == list(groups) == [1, 2, 3]
    assert flow.settle().groups(groups) == []


def test_of_a_group_that_comes_to_nothing_there_is_no_row_and_none_of_one_that_is_gone() -> None:
    flow, (numbers,) = flow_with("numbers")
    groups = flow.group("parity", numbers, lambda _, row: row % 2, lambda _: Sum())
    sums = flow.rows("sums", groups, lambda _, fold: fold.sum or None)
    numbers.put("a", 0)
    numbers.put("b", 1)
    flow.settle()
    assert sums.items() == [(1, 1)]
    assert list(groups) == [0, 1]

    numbers.drop("b")
    settled = flow.settle()

    assert settled.changes(sums) == [Change(1, 1, None)]


def test_a_step_costs_the_rows_that_changed_and_those_they_meet() -> None:
    flow, (left, right) = flow_with("left", "right")
    flow.map("mapped", left, lambda _, row: row)
    flow.join("joined", left, right, lambda _, row: row, lambda _, row: row, lambda *_: 1)
    for number in range(50):
        left.put(f"l{number:02}", number)
        right.put(f"r{number:02}", number % 10)
    flow.settle()
    before = flow.touched

    left.put("l03", 4)
    flow.settle()

    # The map's row, five pairs that go and five that come.
    assert flow.touched - before == 11
