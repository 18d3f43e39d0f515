"""All targets at once, and only what changed.

For each signature of items an ``Evaluation`` holds one feasibility bit and one total per row. It
is made of columns, one per cacheable plugin and plugin signature, which evaluations share: five
hundred kinds of pods with the same tolerations have one column of taint verdicts. Every column
and every evaluation remembers how far it has read the table's change logs and catches up row by
row; a reader too far behind starts over with the whole-array form.

Plugins without the caching promise are asked about the survivors every time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from skerry.scheduler.framework.columns import (
    FEW_ROWS,
    Column,
    FilterColumn,
    ScoreColumn,
    changed_rows,
    evaluate_filter,
    evaluate_score,
)
from skerry.scheduler.framework.plugin import (
    CacheablePlugin,
    Diagnosis,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    Scores,
    Verdicts,
)
from skerry.scheduler.framework.runner import (
    CachedResults,
    Framework,
    PreFiltered,
    ScoreError,
    filter_refusal,
    guarded,
)
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Code, Status
from skerry.scheduler.table import Rows, TargetTable

Item = TypeVar("Item")
Target = TypeVar("Target")

# Signatures worth remembering; each costs some tens of bytes per target.
EVALUATIONS_KEPT = 512
COLUMNS_KEPT = 1024

_SCORERS = "framework/scorers"


class Evaluation(Generic[Item]):
    """What is known for one signature."""

    def __init__(self, table: TargetTable[Any]) -> None:
        self._table = table
        self.entries: dict[str, Any] = {}
        self.pre_filter: dict[str, tuple[Any, Status | None]] = {}
        self.known: CachedResults | None = None
        self.skip_filter: frozenset[str] = frozenset()
        self.skip_score: frozenset[str] = frozenset()
        self.filters: dict[str, FilterColumn[Item]] = {}
        self.scores: list[ScoreColumn[Item]] = []
        self.normalized: list[ScoreColumn[Item]] = []
        # All of the above, and those among them that follow placements.
        self.columns: list[Column[Item]] = []
        self.placed: list[Column[Item]] = []
        self.follows_all = False
        self.built = False
        # Feasible by every cacheable filter; weighted sum of every column that needs no
        # normalisation, -1 where not feasible.
        self.feasible: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.total: Scores = np.zeros(0, np.int64)
        self._target_position = -1
        self._placed_position = -1

    def sync(self, state: CycleState, item: Item) -> None:
        """Bring all columns, then the sums, up to the table's present state."""
        table = self._table
        moved = table.target_log.position != self._target_position
        for column in self.columns if moved else self.placed:
            column.sync(state, item)
        if len(self.feasible) != table.capacity or self._target_position < 0:
            changed = None
        elif moved and self.follows_all:
            # One target's change may have moved the scores of every other.
            changed = None
        else:
            changed = changed_rows(table, self._target_position, self._placed_position)
        if changed is None or len(changed) > table.capacity // 2:
            self.feasible = np.zeros(table.capacity, np.bool_)
            self.total = np.full(table.capacity, -1, np.int64)
            self._sum(table.rows())
        elif len(changed) <= FEW_ROWS:
            for row in changed:
                self._sum_one(row)
        else:
            self._sum(np.array(changed, np.int64))
        self._target_position = table.target_log.position
        self._placed_position = table.placed_log.position

    def _sum(self, rows: Rows) -> None:
        feasible = self._table.live[rows]
        for column in self.filters.values():
            feasible &= column.codes[rows] == 0
        total = np.zeros(len(rows), np.int64)
        for score in self.scores:
            total += score.weight * _checked(score, score.raw[rows])
        self.feasible[rows] = feasible
        self.total[rows] = np.where(feasible, total, -1)

    def _sum_one(self, row: int) -> None:
        feasible = bool(self._table.live[row])
        if feasible:
            for column in self.filters.values():
                if column.codes[row]:
                    feasible = False
                    break
        self.feasible[row] = feasible
        total = -1
        if feasible:
            total = 0
            for score in self.scores:
                raw = int(score.raw[row])
                if not 0 <= raw <= 100:
                    raise ScoreError(score.plugin.name, raw)
                total += score.weight * raw
        self.total[row] = total


def _checked(column: ScoreColumn[Any], raw: Scores) -> Scores:
    if len(raw) and (raw.min() < 0 or raw.max() > 100):
        raise ScoreError(column.plugin.name, int(raw.min() if raw.min() < 0 else raw.max()))
    return raw


