"""Percentiles of values that come and go.

Values are counted. Up to 2,048 different ones the percentile is the value itself, by nearest rank.
Beyond that, sorting them for every answer costs too much, and buckets are counted as well whose
bounds grow by two per cent: the middle of a bucket is within one per cent of everything in it.
Both are functions of the values present, whatever came and went before, so an answer computed from
scratch is the same; and what is taken out is gone, without drift.

That is what the usual sketches lack. A t-digest or a KLL sketch depends on the order in which
values arrived and cannot take one out again; an edge that reports once a second for a year would be
in it thirty million times. Here every value is counted exactly beside the buckets, which costs
memory for each different one and makes the way back possible: when few enough are left, the answer
is exact again. ``approximate`` in the answer says which of the two it is.

Buckets are relative because what is measured here (latencies, sizes, restarts) is read that way:
one per cent of a second and one per cent of an hour are both precise enough, and zero and negative
numbers have buckets of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from skerry.logic.fleet.query.values import Number

MAX_EXACT: Final = 2048
_GROWTH: Final = 1.02
_LOG = math.log(_GROWTH)
# From the upper bound of a bucket to its middle, where the relative error to both ends is equal.
_LOG2_MIDDLE = math.log2(2 / (_GROWTH + 1))
_LOG2 = math.log2(_GROWTH)
_MANTISSA_BITS = 52


class Percentiles:
    """A bag of numbers that knows its percentiles."""

    __slots__ = ("_buckets", "_counts", "_number")

    def __init__(self, values: Iterable[Number] = ()) -> None:
        self._counts: dict[Number, int] = {}
        self._buckets: dict[int, int] | None = None
        self._number = 0
        for value in values:
            self.add(value)

    def __bool__(self) -> bool:
        return self._number > 0

    @property
    def approximate(self) -> bool:
        """Whether there are too many different values for an exact answer."""
        return self._buckets is not None

    def add(self, value: Number) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1
        self._number += 1
        if self._buckets is not None:
            _count(self._buckets, bucket_of(value), 1)
        elif len(self._counts) > MAX_EXACT:
            self._buckets = {}
            for each, count in self._counts.items():
                _count(self._buckets, bucket_of(each), count)

    def remove(self, value: Number) -> None:
        """Take out one of what was added; KeyError when there is none."""
        _count(self._counts, value, -1)
        self._number -= 1
        if self._buckets is not None:
            if len(self._counts) <= MAX_EXACT:
                self._buckets = None
            else:
                _count(self._buckets, bucket_of(value), -1)

    def at(self, percentile: float) -> Number | None:
        """Return the value at a percentile; None when there is no value."""
        if not self._number:
            return None
        rank = max(1, math.ceil(percentile / 100 * self._number))
        if self._buckets is None:
            return _ranked(self._counts, rank)
        return middle_of(_ranked(self._buckets, rank))


def _count(counts: dict[Number, int] | dict[int, int], key: Number, change: int) -> None:
    found: dict[Number, int] = counts  # type: ignore[assignment]
    left = found[key] + change if change < 0 else found.get(key, 0) + change
    if left:
        found[key] = left
    else:
        del found[key]


def _ranked(counts: Mapping[Number, int] | Mapping[int, int], rank: int) -> Number:
    """Return the value of a rank, counted from 1."""
    value: Number = 0
    for value in sorted(counts):
        rank -= counts[value]  # type: ignore[index]
        if rank <= 0:
            break
    return value


# Of 0 itself; below are the buckets of negative numbers, mirrored. The smallest positive float is
# in bucket -37,600 or so, and no bucket has the number of another sign.
_OFFSET = 100_000


def bucket_of(value: Number) -> int:
    """Return the bucket of a number; buckets are ordered as their numbers are."""
    if not value:
        return 0
    exponent = math.ceil(math.log(abs(value)) / _LOG) + _OFFSET
    return exponent if value > 0 else -exponent


def middle_of(bucket: Number) -> Number:
    """Return the number that stands for a bucket, exact as far as integers are."""
    if not bucket:
        return 0
    power = (abs(bucket) - _OFFSET) * _LOG2 + _LOG2_MIDDLE
    whole = math.floor(power)
    mantissa = round(2 ** (power - whole) * (1 << _MANTISSA_BITS))
    shift = whole - _MANTISSA_BITS
    size: Number = mantissa << shift if shift >= 0 else mantissa / (1 << -shift)
    return size if bucket > 0 else -size
