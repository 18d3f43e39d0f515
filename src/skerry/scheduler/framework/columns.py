"""One plugin's answers for all rows, caught up with the table's change logs.

A column belongs to one plugin and one plugin signature and is shared by every evaluation with
that signature. It reads the logs from where it stood: few rows go through the per-target form in
plain Python, many through the whole-array form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from skerry.scheduler.framework.plugin import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    NormalizePlugin,
    Scope,
    Scores,
    Verdicts,
    extends,
)
from skerry.scheduler.framework.runner import filter_refusal, guarded
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status
from skerry.scheduler.table import Rows, TargetTable

Item = TypeVar("Item")

# Up to this many rows the per-target form in plain Python beats NumPy's call overhead.
FEW_ROWS = 4


def evaluate_filter(
    plugin: Any, state: CycleState, item: Any, rows: Rows, table: TargetTable[Any]
) -> Verdicts:
    """Ask a filter about *rows*, by whichever form it has."""
    with guarded(plugin, "Filter"):
        if extends(plugin, ArrayFilterPlugin):
            verdicts: Verdicts | None = plugin.filter_all(state, item, rows)
            return verdicts or Verdicts(np.zeros(len(rows), np.int16))
        statuses: list[Status] = []
        index: dict[Status, int] = {}
        codes = np.zeros(len(rows), np.int16)
        for position, row in enumerate(rows.tolist()):
            status = plugin.filter(state, item, table.target(row))
            if status is not None:
                codes[position] = _interned(status, statuses, index)
    return Verdicts(codes, statuses)


def evaluate_score(
    plugin: Any, state: CycleState, item: Any, rows: Rows, table: TargetTable[Any]
) -> Scores:
    """Ask for raw scores of *rows*, by whichever form the plugin has."""
    with guarded(plugin, "Score"):
        if extends(plugin, ArrayScorePlugin):
            scores: Scores = plugin.score_all(state, item, rows)
            return scores
        found = (plugin.score(state, item, table.target(row)) for row in rows.tolist())
        return np.fromiter(found, np.int64, len(rows))


def _interned(status: Status, statuses: list[Status], index: dict[Status, int]) -> int:
    code = index.get(status)
    if code is None:
        statuses.append(status)
        code = index[status] = len(statuses)
    return code


class Column(ABC, Generic[Item]):
    """One plugin's answers for one signature, kept up to date."""

    def __init__(self, plugin: Any, table: TargetTable[Any]) -> None:
        self.plugin = plugin
        self._table = table
        # How many answers were asked for; whoever counts takes and resets it.
        self.asked = 0
        self.scope: Scope = plugin.scope
        self._target_position = -1
        self._placed_position = -1

    def sync(self, state: CycleState, item: Item) -> None:
        """Catch up with the table."""
        table = self._table
        target_position = table.target_log.position
        placed_position = table.placed_log.position if self.scope is Scope.PLACED else 0
        if target_position == self._target_position and placed_position == self._placed_position:
            return
        changed = self._changed(target_position)
        if changed is None or len(changed) > table.capacity // 2:
            self._resize(table.capacity)
            self._evaluate(state, item, table.rows())
            self.asked += len(table)
        elif len(changed) <= FEW_ROWS:
            self._evaluate_few(state, item, [row for row in changed if table.live[row]])
            self.asked += len(changed)
        else:
            rows = np.array(changed, np.int64)
            self._evaluate(state, item, rows[table.live[rows]])
            self.asked += len(changed)
        self._target_position, self._placed_position = target_position, placed_position
        self._synced()

    def _changed(self, target_position: int) -> list[int] | None:
        if self._target_position < 0 or self._size() != self._table.capacity:
            return None
        if self.scope is Scope.TARGETS and target_position != self._target_position:
            return None
        return changed_rows(
            self._table,
            self._target_position,
            self._placed_position if self.scope is Scope.PLACED else None,
        )

    @abstractmethod
    def _size(self) -> int:
        """Return for how many rows there is room."""

    @abstractmethod
    def _resize(self, capacity: int) -> None:
        """Make room for *capacity* rows and forget what was there."""

    @abstractmethod
    def _evaluate(self, state: CycleState, item: Item, rows: Rows) -> None:
        """Ask about many rows at once."""

    @abstractmethod
    def _evaluate_few(self, state: CycleState, item: Item, rows: Sequence[int]) -> None:
        """Ask about a few rows, one by one."""

    def _synced(self) -> None:
        """Called when the answers are up to date."""


def changed_rows(
    table: TargetTable[Any], target_position: int, placed_position: int | None
) -> list[int] | None:
    """Return the rows changed since, each once; None when the logs have forgotten."""
    changed = table.target_log.since(target_position)
    if changed is None:
        return None
    if placed_position is not None:
        placed = table.placed_log.since(placed_position)
        if placed is None:
            return None
        if not changed and len(placed) == 1:
            return placed
        changed = changed + placed
    return list(set(changed)) if len(changed) > 1 else changed


class FilterColumn(Column[Item]):
    """Verdict codes by row; 0 passes."""

    def __init__(self, plugin: Any, table: TargetTable[Any]) -> None:
        super().__init__(plugin, table)
        self.codes: NDArray[np.int16] = np.zeros(0, np.int16)
        self.statuses: list[Status] = []
        self._index: dict[Status, int] = {}

    def _size(self) -> int:
        return len(self.codes)

    def _resize(self, capacity: int) -> None:
        self.codes = np.zeros(capacity, np.int16)

    def _evaluate(self, state: CycleState, item: Item, rows: Rows) -> None:
        verdicts = evaluate_filter(self.plugin, state, item, rows, self._table)
        known = [0] + [self._intern(status) for status in verdicts.statuses]
        self.codes[rows] = np.array(known, np.int16)[verdicts.codes]

    def _evaluate_few(self, state: CycleState, item: Item, rows: Sequence[int]) -> None:
        with guarded(self.plugin, "Filter"):
            for row in rows:
                status = self.plugin.filter(state, item, self._table.target(row))
                self.codes[row] = 0 if status is None else self._intern(status)

    def _intern(self, status: Status) -> int:
        return _interned(filter_refusal(self.plugin.name, status), self.statuses, self._index)


class ScoreColumn(Column[Item]):
    """Raw scores by row."""

    def __init__(self, plugin: Any, table: TargetTable[Any], weight: int) -> None:
        super().__init__(plugin, table)
        self.raw: Scores = np.zeros(0, np.int64)
        self.weight = weight
        self.normalizes = extends(plugin, NormalizePlugin)
        # Equal raw scores stay equal, so such a column cannot decide anything.
        self.constant = False

    def _size(self) -> int:
        return len(self.raw)

    def _resize(self, capacity: int) -> None:
        self.raw = np.zeros(capacity, np.int64)

    def _evaluate(self, state: CycleState, item: Item, rows: Rows) -> None:
        self.raw[rows] = evaluate_score(self.plugin, state, item, rows, self._table)

    def _evaluate_few(self, state: CycleState, item: Item, rows: Sequence[int]) -> None:
        with guarded(self.plugin, "Score"):
            for row in rows:
                self.raw[row] = self.plugin.score(state, item, self._table.target(row))

    def _synced(self) -> None:
        if self.normalizes:
            rows = self._table.rows()
            self.constant = len(rows) == 0 or bool((self.raw[rows] == self.raw[rows[0]]).all())
