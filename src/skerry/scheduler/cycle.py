"""One decision: which node, or why none.

The steps are kube-scheduler's: PreFilter, the nominated node first, Filter, then PreScore, Score
and selection. Each works on all nodes at once and on cached answers where plugins allow it, so a
decision for a pod like the last one costs a handful of array operations. Deciding does no I/O and
changes nothing but caches; extenders, which need I/O, are asked in between by whoever runs this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skerry.kit.ids import IdSource
from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.evaluation import (
    Evaluation,
    EvaluationFailed,
    Evaluator,
    Signature,
)
from skerry.scheduler.framework.handle import NominationTable
from skerry.scheduler.framework.plugin import Diagnosis, Scores
from skerry.scheduler.framework.runner import (
    Framework,
    PluginRaised,
    PreFiltered,
    ScoreError,
    status_label,
)
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, error, unresolvable
from skerry.scheduler.framework.trial import (
    Trials,
    filter_with_nominated,
    filter_with_promised,
    promised_on,
    recall,
    remember,
)
from skerry.scheduler.table import Rows

Ties = Literal["random", "first"]

# Clusters smaller than this, and never fewer nodes than this, are searched whole.
_MIN_FEASIBLE = 100
# Adaptive sampling never looks for less than this percentage.
_MIN_PERCENTAGE = 5


@dataclass(slots=True)
class Profile:
    """One profile with its caches."""

    framework: Framework[PodInfo, NodeInfo]
    evaluator: Evaluator[PodInfo, NodeInfo]
    # None: score every node. 0: as many as kube-scheduler would. Else a percentage.
    percentage: int | None = None
    # What refuses pods on nodes whose room is promised to others.
    promises: Trials[Status | None] = field(default_factory=Trials)

    @property
    def name(self) -> str:
        return self.framework.name


@dataclass(slots=True)
class Found:
    """What filtering left."""

    state: CycleState
    evaluation: Evaluation[PodInfo] | None
    # Feasible rows, or a mask that is the cache's own and needs no more filtering.
    rows: Rows | None
    mask: NDArray[np.bool_] | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    # Rows that would be feasible were they not promised to others.
    promised: dict[int, Status] = field(default_factory=dict)

    def feasible(self) -> Rows:
        """Return the feasible rows."""
        if self.rows is None:
            self.rows = np.flatnonzero(self.mask) if self.mask is not None else _NO_ROWS
        return self.rows


_NO_ROWS: Rows = np.zeros(0, np.int64)


class DecisionFailed(Exception):
    """A decision could not be made: a plugin failed, or there is nothing to choose from."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


NO_NODES = unresolvable("no nodes available to schedule pods")


