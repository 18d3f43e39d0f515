"""How full a target is: one by one and in arrays alike, and truncated as Kubernetes truncates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.framework.allocation import (
    Strategy,
    allocation_strategy,
    evenness,
    evenness_all,
)

AMOUNT = st.tuples(st.integers(0, 10**12), st.integers(0, 10**12))
STRATEGIES: list[dict[str, Any]] = [
    {"type": "LeastAllocated"},
    {"type": "MostAllocated"},
    {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {
            "shape": [
                {"utilization": 0, "score": 10},
                {"utilization": 33, "score": 3},
                {"utilization": 100, "score": 7},
            ]
        },
    },
]


def strategy(raw: dict[str, Any], *weights: int) -> Strategy:
    named = [{"name": f"r{n}", "weight": weight} for n, weight in enumerate(weights)]
    return allocation_strategy({**raw, "resources": named})


@pytest.mark.parametrize("raw", STRATEGIES, ids=lambda raw: raw["type"])
@given(rows=st.lists(st.tuples(AMOUNT, AMOUNT), min_size=1, max_size=5))
def test_many_are_rated_as_each_would_be(
    raw: dict[str, Any], rows: list[tuple[tuple[int, int], tuple[int, int]]]
) -> None:
    made = strategy(raw, 1, 3)
    columns = [
        tuple(np.array([row[resource][part] for row in rows], np.int64) for part in (0, 1))
        for resource in (0, 1)
    ]
    together = made.score_all(columns, len(rows)).tolist()  # type: ignore[arg-type]
    assert together == [made.score(row) for row in rows]
    assert all(0 <= score <= 100 for score in together)


@given(st.lists(AMOUNT, min_size=1, max_size=4))
def test_evenness_of_one_is_that_of_many(amounts: list[tuple[int, int]]) -> None:
    columns = [(np.array([a], np.int64), np.array([r], np.int64)) for a, r in amounts]
    (rated,) = evenness_all(columns, 1).tolist()
    assert rated == evenness(amounts)
    assert 0 <= rated <= 100


@pytest.mark.parametrize(
    ("kind", "amounts", "score"),
    [
        ("LeastAllocated", [(1000, 250)], 75),
        ("MostAllocated", [(1000, 250)], 25),
        ("LeastAllocated", [(3, 1)], 66),
        ("LeastAllocated", [(1000, 2000)], 0),
        ("MostAllocated", [(1000, 2000)], 100),
        ("LeastAllocated", [(0, 5)], 0),
    ],
)
def test_one_resource(kind: str, amounts: list[tuple[int, int]], score: int) -> None:
    assert strategy({"type": kind}, 1).score(amounts) == score


def test_resources_weigh_as_configured_and_absent_ones_do_not() -> None:
    made = strategy({}, 1, 3)
    assert made.score([(100, 0), (100, 100)]) == 25
    assert made.score([(100, 0), (0, 0)]) == 100


def test_a_broken_line_truncates_towards_zero_on_falling_segments() -> None:
    made = strategy(STRATEGIES[2], 1)
    assert made.score([(100, 0)]) == 100
    assert made.score([(100, 33)]) == 30
    assert made.score([(100, 1)]) == 100 - 2
    assert made.score([(100, 500)]) == 70


def test_cpu_and_memory_when_nothing_is_said() -> None:
    made = allocation_strategy(None)
    assert made.wanted({"cpu": 3, "memory": 4}.__getitem__) == [("cpu", 3), ("memory", 4)]


@pytest.mark.parametrize(
    ("amounts", "score"),
    [
        ([(100, 50), (200, 100)], 100),
        ([(100, 0), (100, 100)], 50),
        ([(100, 50)], 100),
        ([(100, 50), (0, 9)], 100),
        ([(100, 500), (100, 100)], 100),
        ([], 100),
    ],
)
def test_equal_fractions_are_even(amounts: list[tuple[int, int]], score: int) -> None:
    assert evenness(amounts) == score
