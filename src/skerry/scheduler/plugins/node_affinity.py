"""NodeAffinity: nodeSelector, required and preferred node affinity, and what the profile adds.

A pod whose every term pins node names (as DaemonSet pods do) is answered with those names alone,
so that placing it costs nothing on all other nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skerry.logic.machinery.selectors import IN
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.terms import (
    CompiledTerm,
    NodeRequirement,
    WeightedTerm,
    preferred_terms,
    required_terms,
)
from skerry.scheduler.framework.events import NODE, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.normalize import proportional
from skerry.scheduler.framework.plugin import PreFilterResult, Scope, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import SKIP, Status, unresolvable
from skerry.scheduler.table import Rows

_REFUSED = unresolvable("node(s) didn't match Pod's node affinity/selector")
_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
_CONFLICT = unresolvable("pod affinity terms conflict")


class NodeAffinity:
    name = "NodeAffinity"
    scope = Scope.TARGET

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._table = handle.cluster.table
        added = args.get("addedAffinity") or {}
        terms = required_terms(added)
        self._added = None if terms is None else NodeRequirement((), terms)
        self._added_preferred = preferred_terms(added)

    def signature(self, pod: PodInfo) -> Hashable:
        preferred = tuple((item.weight, item.term.term) for item in pod.spec.preferred_nodes)
        return (pod.spec.requirement.key, preferred)

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        requirement = pod.spec.requirement
        if requirement.trivial and self._added is None:
            return None, SKIP
        names = _pinned(requirement.terms or ())
        if names is None:
            return None, None
        return (PreFilterResult(names), None) if names else (None, _CONFLICT)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        if self._added is not None and not self._added.matches(node.name, node.labels):
            return _ENFORCED
        return None if pod.spec.requirement.matches(node.name, node.labels) else _REFUSED

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        codes = np.where(self._table.matching(pod.spec.requirement, rows), 0, 1)
        if self._added is not None:
            codes[~self._table.matching(self._added, rows)] = 2
        return Verdicts(codes.astype(np.int16), [_REFUSED, _ENFORCED])

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        return None if pod.spec.preferred_nodes or self._added_preferred else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return sum(
            item.weight
            for item in self._preferred(pod)
            if item.term.matches(node.name, node.labels)
        )

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        total = np.zeros(len(rows), np.int64)
        for item in self._preferred(pod):
            total += item.weight * self._table.matching_term(item.term.term, rows)
        return total

    def _preferred(self, pod: PodInfo) -> Sequence[WeightedTerm]:
        return (*self._added_preferred, *pod.spec.preferred_nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores, rows: Rows) -> Scores:
        return proportional(scores)

    def events_to_register(self) -> Sequence[Registration]:
        event = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return [Registration(event, self._after_node_change)]

    def _after_node_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        if new is None:
            return Hint.SKIP
        if self._added is not None and not self._added.matches(new.name, new.labels):
            return Hint.SKIP
        requirement = pod.spec.requirement
        if not requirement.matches(new.name, new.labels):
            return Hint.SKIP
        if old is None or not requirement.matches(old.name, old.labels):
            return Hint.QUEUE
        return Hint.SKIP


def _pinned(terms: Sequence[CompiledTerm]) -> frozenset[str] | None:
    """Return the names all terms together allow; None unless every term pins names."""
    allowed: set[str] = set()
    for term in terms:
        named = [
            set(requirement.values)
            for requirement in term.term.names
            if requirement.key == "metadata.name" and requirement.operator == IN
        ]
        if not named:
            return None
        allowed |= set.intersection(*named)
    return frozenset(allowed) if terms else None
