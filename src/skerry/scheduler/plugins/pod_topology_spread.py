"""PodTopologySpread: keep matching pods even over zones, hosts or any other label.

Hard constraints refuse a node whose domain would get too far ahead of the emptiest one; soft ones
cost score. Counts come from running tallies; only when inclusion policies leave some nodes out are
they added up afresh over the nodes that count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skerry.logic.machinery.selectors import Selector
from skerry.logic.machinery.taints import REPELLING, first_untolerated
from skerry.scheduler.cache.counts import Question, Tally, domain_sums
from skerry.scheduler.cache.label_column import LabelColumn
from skerry.scheduler.cache.node import HOSTNAME, ZONE, NodeInfo
from skerry.scheduler.cache.owners import default_selector
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import MAX_SCORE, PreFilterResult, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable, unschedulable
from skerry.scheduler.table import Rows

_REASON = "node(s) didn't match pod topology spread constraints"
_REFUSED = unschedulable(_REASON)
_UNLABELLED = unresolvable(f"{_REASON} (missing required label)")

_SYSTEM_DEFAULTS: tuple[dict[str, Any], ...] = (
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 5},
)

Ints = NDArray[np.int64]


class Constraint(NamedTuple):
    """A spread constraint with its selector compiled."""

    key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


@dataclass(slots=True)
class _Hard:
    """One hard constraint as an attempt finds it."""

    constraint: Constraint
    column: LabelColumn
    # Matching pods by domain; the last element is for nodes without the label.
    sums: Ints
    # Domains that have a node that counts.
    present: NDArray[np.bool_]
    # Rows that count, or None when all do.
    eligible: NDArray[np.bool_] | None
    self_match: int
    # What trials have added, by domain.
    delta: dict[int, int] = field(default_factory=dict)

    def lowest(self) -> int:
        """Return the emptiest domain's count; 0 while there are too few domains."""
        sums, present = self.sums[:-1], self.present
        domains = int(present.sum())
        if domains < self.constraint.min_domains or domains == 0:
            return 0
        if self.delta:
            sums = sums.copy()
            for code, amount in self.delta.items():
                sums[code] += amount
        return int(sums[present].min())

    def clone(self) -> _Hard:
        return _Hard(
            self.constraint,
            self.column,
            self.sums,
            self.present,
            self.eligible,
            self.self_match,
            dict(self.delta),
        )


@dataclass(slots=True)
class _HardState:
    hard: list[_Hard]

    def clone(self) -> _HardState:
        return _HardState([item.clone() for item in self.hard])


@dataclass(frozen=True, slots=True)
class _SoftState:
    ignored: NDArray[np.bool_]
    # Per constraint: column, count by row or by domain, weight, maximal skew.
    parts: tuple[tuple[LabelColumn, Ints, bool, float, int], ...]


