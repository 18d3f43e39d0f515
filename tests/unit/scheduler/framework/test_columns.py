"""Columns of answers: few changed rows are asked anew, and the result is that of asking all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.table import NodeTable
from skerry.scheduler.framework.columns import (
    FilterColumn,
    ScoreColumn,
    changed_rows,
    evaluate_filter,
    evaluate_score,
)
from skerry.scheduler.framework.plugin import Scope
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unschedulable
from tests.kit.scheduler.fixtures import node


class Size:
    """Refuses nodes without enough CPUs, and scores by them."""

    name = "Size"
    scope = Scope.TARGET

    def __init__(self) -> None:
        self.asked: list[str] = []

    def filter(self, state: CycleState, item: int, target: NodeInfo) -> Status | None:
        self.asked.append(target.name)
        return None if target.allocatable["cpu"] >= item else unschedulable("too small")

    def score(self, state: CycleState, item: int, target: NodeInfo) -> int:
        return target.allocatable["cpu"]


def sized(name: str, cpus: int) -> Any:
    return node(name, allocatable={"cpu": str(cpus)})


STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=30)


@settings(max_examples=30)
@given(first=STEPS, then=st.lists(STEPS, max_size=4))
def test_catching_up_yields_what_asking_anew_does(
    first: list[tuple[int, int]], then: list[list[tuple[int, int]]]
) -> None:
    table, state = NodeTable(), CycleState()
    refusals: FilterColumn[int] = FilterColumn(Size(), table)
    scores: ScoreColumn[int] = ScoreColumn(Size(), table, 1)
    for steps in [first, *then]:
        for number, cpus in steps:
            if cpus:
                table.set_node(sized(f"n{number}", cpus))
            elif f"n{number}" in table:
                table.remove_node(f"n{number}")
        refusals.sync(state, 2000)
        scores.sync(state, 2000)
        rows = table.rows()
        fresh = evaluate_filter(Size(), state, 2000, rows, table)
        assert (refusals.codes[rows] > 0).tolist() == (fresh.codes > 0).tolist()
        wanted = evaluate_score(Size(), state, 2000, rows, table)
        assert scores.raw[rows].tolist() == wanted.tolist()


def test_only_what_changed_is_asked_again() -> None:
    table, state, plugin = NodeTable(), CycleState(), Size()
    for number in range(20):
        table.set_node(sized(f"n{number}", 1))
    column: FilterColumn[int] = FilterColumn(plugin, table)
    column.sync(state, 2000)
    assert len(plugin.asked) == 20
    plugin.asked.clear()
    column.sync(state, 2000)
    assert plugin.asked == []
    table.set_node(sized("n7", 4))
    column.sync(state, 2000)
    assert plugin.asked == ["n7"]
    row = table.row("n7")
    assert row is not None
    assert column.codes[row] == 0


def test_equal_refusals_are_kept_once_and_signed() -> None:
    table = NodeTable()
    for number in range(3):
        table.set_node(sized(f"n{number}", 1))
    column: FilterColumn[int] = FilterColumn(Size(), table)
    column.sync(CycleState(), 2000)
    (status,) = column.statuses
    assert (status.plugin, status.reasons) == ("Size", ("too small",))
    assert set(column.codes[table.rows()].tolist()) == {1}


def test_rows_are_named_once_and_a_short_memory_says_so() -> None:
    table = NodeTable()
    position = table.target_log.position
    for cpus in (1, 2, 1):
        table.set_node(sized("a", cpus))
    table.set_node(sized("b", 1))
    assert sorted(changed_rows(table, position, None) or []) == [0, 1]
    assert changed_rows(table, table.target_log.position, table.placed_log.position) == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_column_of_equal_scores_decides_nothing(count: int) -> None:
    class Even(Size):
        def normalize(self, state: Any, item: Any, scores: Any) -> None:
            return None

    table = NodeTable()
    for number in range(count):
        table.set_node(sized(f"n{number}", 2))
    column: ScoreColumn[int] = ScoreColumn(Even(), table, 1)
    column.sync(CycleState(), 1)
    assert column.normalizes
    assert column.constant is True
    if count > 1:
        table.set_node(sized("n0", 3))
        column.sync(CycleState(), 1)
        assert column.constant is False
