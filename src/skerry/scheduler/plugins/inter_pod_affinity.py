"""InterPodAffinity: rules of pods about other pods near them.

"Near" is having the same value of a topology label. All counting is done by running tallies: of
pods each term of the newcomer means, and of placed pods carrying terms that mean the newcomer.
What an attempt prepares is therefore a handful of references; trials keep their own differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skerry.scheduler.cache.counts import PodCounts, Question, Tally
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.terms import AffinityTerm
from skerry.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import MAX_SCORE, PreFilterResult, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable, unschedulable
from skerry.scheduler.table import Rows

_AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
_ANTI = unschedulable("node(s) didn't match pod anti-affinity rules")
_EXISTING = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

Pair = tuple[str, str]


@dataclass(slots=True)
class _Differences:
    """What a trial has added to or taken from the tallies, by (topology key, value)."""

    affinity: dict[Pair, int] = field(default_factory=dict)
    anti: dict[Pair, int] = field(default_factory=dict)
    existing: dict[Pair, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti or self.existing)


@dataclass(slots=True)
class _State:
    # Pods that match all affinity terms at once, and those matching each anti-affinity term.
    affinity: Tally | None
    anti: tuple[tuple[str, Tally], ...]
    # Terms of placed pods that forbid the newcomer.
    existing: tuple[tuple[str, Tally], ...]
    self_affine: bool
    changed: _Differences = field(default_factory=_Differences)

    def clone(self) -> _State:
        changed = _Differences(
            dict(self.changed.affinity), dict(self.changed.anti), dict(self.changed.existing)
        )
        return _State(self.affinity, self.anti, self.existing, self.self_affine, changed)


class InterPodAffinity:
    name = "InterPodAffinity"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table
        self._counts = handle.cluster.table.counts
        weight = args.get("hardPodAffinityWeight")
        self._hard_weight = 1 if weight is None else int(weight)
        self._ignore_existing = bool(args.get("ignorePreferredTermsOfExistingPods"))

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        spec = pod.spec
        existing = tuple(
            (term.topology_key, tally) for term, tally in self._counts.carried(PodCounts.ANTI, pod)
        )
        if not existing and not spec.affinity and not spec.anti_affinity:
            return None, SKIP
        affinity = self._kept_tallies(pod, "affinity")[0] if spec.affinity else None
        keys = (term.topology_key for term in spec.anti_affinity)
        anti = tuple(zip(keys, self._kept_tallies(pod, "anti"), strict=True))
        alone = bool(spec.affinity) and self._means_all(spec.affinity, pod)
        state.write(self.name, _State(affinity, anti, existing, alone))
        return None, None

    def _kept_tallies(self, pod: PodInfo, kind: str) -> tuple[Tally, ...]:
        """Return the tallies of a pod's required terms, remembered with its template.

        Which namespaces a selector means may change, so terms with one are looked up anew.
        """
        name = f"{self.name}/{kind}"
        known: tuple[Tally, ...] | None = pod.spec.derived.get(name)
        if known is not None and all(tally.kept for tally in known):
            return known
        spec = pod.spec
        groups = [spec.affinity] if kind == "affinity" else [(t,) for t in spec.anti_affinity]
        found = tuple(self._tally(terms) for terms in groups)
        if all(term.namespace_selector.nothing for terms in groups for term in terms):
            spec.derived[name] = found
        return found

    def _tally(self, terms: Sequence[AffinityTerm]) -> Tally:
        """Return the count of pods every one of *terms* means."""
        namespaces: frozenset[str] | None = None
        for term in terms:
            meant = self._counts.namespaces(term)
            if meant is not None:
                namespaces = meant if namespaces is None else namespaces & meant
        selectors = tuple(dict.fromkeys(term.selector for term in terms))
        return self._counts.tally(Question(namespaces, selectors, count_terminating=True))

    def _means_all(self, terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
        labels = self._counts.namespace_labels.get(pod.namespace, {})
        return bool(terms) and all(
            term.matches(pod.namespace, pod.spec.labels, labels) for term in terms
        )

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
        prepared: _State | None = state.read(self.name)
        if prepared is None:
            return
        changed = prepared.changed
        forbids = [t for t in other.spec.anti_affinity if self._means_all((t,), pod)]
        _count(changed.existing, [term.topology_key for term in forbids], node, sign)
        if self._means_all(pod.spec.affinity, other):
            # All affinity terms share one tally, so a key counts once however many name it.
            keys = {term.topology_key for term in pod.spec.affinity}
            _count(changed.affinity, keys, node, sign)
        avoided = [t for t in pod.spec.anti_affinity if self._means_all((t,), other)]
        _count(changed.anti, [term.topology_key for term in avoided], node, sign)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        prepared: _State = state.read(self.name)
        changed = prepared.changed
        if not self._near_friends(prepared, pod, node):
            return _AFFINITY
        if self._any_near(prepared.anti, changed.anti, node):
            return _ANTI
        if self._any_near(prepared.existing, changed.existing, node):
            return _EXISTING
        return None

    def _near_friends(self, prepared: _State, pod: PodInfo, node: NodeInfo) -> bool:
        tally = prepared.affinity
        if tally is None:
            return True
        if any(term.topology_key not in node.labels for term in pod.spec.affinity):
            return False
        for term in pod.spec.affinity:
            count = self._count_near(tally, term.topology_key, node)
            pair = (term.topology_key, node.labels[term.topology_key])
            if count + prepared.changed.affinity.get(pair, 0) <= 0:
                return prepared.self_affine and self._nobody(prepared, pod)
        return True

    def _nobody(self, prepared: _State, pod: PodInfo) -> bool:
        """Tell whether no pod anywhere matches, so that the first of a kind may start."""
        tally = prepared.affinity
        if tally is None:
            return True
        found = sum(
            int(tally.domains(key)[:-1].sum())
            for key in {term.topology_key for term in pod.spec.affinity}
        )
        return found + sum(prepared.changed.affinity.values()) == 0

    def _any_near(
        self, tallies: Sequence[tuple[str, Tally]], changed: Mapping[Pair, int], node: NodeInfo
    ) -> bool:
        counts: dict[Pair, int] = {}
        for key, tally in tallies:
            if key in node.labels:
                pair = (key, node.labels[key])
                counts[pair] = counts.get(pair, 0) + self._count_near(tally, key, node)
        for pair, amount in changed.items():
            if node.labels.get(pair[0]) == pair[1]:
                counts[pair] = counts.get(pair, 0) + amount
        return any(count > 0 for count in counts.values())

    def _count_near(self, tally: Tally, key: str, node: NodeInfo) -> int:
        return int(tally.domains(key)[self._table.label(key).codes[node.row]])

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        prepared: _State = state.read(self.name)
        codes = np.zeros(len(rows), np.int16)
        for number, tallies in ((3, prepared.existing), (2, prepared.anti)):
            for key, tally in tallies:
                if tally.total:
                    codes[tally.near(key, rows) > 0] = number
        if prepared.affinity is not None:
            codes[~self._friendly(prepared, pod, rows)] = 1
        return Verdicts(codes, (_AFFINITY, _ANTI, _EXISTING))

    def _friendly(self, prepared: _State, pod: PodInfo, rows: Rows) -> Any:
        tally = prepared.affinity
        labelled = np.ones(len(rows), np.bool_)
        near = np.ones(len(rows), np.bool_)
        for term in pod.spec.affinity:
            codes = self._table.label(term.topology_key).codes[rows]
            labelled &= codes >= 0
            if tally is not None:
                near &= (tally.domains(term.topology_key) > 0)[codes]
        if prepared.self_affine and self._nobody(prepared, pod):
            return labelled
        return labelled & near

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        spec = pod.spec
        own = bool(spec.preferred or spec.preferred_anti)
        if self._ignore_existing and not own:
            return SKIP
        weighted = [
            (weight, term.topology_key, self._tally((term,))) for weight, term in spec.preferred
        ]
        weighted += [
            (-weight, term.topology_key, self._tally((term,)))
            for weight, term in spec.preferred_anti
        ]
        for kind, factor in (
            (PodCounts.AFFINITY, self._hard_weight),
            (PodCounts.PREFERRED, 1),
            (PodCounts.PREFERRED_ANTI, -1),
        ):
            if factor and self._counts.any_carried(kind):
                weighted += [
                    (factor, term.topology_key, tally)
                    for term, tally in self._counts.carried(kind, pod)
                ]
        touched = [item for item in weighted if item[2].domains(item[1])[:-1].any()]
        if not touched:
            return SKIP
        state.write(f"{self.name}/score", tuple(touched))
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        weighted: tuple[tuple[int, str, Tally], ...] = state.read(f"{self.name}/score")
        return sum(
            weight * self._count_near(tally, key, node)
            for weight, key, tally in weighted
            if key in node.labels
        )

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        weighted: tuple[tuple[int, str, Tally], ...] = state.read(f"{self.name}/score")
        total = np.zeros(len(rows), np.int64)
        for weight, key, tally in weighted:
            total += weight * tally.near(key, rows)
        return total

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores, rows: Rows) -> Scores:
        lowest = int(scores.min())
        spread = int(scores.max()) - lowest
        if spread <= 0:
            return np.zeros(len(scores), np.int64)
        final: Scores = (float(MAX_SCORE) * ((scores - lowest) / float(spread))).astype(np.int64)
        return final

    def events_to_register(self) -> Sequence[Registration]:
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL
        return [
            Registration(ClusterEvent(POD, pods), self._after_pod_change),
            Registration(ClusterEvent(NODE, nodes), self._after_node_change),
        ]

    def _after_pod_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if any(changed is not None and not changed.node_name for changed in (old, new)):
            return Hint.SKIP
        wanted, avoided = pod.spec.affinity, pod.spec.anti_affinity
        befriends = new is not None and self._means_all(wanted, new)
        was_friend = old is not None and self._means_all(wanted, old)
        bothers = new is not None and self._means_all(avoided, new)
        bothered = old is not None and self._means_all(avoided, old)
        better = (befriends and not was_friend) or (bothered and not bothers)
        return Hint.QUEUE if better else Hint.SKIP

    def _after_node_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        terms = (*pod.spec.affinity, *pod.spec.anti_affinity)
        has_key = new is not None and any(term.topology_key in new.labels for term in terms)
        return Hint.QUEUE if has_key else Hint.SKIP


def _count(changed: dict[Pair, int], keys: Iterable[str], node: NodeInfo, sign: int) -> None:
    for key in keys:
        if key in node.labels:
            pair = (key, node.labels[key])
            changed[pair] = changed.get(pair, 0) + sign