class Evaluator(Generic[Item, Target]):
    """Keeps the evaluations of one profile over one table."""

    def __init__(self, framework: Framework[Item, Target], table: TargetTable[Target]) -> None:
        self.framework = framework
        self.table = table
        # Tells signatures made by this evaluator from those of one it replaced.
        self.token = object()
        self._kept: OrderedDict[Hashable, Evaluation[Item]] = OrderedDict()
        self._columns: OrderedDict[tuple[str, str, Hashable], Any] = OrderedDict()
        self._cacheable: dict[str, CacheablePlugin[Item]] = {
            name: plugin
            for name, plugin in framework.made.items()
            if isinstance(plugin, CacheablePlugin) and plugin.scope is not Scope.CLUSTER
        }
        self._every_time_filters = [
            plugin for plugin in framework.filter if plugin.name not in self._cacheable
        ]
        self._every_time_scores = [
            plugin for plugin in framework.score if plugin.name not in self._cacheable
        ]
        self._every_time_pre_scores = [
            plugin for plugin in framework.pre_score if plugin.name not in self._cacheable
        ]

    def signature(self, item: Item) -> Signature:
        """Return what the cacheable plugins see of *item*; worth keeping with the item."""
        return Signature(
            tuple((name, plugin.signature(item)) for name, plugin in self._cacheable.items())
        )

    def begin(
        self, item: Item, signature: Signature
    ) -> tuple[Evaluation[Item], CycleState, PreFiltered]:
        """Start an attempt: run PreFilter, from memory where the plugins promised it repeats."""
        evaluation = self._kept.get(signature)
        if evaluation is None:
            evaluation = Evaluation[Item](self.table)
            self._kept[signature] = evaluation
            if len(self._kept) > EVALUATIONS_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(signature)
        state = CycleState(dict(evaluation.entries))
        if evaluation.known is not None:
            prepared = self.framework.run_pre_filter(state, item, None, evaluation.known)
            return evaluation, state, prepared
        known = evaluation.pre_filter

        def answer(
            plugin: PreFilterPlugin[Item], state: CycleState, item: Item
        ) -> tuple[Any, Status | None]:
            remembered = known.get(plugin.name)
            if remembered is not None:
                return remembered
            if plugin.name not in self._cacheable:
                with guarded(plugin, "PreFilter"):
                    return plugin.pre_filter(state, item)
            before = set(state.entries)
            with guarded(plugin, "PreFilter"):
                found = plugin.pre_filter(state, item)
            _remember(evaluation.entries, state, before)
            known[plugin.name] = found
            return found

        prepared = self.framework.run_pre_filter(state, item, answer)
        evaluation.known = self._all_known(known)
        if prepared.names is not None and len(prepared.names) == 1:
            # One of a kind, as every daemon's is: keeping it would only push out others.
            del self._kept[signature]
        return evaluation, state, prepared

    def _all_known(self, answers: dict[str, tuple[Any, Status | None]]) -> CachedResults | None:
        """Sum up what cacheable plugins said; None unless all were asked and none refused."""
        cached = [p.name for p in self.framework.pre_filter if p.name in self._cacheable]
        skipped: set[str] = set()
        named: dict[str, frozenset[str]] = {}
        for name in cached:
            if name not in answers:
                return None
            result, status = answers[name]
            if status is not None:
                if status.code is not Code.SKIP:
                    return None
                skipped.add(name)
            elif result is not None and result.names is not None:
                named[name] = result.names
        names = frozenset.intersection(*named.values()) if named else None
        if names is not None and not names:
            return None
        others = [p for p in self.framework.pre_filter if p.name not in self._cacheable]
        return CachedResults(others, frozenset(skipped), names, frozenset(named))

    def build(self, evaluation: Evaluation[Item], state: CycleState, item: Item) -> None:
        """Make the columns on first use, then catch up."""
        if not evaluation.built:
            self._prepare_scores(evaluation, state, item)
            self._choose_columns(evaluation, state, item)
            evaluation.built = True
        state.entries.update(
            (key, value) for key, value in evaluation.entries.items() if key not in state.entries
        )
        evaluation.sync(state, item)

    def _prepare_scores(self, evaluation: Evaluation[Item], state: CycleState, item: Item) -> None:
        skipped: set[str] = set()
        for plugin in self.framework.pre_score:
            if plugin.name not in self._cacheable:
                continue
            before = set(state.entries)
            with guarded(plugin, "PreScore"):
                status = plugin.pre_score(state, item, self.table.rows())
            if status is not None and status.code is Code.SKIP:
                skipped.add(plugin.name)
            _remember(evaluation.entries, state, before)
        evaluation.skip_score = frozenset(skipped)

    def _choose_columns(self, evaluation: Evaluation[Item], state: CycleState, item: Item) -> None:
        for plugin in self.framework.filter:
            if plugin.name in self._cacheable and plugin.name not in state.skip_filter:
                evaluation.filters[plugin.name] = self._filter_column(plugin, item)
        for scorer in self.framework.score:
            if scorer.name in self._cacheable and scorer.name not in evaluation.skip_score:
                column = self._score_column(scorer, item)
                (evaluation.normalized if column.normalizes else evaluation.scores).append(column)
        evaluation.columns = [
            *evaluation.filters.values(),
            *evaluation.scores,
            *evaluation.normalized,
        ]
        evaluation.follows_all = any(c.scope is Scope.TARGETS for c in evaluation.columns)
        evaluation.placed = [c for c in evaluation.columns if c.scope is Scope.PLACED]

    def _filter_column(self, plugin: Any, item: Item) -> FilterColumn[Item]:
        key = ("filter", plugin.name, plugin.signature(item))
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = FilterColumn[Item](plugin, self.table)
            self._trim()
        kept: FilterColumn[Item] = column
        return kept

    def _score_column(self, plugin: Any, item: Item) -> ScoreColumn[Item]:
        key = ("score", plugin.name, plugin.signature(item))
        column = self._columns.get(key)
        if column is None:
            weight = self.framework.weights[plugin.name]
            column = self._columns[key] = ScoreColumn[Item](plugin, self.table, weight)
            self._trim()
        kept: ScoreColumn[Item] = column
        return kept

    def _asked(self, plugin: Any, point: str, rows: int, began: float | None) -> None:
        self.framework.recorder.evaluated(plugin.name, point, self.framework.name, rows)
        if began is not None:
            self.framework.time(plugin, point, began)

    def count_evaluations(self) -> None:
        """Tell the recorder how often cached plugins really were asked since last time."""
        for (kind, name, _), column in self._columns.items():
            if column.asked:
                point = "Filter" if kind == "filter" else "Score"
                self.framework.recorder.evaluated(name, point, self.framework.name, column.asked)
                column.asked = 0

    def _trim(self) -> None:
        # Evaluations hold their columns themselves, so an evicted one still works.
        if len(self._columns) > COLUMNS_KEPT:
            self._columns.popitem(last=False)

    def other_filters(self, state: CycleState) -> list[Any]:
        """Return the filters that must be asked every time, less those that skip."""
        if not state.skip_filter:
            return list(self._every_time_filters)
        return [p for p in self._every_time_filters if p.name not in state.skip_filter]

    def feasible(
        self, evaluation: Evaluation[Item], state: CycleState, item: Item
    ) -> NDArray[np.bool_]:
        """Return which rows pass every filter; do not change the answer, it may be the cache."""
        mask = evaluation.feasible
        for plugin in self.other_filters(state):
            rows = np.flatnonzero(mask)
            verdicts = evaluate_filter(plugin, state, item, rows, self.table)
            self.framework.recorder.evaluated(plugin.name, "Filter", self.framework.name, len(rows))
            raise_errors(plugin, verdicts)
            if verdicts.codes.any():
                if mask is evaluation.feasible:
                    mask = mask.copy()
                mask[rows[verdicts.codes != 0]] = False
        return mask

    def diagnose(
        self, evaluation: Evaluation[Item], state: CycleState, item: Item, rows: Rows
    ) -> Diagnosis:
        """Say for each of *rows* which filter turned it down first, in configured order."""
        diagnosis = Diagnosis(codes=np.zeros(self.table.capacity, np.int32))
        undecided = rows
        for plugin in self.framework.filter:
            if not len(undecided) or plugin.name in state.skip_filter:
                continue
            column = evaluation.filters.get(plugin.name)
            if column is not None:
                verdicts = Verdicts(column.codes[undecided], column.statuses)
            else:
                verdicts = evaluate_filter(plugin, state, item, undecided, self.table)
            undecided = _blame(diagnosis, plugin, verdicts, undecided)
        return diagnosis

    def decides_more(
        self, evaluation: Evaluation[Item], state: CycleState, item: Item, rows: Rows
    ) -> bool:
        """Tell whether anything beyond the running totals can change who wins.

        Prepares the scorers that are asked every time; ``totals`` finds them prepared.
        """
        if any(not column.constant for column in evaluation.normalized):
            return True
        return bool(self.scorers(state, item, rows))

    def totals(
        self, evaluation: Evaluation[Item], state: CycleState, item: Item, rows: Rows
    ) -> Scores:
        """Return the weighted total of each of the feasible *rows*."""
        total: Scores = evaluation.total[rows]
        for column in evaluation.normalized:
            if column.constant:
                continue
            raw = column.raw[rows]
            final = self.framework.normalized(column.plugin, state, item, raw, rows)
            total = total + column.weight * final
        for plugin in self.scorers(state, item, rows):
            began = self.framework.now() if self.framework.sampled() else None
            raw = evaluate_score(plugin, state, item, rows, self.table)
            self._asked(plugin, "Score", len(rows), began)
            final = self.framework.normalized(plugin, state, item, raw, rows)
            total = total + self.framework.weights[plugin.name] * final
        return total

    def scorers(self, state: CycleState, item: Item, rows: Rows) -> list[Any]:
        """Prepare and return the scorers that are asked every time, less those that skip.

        Prepared once per attempt, however often this is asked.
        """
        ready: list[Any] | None = state.entries.get(_SCORERS)
        if ready is None:
            skipped: set[str] = set()
            for plugin in self._every_time_pre_scores:
                skipped |= _pre_scored(plugin, state, item, rows)
            ready = [plugin for plugin in self._every_time_scores if plugin.name not in skipped]
            state.entries[_SCORERS] = ready
        return ready

    def by_plugin(
        self, evaluation: Evaluation[Item], state: CycleState, item: Item, rows: Rows
    ) -> dict[str, Scores]:
        """Return each plugin's weighted score of the feasible *rows*, for explanations."""
        found: dict[str, Scores] = {}
        weights = self.framework.weights
        for column in (*evaluation.scores, *evaluation.normalized):
            final = self.framework.normalized(column.plugin, state, item, column.raw[rows], rows)
            found[column.plugin.name] = column.weight * final
        for plugin in self.scorers(state, item, rows):
            raw = evaluate_score(plugin, state, item, rows, self.table)
            final = self.framework.normalized(plugin, state, item, raw, rows)
            found[plugin.name] = weights[plugin.name] * final
        return {
            plugin.name: found[plugin.name]
            for plugin in self.framework.score
            if plugin.name in found
        }


