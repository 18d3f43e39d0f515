"""A table for targets that need no arrays of their own.

Whoever schedules something other than pods puts its targets here and gets everything the runner
offers: caching, change logs, per-target plugins.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from skerry.scheduler.table import ChangeLog, Rows

Target = TypeVar("Target")


class TargetRows(Generic[Target]):
    """Named targets in rows that are reused."""

    def __init__(self, capacity: int = 64) -> None:
        self.target_log = ChangeLog()
        self.placed_log = ChangeLog()
        self.live: NDArray[np.bool_] = np.zeros(capacity, np.bool_)
        self._targets: list[Target | None] = [None] * capacity
        self._names: dict[str, int] = {}
        self._free = list(range(capacity - 1, -1, -1))

    def __len__(self) -> int:
        return len(self._names)

    @property
    def capacity(self) -> int:
        return len(self._targets)

    def rows(self) -> Rows:
        return np.flatnonzero(self.live)

    def row(self, name: str) -> int | None:
        return self._names.get(name)

    def target(self, row: int) -> Target:
        found = self._targets[row]
        if found is None:
            raise LookupError(f"row {row} holds nothing")
        return found

    def set(self, name: str, target: Target) -> int:
        """Add a target or replace it; returns its row."""
        row = self._names.get(name)
        if row is None:
            if not self._free:
                self._grow()
            row = self._names[name] = self._free.pop()
        self._targets[row] = target
        self.live[row] = True
        self.target_log.append(row)
        return row

    def remove(self, name: str) -> None:
        """Forget a target, if there is one of that name."""
        row = self._names.pop(name, None)
        if row is not None:
            self._targets[row] = None
            self.live[row] = False
            self._free.append(row)
            self.target_log.append(row)

    def placed(self, name: str) -> None:
        """Note that what is placed on a target has changed."""
        row = self._names.get(name)
        if row is not None:
            self.placed_log.append(row)

    def _grow(self) -> None:
        old = len(self._targets)
        self._targets.extend([None] * old)
        self._free = list(range(2 * old - 1, old - 1, -1))
        self.live = np.concatenate([self.live, np.zeros(old, np.bool_)])