class PodTopologySpread:
    name = "PodTopologySpread"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table
        self._objects = handle.cluster.objects
        self._system = args.get("defaultingType", "System") == "System"
        listed: Sequence[Mapping[str, Any]] = (
            _SYSTEM_DEFAULTS if self._system else args.get("defaultConstraints") or ()
        )
        self._defaults = tuple(listed)
        self._default_actions = frozenset(item["whenUnsatisfiable"] for item in listed)
        # (requirement, tolerations, policies) → rows that count, until some node changes.
        self._eligible: dict[Any, NDArray[np.bool_] | None] = {}
        self._eligible_at = -1

    def constraints(self, pod: PodInfo, action: str) -> tuple[Constraint, ...]:
        """Return the pod's own constraints, or the defaults with a selector from its owners."""
        if pod.spec.spread:
            key = f"{self.name}/{action}"
            known: tuple[Constraint, ...] | None = pod.spec.derived.get(key)
            if known is None:
                known = pod.spec.derived[key] = _compiled(pod.spec.spread, pod, action)
            return known
        if action not in self._default_actions:
            return ()
        selector = default_selector(pod, self._objects)
        if selector.empty:
            return ()
        found = _compiled(self._defaults, pod, action)
        return tuple(item._replace(selector=selector) for item in found)

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        constraints = self.constraints(pod, "DoNotSchedule")
        if not constraints:
            return None, SKIP
        columns = [self._table.label(item.key) for item in constraints]
        hard = [
            self._counted(pod, item, column, columns)
            for item, column in zip(constraints, columns, strict=True)
        ]
        state.write(self.name, _HardState(hard))
        return None, None

    def _counted(
        self, pod: PodInfo, item: Constraint, column: LabelColumn, columns: list[LabelColumn]
    ) -> _Hard:
        eligible = self._counting_rows(pod, item, columns)
        tally = self._tally(pod, item)
        if eligible is None:
            sums = tally.domains(item.key)
            present = np.array(column.population, np.int64) > 0
        else:
            sums, present = self._sums_over(tally, column, eligible)
        matches = int(item.selector.matches(pod.spec.labels))
        return _Hard(item, column, sums, present, eligible, matches)

    def _sums_over(
        self, tally: Tally, column: LabelColumn, eligible: NDArray[np.bool_]
    ) -> tuple[Ints, NDArray[np.bool_]]:
        counted = np.where(eligible, tally.by_row, 0)
        sums = domain_sums(column.codes, counted, len(column.values))
        present = np.zeros(len(column.values) + 1, np.bool_)
        present[column.codes[eligible]] = True
        return sums, present[:-1]

    def _tally(self, pod: PodInfo, item: Constraint) -> Tally:
        # A pod's own constraints live as long as its template, so their selectors' identity
        # names the question; selectors of defaults are made anew each time.
        key = (self.name, id(item.selector)) if pod.spec.spread else None
        known: Tally | None = pod.spec.derived.get(key)
        if known is not None and known.kept:
            return known
        # Nothing matches an empty selector here, against the habit of selectors elsewhere.
        selector = Selector(nothing=True) if item.selector.empty else item.selector
        question = Question(frozenset({pod.namespace}), (selector,), count_terminating=False)
        found = self._table.counts.tally(question)
        if key is not None:
            pod.spec.derived[key] = found
        return found

    def _counting_rows(
        self, pod: PodInfo, item: Constraint, columns: Sequence[LabelColumn]
    ) -> NDArray[np.bool_] | None:
        """Return the rows whose pods count; None when all labelled rows do."""
        position = self._table.target_log.position
        if position != self._eligible_at or len(self._eligible) > 256:
            self._eligible.clear()
            self._eligible_at = position
        key = (
            pod.spec.requirement.key if item.honor_affinity else None,
            pod.spec.tolerations if item.honor_taints else None,
            tuple(column.key for column in columns if column.key != item.key),
        )
        if key not in self._eligible:
            self._eligible[key] = self._eligible_rows(pod, item, columns)
        return self._eligible[key]

    def _eligible_rows(
        self, pod: PodInfo, item: Constraint, columns: Sequence[LabelColumn]
    ) -> NDArray[np.bool_] | None:
        table = self._table
        rows = table.rows()
        passing = np.ones(len(rows), np.bool_)
        if item.honor_affinity and not pod.spec.requirement.trivial:
            passing &= table.matching(pod.spec.requirement, rows)
        if item.honor_taints:
            tolerations = pod.spec.tolerations
            lists = [
                first_untolerated(t, tolerations, REPELLING) is None for t in table.taint_lists
            ]
            passing &= np.array(lists, np.bool_)[table.taint_list[rows]]
        for column in columns:
            # Lacking this constraint's own key excludes a row from its sums anyway.
            if column.key != item.key:
                passing &= column.codes[rows] >= 0
        if passing.all():
            return None
        eligible = np.zeros(table.capacity, np.bool_)
        eligible[rows[passing]] = True
        return eligible

    def add_item(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        self._shift(state, pod, added, node, 1)
        return None

    def remove_item(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        self._shift(state, pod, removed, node, -1)
        return None

    def _shift(
        self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int
    ) -> None:
        prepared: _HardState | None = state.read(self.name)
        if prepared is None or other.namespace != pod.namespace or other.terminating:
            # kube-scheduler counts terminating pods here, though nowhere else; we do not.
            return
        if any(hard.constraint.key not in node.labels for hard in prepared.hard):
            return
        for hard in prepared.hard:
            selector = hard.constraint.selector
            if selector.empty or not selector.matches(other.spec.labels):
                continue
            if hard.eligible is None or hard.eligible[node.row]:
                code = int(hard.column.codes[node.row])
                hard.delta[code] = hard.delta.get(code, 0) + sign

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        prepared: _HardState = state.read(self.name)
        for hard in prepared.hard:
            if hard.constraint.key not in node.labels:
                return _UNLABELLED
            code = int(hard.column.codes[node.row])
            count = int(hard.sums[code]) + hard.delta.get(code, 0)
            if count + hard.self_match - hard.lowest() > hard.constraint.max_skew:
                return _REFUSED
        return None

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        prepared: _HardState = state.read(self.name)
        codes = np.zeros(len(rows), np.int16)
        for hard in prepared.hard:
            limit = hard.constraint.max_skew - hard.self_match + hard.lowest()
            lookup = (hard.sums > limit).astype(np.int16)
            lookup[-1] = 2
            found = lookup[hard.column.codes[rows]]
            codes = found if len(prepared.hard) == 1 else np.where(codes == 0, found, codes)
        return Verdicts(codes, (_REFUSED, _UNLABELLED))

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        constraints = self.constraints(pod, "ScheduleAnyway")
        if not constraints or not len(self._table):
            return SKIP
        # System defaults let nodes without a zone still spread by host.
        all_keys = bool(pod.spec.spread) or not self._system
        columns = [self._table.label(item.key) for item in constraints]
        ignored = np.zeros(len(rows), np.bool_)
        for column in columns if all_keys else ():
            ignored |= column.codes[rows] < 0
        scored = rows[~ignored]
        parts = tuple(
            self._part(pod, item, column, columns if all_keys else (), scored)
            for item, column in zip(constraints, columns, strict=True)
        )
        state.write(f"{self.name}/score", _SoftState(ignored, parts))
        return None

    def _part(
        self,
        pod: PodInfo,
        item: Constraint,
        column: LabelColumn,
        required: Sequence[LabelColumn],
        scored: Rows,
    ) -> tuple[LabelColumn, Ints, bool, float, int]:
        tally = self._tally(pod, item)
        if item.key == HOSTNAME:
            return column, tally.by_row, True, math.log(len(scored) + 2), item.max_skew
        domains = int(np.count_nonzero(np.bincount(column.codes[scored] + 1)))
        eligible = self._counting_rows(pod, item, required)
        if eligible is None:
            sums = tally.domains(item.key)
        else:
            sums, _ = self._sums_over(tally, column, eligible)
        return column, sums, False, math.log(domains + 2), item.max_skew

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return int(self.score_all(state, pod, np.array([node.row], np.int64))[0])

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        prepared: _SoftState = state.read(f"{self.name}/score")
        total = np.zeros(len(rows), np.float64)
        for column, counts, by_row, weight, skew in prepared.parts:
            codes = column.codes[rows]
            found = counts[rows] if by_row else counts[codes]
            total += np.where(codes >= 0, found * weight + float(skew - 1), 0.0)
        rounded: Scores = np.floor(total + 0.5).astype(np.int64)
        if len(rows) == len(prepared.ignored):
            rounded[prepared.ignored] = 0
        return rounded

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores, rows: Rows) -> Scores:
        prepared: _SoftState = state.read(f"{self.name}/score")
        counted = scores[~prepared.ignored]
        highest = int(counted.max()) if len(counted) else 0
        if highest == 0:
            return np.where(prepared.ignored, 0, MAX_SCORE)
        final = MAX_SCORE * (highest + int(counted.min()) - scores) // highest
        return np.where(prepared.ignored, 0, final)

    def events_to_register(self) -> Sequence[Registration]:
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATIONS | Action.DELETE
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return [
            Registration(ClusterEvent(POD, pods), self._after_pod_change),
            Registration(ClusterEvent(NODE, nodes), self._after_node_change),
        ]

    def _after_pod_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        for changed in (old, new):
            if changed is not None and not _involved(changed, pod):
                return Hint.SKIP
        constraints = self.constraints(pod, "DoNotSchedule")
        if old is not None and new is not None:
            if (
                new.uid == pod.uid
                and old.spec.tolerations != new.spec.tolerations
                and any(item.honor_taints for item in constraints)
            ):
                return Hint.QUEUE
            flips = any(
                item.selector.matches(old.spec.labels) != item.selector.matches(new.spec.labels)
                for item in constraints
            )
            return Hint.QUEUE if flips else Hint.SKIP
        labels = (new or old).spec.labels
        touched = any(item.selector.matches(labels) for item in constraints)
        return Hint.QUEUE if touched else Hint.SKIP

    def _after_node_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        keys = [item.key for item in self.constraints(pod, "DoNotSchedule")]
        had = old is not None and all(key in old.labels for key in keys)
        has = new is not None and all(key in new.labels for key in keys)
        if old is None or new is None:
            return Hint.QUEUE if had or has else Hint.SKIP
        moved = has and (
            old.taints != new.taints
            or any(old.labels.get(key) != new.labels.get(key) for key in keys)
        )
        return Hint.QUEUE if had != has or moved else Hint.SKIP


def _involved(changed: PodInfo, pod: PodInfo) -> bool:
    return changed.uid == pod.uid or (
        bool(changed.node_name) and changed.namespace == pod.namespace
    )


def _compiled(
    listed: Sequence[Mapping[str, Any]], pod: PodInfo, action: str
) -> tuple[Constraint, ...]:
    found = []
    for raw in listed:
        if raw.get("whenUnsatisfiable") != action:
            continue
        selector = Selector.from_label_selector(raw.get("labelSelector"))
        labels = pod.spec.labels
        keys = {key: labels[key] for key in raw.get("matchLabelKeys") or () if key in labels}
        if keys and not selector.nothing:
            wanted = Selector.from_labels(keys).requirements
            selector = Selector((*selector.requirements, *wanted))
        found.append(
            Constraint(
                key=raw.get("topologyKey", ""),
                max_skew=int(raw.get("maxSkew", 1)),
                selector=selector,
                min_domains=int(raw.get("minDomains") or 1),
                honor_affinity=(raw.get("nodeAffinityPolicy") or "Honor") == "Honor",
                honor_taints=(raw.get("nodeTaintsPolicy") or "Ignore") == "Honor",
            )
        )
    return tuple(found)