class Decider:
    """Makes decisions over one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        nominations: NominationTable,
        ids: IdSource,
        ties: Ties = "random",
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._cluster = cluster
        self._table = cluster.table
        self._nominations = nominations
        self._ids = ids
        self._ties = ties
        self._now = now
        self._start = 0

    def decide(self, profile: Profile, pod: PodInfo) -> tuple[str, Found]:
        """Return the chosen node's name, empty when none is feasible; without extenders."""
        found = self.find(profile, pod)
        return self.choose(profile, pod, found), found

    def find(self, profile: Profile, pod: PodInfo) -> Found:
        """Run PreFilter and Filter; raises DecisionFailed when that cannot be done."""
        if not len(self._table):
            raise DecisionFailed(NO_NODES)
        try:
            return self._find(profile, pod)
        except PluginRaised as problem:
            raise DecisionFailed(problem.status()) from problem
        except EvaluationFailed as problem:
            raise DecisionFailed(problem.status) from problem
        except ScoreError as problem:
            raise DecisionFailed(error(str(problem), problem)) from problem

    def _find(self, profile: Profile, pod: PodInfo) -> Found:
        evaluator = profile.evaluator
        began = self._now()
        evaluation, state, prepared = evaluator.begin(pod, self._signature(profile, pod))
        self._record(profile, "PreFilter", began, prepared.status)
        if prepared.status is not None:
            return self._refused_early(state, prepared)
        nominated = pod.nominated_node or self._nominations.node_of(pod.uid)
        if nominated:
            found = self._try_nominated(profile, state, pod, nominated)
            if found is not None:
                return found
        if prepared.names is not None:
            return self._among(profile, state, pod, prepared)
        began = self._now()
        evaluator.build(evaluation, state, pod)
        mask = evaluator.feasible(evaluation, state, pod)
        self._record(profile, "Filter", began)
        promised = self._promised(profile, state, pod, mask)
        if promised:
            mask = mask.copy()
            mask[list(promised)] = False
        found = self._sampled(profile, Found(state, evaluation, None, mask, promised=promised))
        if not self._any(found):
            found.diagnosis = self.diagnose(profile, pod, found)
        return found

    def _record(
        self, profile: Profile, point: str, began: float, status: Status | None = None
    ) -> None:
        label = status_label(status)
        profile.framework.recorder.point(point, label, profile.name, self._now() - began)

    @staticmethod
    def _any(found: Found) -> bool:
        if found.rows is not None:
            return len(found.rows) > 0
        return found.mask is not None and bool(found.mask.any())

    @staticmethod
    def _signature(profile: Profile, pod: PodInfo) -> Signature:
        # A pod that names its node differs from its template; all others share its signature.
        if pod.node_name:
            return profile.evaluator.signature(pod)
        signature: Signature | None = pod.spec.signatures.get(profile.evaluator.token)
        if signature is None:
            signature = profile.evaluator.signature(pod)
            pod.spec.signatures[profile.evaluator.token] = signature
        return signature

    def _refused_early(self, state: CycleState, prepared: PreFiltered) -> Found:
        status = prepared.status
        if status is None or not status.rejected:
            raise DecisionFailed(status or error("PreFilter gave no status"))
        diagnosis = self._blank()
        diagnosis.absent = status
        diagnosis.pre_filter_message = status.message
        diagnosis.rejectors.update(prepared.named_by)
        diagnosis.blame(status)
        return Found(state, None, _NO_ROWS, diagnosis=diagnosis)

    def _blank(self) -> Diagnosis:
        return Diagnosis(total=len(self._table), codes=np.zeros(self._table.capacity, np.int32))

    def _try_nominated(
        self, profile: Profile, state: CycleState, pod: PodInfo, name: str
    ) -> Found | None:
        """Look first at the node room was made on; it is likely the only one that fits."""
        node = self._table.get(name)
        if node is None:
            return None
        status = filter_with_nominated(profile.framework, self._nominations, state, pod, node)
        if status is not None:
            return None
        return Found(state, None, np.array([node.row], np.int64), diagnosis=self._blank())

    def _among(
        self, profile: Profile, state: CycleState, pod: PodInfo, prepared: PreFiltered
    ) -> Found:
        """Look only at the nodes PreFilter named; nothing is computed for any other."""
        diagnosis = self._blank()
        plugins = " ".join(sorted(prepared.named_by))
        diagnosis.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{plugins}]")
        diagnosis.rejectors.update(prepared.named_by)
        rows: list[int] = []
        for name in sorted(prepared.names or ()):
            node = self._table.get(name)
            if node is None:
                continue
            status = filter_with_nominated(profile.framework, self._nominations, state, pod, node)
            if status is None:
                rows.append(node.row)
            elif not status.rejected:
                raise EvaluationFailed(status)
            else:
                diagnosis.set(node.row, status)
                diagnosis.blame(status)
        return Found(state, None, np.array(sorted(rows), np.int64), diagnosis=diagnosis)

    def _promised(
        self, profile: Profile, state: CycleState, pod: PodInfo, mask: NDArray[np.bool_]
    ) -> dict[int, Status]:
        """Return rows of *mask* whose room is promised to others, with what then refuses *pod*.

        Without the promised pods such a row must pass or have been refused already: what is looked
        for here is what they change.
        """
        found: dict[int, Status] = {}
        if not len(self._nominations):
            return found
        framework = profile.framework
        known = profile.promises.known(pod) if framework.local(state) else None
        for name in self._nominations.nodes():
            row = self._table.row(name)
            if row is None or not mask[row]:
                continue
            node = self._table.target(row)
            promised = promised_on(self._nominations, pod, name)
            trial = None if known is None else recall(known, node, promised)
            if trial is not None:
                status = trial.answer
            else:
                status = filter_with_promised(framework, promised, state, pod, node)
                if status is not None and not status.rejected:
                    raise EvaluationFailed(status)
                if known is not None:
                    remember(known, node, promised, status)
            if status is not None:
                found[row] = status
        return found

    def diagnose(self, profile: Profile, pod: PodInfo, found: Found) -> Diagnosis:
        """Say why each node that was not feasible was not."""
        if found.evaluation is None:
            return found.diagnosis
        # Of a node refused either way people are shown what is in the way once all have come.
        promised = found.promised | self._promised(profile, found.state, pod, self._refused(found))
        rows = self._table.rows()
        if promised:
            rows = rows[~np.isin(rows, list(promised))]
        diagnosis = profile.evaluator.diagnose(found.evaluation, found.state, pod, rows)
        diagnosis.total = len(self._table)
        for row, status in promised.items():
            diagnosis.set(row, status)
            diagnosis.blame(status)
        return diagnosis

    def _refused(self, found: Found) -> NDArray[np.bool_]:
        refused = self._table.live.copy()
        refused[found.feasible()] = False
        return refused

    def scores(self, profile: Profile, pod: PodInfo, found: Found) -> dict[str, Scores]:
        """Return each plugin's weighted points of the feasible rows."""
        evaluation = self._evaluated(profile, pod, found)
        return profile.evaluator.by_plugin(evaluation, found.state, pod, found.feasible())

    def refused_all(
        self, profile: Profile, pod: PodInfo, found: Found, refusals: Sequence[tuple[int, Status]]
    ) -> None:
        """Complete the diagnosis when extenders turned down whatever filters had left."""
        if found.evaluation is not None:
            found.diagnosis = self.diagnose(profile, pod, found)
        for row, status in refusals:
            found.diagnosis.set(row, status)

    def _sampled(self, profile: Profile, found: Found) -> Found:
        """Keep only as many feasible nodes as the profile wants to score."""
        total = len(self._table)
        wanted = nodes_to_find(profile.percentage, total)
        if wanted >= total or found.mask is None:
            return found
        order = self._table.order()
        start = self._start % total
        visited = np.concatenate([order[start:], order[:start]])
        feasible = np.flatnonzero(found.mask[visited])
        last = int(feasible[wanted - 1]) + 1 if len(feasible) >= wanted else total
        self._start = (start + last) % total
        rows = np.sort(visited[feasible[:wanted]])
        return Found(found.state, found.evaluation, rows, promised=found.promised)

    def choose(
        self,
        profile: Profile,
        pod: PodInfo,
        found: Found,
        extra: Mapping[str, int] | None = None,
    ) -> str:
        """Score what is feasible and pick; *extra* points come from extenders, by node."""
        try:
            row = self._choose(profile, pod, found, extra)
        except PluginRaised as problem:
            raise DecisionFailed(problem.status()) from problem
        except EvaluationFailed as problem:
            raise DecisionFailed(problem.status) from problem
        except ScoreError as problem:
            text = f"applying score defaultWeights on Score plugins: {problem}"
            raise DecisionFailed(error(text, problem)) from problem
        return "" if row < 0 else self._table.target(row).name

    def _choose(
        self, profile: Profile, pod: PodInfo, found: Found, extra: Mapping[str, int] | None
    ) -> int:
        rows = found.feasible()
        if len(rows) <= 1:
            return int(rows[0]) if len(rows) else -1
        began = self._now()
        evaluation = self._evaluated(profile, pod, found)
        whole = found.mask is evaluation.feasible
        more = profile.evaluator.decides_more(evaluation, found.state, pod, rows)
        self._record(profile, "PreScore", began)
        if whole and not extra and not more:
            # Infeasible rows hold -1, so the running totals can be searched as they are.
            return self._best(evaluation.total, None)
        began = self._now()
        totals = profile.evaluator.totals(evaluation, found.state, pod, rows)
        self._record(profile, "Score", began)
        if extra:
            names = [self._table.target(row).name for row in rows.tolist()]
            totals = totals + np.array([extra.get(name, 0) for name in names], np.int64)
        return self._best(totals, rows)

    def _evaluated(self, profile: Profile, pod: PodInfo, found: Found) -> Evaluation[PodInfo]:
        if found.evaluation is None:
            # Only named nodes were looked at; scoring a few of them needs the columns after all.
            evaluation, _, _ = profile.evaluator.begin(pod, self._signature(profile, pod))
            profile.evaluator.build(evaluation, found.state, pod)
            found.evaluation = evaluation
        return found.evaluation

    def _best(self, totals: Scores, rows: Rows | None) -> int:
        if self._ties == "first":
            index = int(totals.argmax())
        else:
            best = np.flatnonzero(totals == totals.max())
            index = int(best[int(self._ids.fraction() * len(best))])
        return index if rows is None else int(rows[index])


def nodes_to_find(percentage: int | None, total: int) -> int:
    """Return after how many feasible nodes the search may end."""
    if percentage is None or total < _MIN_FEASIBLE:
        return total
    if percentage == 0:
        percentage = max(50 - total // 125, _MIN_PERCENTAGE)
    return max(total * percentage // 100, _MIN_FEASIBLE)
