"""The arithmetic of how full a target is.

All integer steps truncate where Kubernetes' do, since a difference of one point changes placements.
Each function exists for one target in plain Python and for many in arrays; both give equal results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skerry.scheduler.framework.plugin import MAX_SCORE, Scores

Ints = NDArray[np.int64]
# (allocatable, requested with the newcomer) for many targets.
Amounts = tuple[Ints, Ints]
Weights = Sequence[tuple[str, int]]

_STANDARD = (("cpu", 1), ("memory", 1))


class Strategy(Protocol):
    """One way of rating fullness over weighted resources."""

    def wanted(self, request: Callable[[str], int]) -> list[tuple[str, int]]:
        """Return the newcomer's request of each resource that is weighed."""

    def score(self, amounts: Sequence[tuple[int, int]]) -> int:
        """Rate one target from (allocatable, requested) pairs."""

    def score_all(self, amounts: Sequence[Amounts], count: int) -> Scores:
        """Rate many."""


def allocation_strategy(raw: Mapping[str, Any] | None) -> Strategy:
    """Return the configured strategy; LeastAllocated over cpu and memory when none is."""
    raw = raw or {}
    listed = raw.get("resources") or [{"name": n, "weight": w} for n, w in _STANDARD]
    weights = [(item["name"], item.get("weight") or 1) for item in listed]
    kind = raw.get("type") or "LeastAllocated"
    if kind == "RequestedToCapacityRatio":
        shape = (raw.get("requestedToCapacityRatio") or {}).get("shape") or []
        points = [(int(p.get("utilization", 0)), int(p.get("score", 0)) * 10) for p in shape]
        return _RatioStrategy(weights, points)
    return _LinearStrategy(weights, most_allocated=kind == "MostAllocated")


class _Weighted:
    def __init__(self, weights: Weights) -> None:
        self._weights = [weight for _, weight in weights]
        self._names = [name for name, _ in weights]

    def wanted(self, request: Callable[[str], int]) -> list[tuple[str, int]]:
        return [(name, request(name)) for name in self._names]


class _LinearStrategy(_Weighted):
    """LeastAllocated, or its mirror image MostAllocated."""

    def __init__(self, weights: Weights, *, most_allocated: bool) -> None:
        super().__init__(weights)
        self._most_allocated = most_allocated

    def score(self, amounts: Sequence[tuple[int, int]]) -> int:
        total = weighed = 0
        for weight, (allocatable, requested) in zip(self._weights, amounts, strict=True):
            if allocatable == 0:
                continue
            left = allocatable - requested if requested <= allocatable else 0
            part = allocatable - left if self._most_allocated else left
            total += part * MAX_SCORE // allocatable * weight
            weighed += weight
        return total // weighed if weighed else 0

    def score_all(self, amounts: Sequence[Amounts], count: int) -> Scores:
        total, weighed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for weight, (allocatable, requested) in zip(self._weights, amounts, strict=True):
            present = allocatable != 0
            divisor = np.where(present, allocatable, 1)
            left = np.maximum(allocatable - requested, 0)
            part = allocatable - left if self._most_allocated else left
            total += np.where(present, part * MAX_SCORE // divisor * weight, 0)
            weighed += np.where(present, weight, 0)
        return total // np.maximum(weighed, 1)


class _RatioStrategy(_Weighted):
    """RequestedToCapacityRatio: a broken line over utilisation, tabulated for 0 to 100."""

    def __init__(self, weights: Weights, points: Sequence[tuple[int, int]]) -> None:
        super().__init__(weights)
        self._line = [_broken_line(points, utilization) for utilization in range(101)]
        self._table = np.array(self._line, np.int64)

    def score(self, amounts: Sequence[tuple[int, int]]) -> int:
        total = weighed = 0
        for weight, (allocatable, requested) in zip(self._weights, amounts, strict=True):
            if allocatable == 0:
                continue
            over = requested > allocatable
            part = self._line[100 if over else requested * 100 // allocatable]
            if part > 0:
                total += part * weight
                weighed += weight
        return math.floor(total / weighed + 0.5) if weighed else 0

    def score_all(self, amounts: Sequence[Amounts], count: int) -> Scores:
        total, weighed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for weight, (allocatable, requested) in zip(self._weights, amounts, strict=True):
            divisor = np.maximum(allocatable, 1)
            used = np.where(requested > allocatable, 100, requested * 100 // divisor)
            part = np.where(allocatable == 0, 0, self._table[np.clip(used, 0, 100)])
            total += part * weight
            weighed += np.where(part > 0, weight, 0)
        rounded = np.floor(total / np.maximum(weighed, 1) + 0.5).astype(np.int64)
        return np.where(weighed > 0, rounded, 0)


def _broken_line(points: Sequence[tuple[int, int]], at: int) -> int:
    for index, (utilization, score) in enumerate(points):
        if at <= utilization:
            if index == 0:
                return score
            before, low = points[index - 1]
            # Integer division truncates towards zero, also on falling segments.
            return low + int((score - low) * (at - before) / (utilization - before))
    return points[-1][1]


def evenness(amounts: Sequence[tuple[int, int]]) -> int:
    """Rate how close the used fractions are to one another; 100 when equal."""
    fractions = [
        min(requested / allocatable, 1.0) for allocatable, requested in amounts if allocatable
    ]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = _added(fractions) / len(fractions)
        deviation = math.sqrt(_added([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    return int((1 - deviation) * MAX_SCORE)


def _added(numbers: Sequence[float]) -> float:
    # One by one: sum() compensates for rounding in newer Pythons and would differ in the last bit.
    total = 0.0
    for number in numbers:
        total += number
    return total


def evenness_all(amounts: Sequence[Amounts], count: int) -> Scores:
    """Rate many."""
    present = [allocatable != 0 for allocatable, _ in amounts]
    fractions = [
        np.where(here, np.minimum(requested / np.where(here, allocatable, 1), 1.0), 0.0)
        for here, (allocatable, requested) in zip(present, amounts, strict=True)
    ]
    if len(amounts) == 2:
        deviation = np.where(
            present[0] & present[1], np.abs((fractions[0] - fractions[1]) / 2), 0.0
        )
    else:
        deviation = _deviation(present, fractions, count)
    rated: Scores = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return rated


def _deviation(
    present: Sequence[NDArray[np.bool_]], fractions: Sequence[NDArray[np.float64]], count: int
) -> NDArray[np.float64]:
    number = np.zeros(count, np.int64)
    total, first, second = (np.zeros(count) for _ in range(3))
    for here, fraction in zip(present, fractions, strict=True):
        second = np.where(here & (number == 1), fraction, second)
        first = np.where(here & (number == 0), fraction, first)
        number += here
        total += fraction
    mean = total / np.maximum(number, 1)
    squares = np.zeros(count)
    for here, fraction in zip(present, fractions, strict=True):
        squares += np.where(here, (fraction - mean) * (fraction - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    return np.where(number == 2, np.abs((first - second) / 2), np.where(number > 2, many, 0.0))
