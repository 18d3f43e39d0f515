"""Targets in rows, and the logs that say which rows changed.

A row number is stable while its target lives and is reused afterwards. Two logs are kept apart
because they move at very different speeds: descriptions of targets change rarely, what is placed
on them changes with every decision.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
TargetT_co = TypeVar("TargetT_co", covariant=True)


class ChangeLog:
    """Rows in the order they changed; readers keep a position each.

    The log forgets its older half when full: a reader that far behind is better off looking at
    every row.
    """

    __slots__ = ("_base", "_limit", "_rows")

    def __init__(self, limit: int = 16384) -> None:
        self._rows: list[int] = []
        self._base = 0
        self._limit = limit

    @property
    def position(self) -> int:
        """Return where a reader that knows everything stands."""
        return self._base + len(self._rows)

    def append(self, row: int) -> None:
        self._rows.append(row)
        if len(self._rows) > self._limit:
            half = self._limit // 2
            del self._rows[:half]
            self._base += half

    def since(self, position: int) -> list[int] | None:
        """Return the rows changed after *position*, repeats included; None when forgotten."""
        if position < self._base:
            return None
        return self._rows[position - self._base :]


class TargetTable(Protocol[TargetT_co]):
    """What the runner needs of a table."""

    target_log: ChangeLog
    placed_log: ChangeLog
    live: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of targets."""

    @property
    def capacity(self) -> int:
        """Return the number of rows, free ones included."""

    def rows(self) -> Rows:
        """Return the live rows, ascending."""

    def target(self, row: int) -> TargetT_co:
        """Return the target in a live row."""

    def row(self, name: str) -> int | None:
        """Return the row of the named target."""