class Signature:
    """A tuple that knows its hash; deep tuples are hashed anew each time otherwise."""

    __slots__ = ("_hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Signature) and self.key == other.key)


def _pre_scored(plugin: PreScorePlugin[Any], state: CycleState, item: Any, rows: Rows) -> set[str]:
    with guarded(plugin, "PreScore"):
        status = plugin.pre_score(state, item, rows)
    if status is None:
        return set()
    if status.code is Code.SKIP:
        return {plugin.name}
    raise EvaluationFailed(
        Status(Code.ERROR, (f'running PreScore plugin "{plugin.name}": {status.message}',))
    )


class EvaluationFailed(Exception):
    """A plugin answered with an error rather than a verdict."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def raise_errors(plugin: Any, verdicts: Verdicts) -> None:
    """Raise what a filter says that is neither yes nor no."""
    for status in verdicts.statuses:
        if not status.rejected:
            raise EvaluationFailed(filter_refusal(plugin.name, status))


def _blame(diagnosis: Diagnosis, plugin: Any, verdicts: Verdicts, rows: Rows) -> Rows:
    """Enter a plugin's refusals and return the rows it let pass."""
    refused = verdicts.codes != 0
    if not refused.any():
        return rows
    base = len(diagnosis.kinds)
    signed = [filter_refusal(plugin.name, status) for status in verdicts.statuses]
    diagnosis.kinds.extend(signed)
    diagnosis.codes[rows[refused]] = verdicts.codes[refused].astype(np.int32) + base
    for code in np.unique(verdicts.codes[refused]).tolist():
        status = signed[code - 1]
        if not status.rejected:
            raise EvaluationFailed(status)
        diagnosis.blame(status)
    passed: Rows = rows[~refused]
    return passed


def _remember(entries: dict[str, Any], state: CycleState, before: set[str]) -> None:
    for key in state.entries.keys() - before:
        entries[key] = state.entries[key]
