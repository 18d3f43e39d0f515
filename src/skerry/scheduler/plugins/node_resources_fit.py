"""NodeResourcesFit: enough room, and how full is good.

The filter looks at true requests, one that is zero is never checked; the score looks at non-zero
requests, so that pods that ask for nothing still count for something.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.cache.resources import CPU, MEMORY, is_extended, is_scalar
from skerry.scheduler.config.args import node_resources_fit_errors
from skerry.scheduler.config.errors import aggregated
from skerry.scheduler.framework.allocation import Amounts, Strategy, allocation_strategy
from skerry.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint, Registration
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.framework.plugin import PreFilterResult, Scope, Scores, Verdicts
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import Status, unschedulable
from skerry.scheduler.table import Rows


class NodeResourcesFit:
    name = "NodeResourcesFit"
    scope = Scope.PLACED

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        # Configuration validation leaves these arguments to whoever makes the plugin.
        errors = node_resources_fit_errors(args, "")
        if errors:
            raise ValueError(aggregated(errors))
        self._table = handle.cluster.table
        self._ignored = frozenset(args.get("ignoredResources") or ())
        self._ignored_groups = frozenset(args.get("ignoredResourceGroups") or ())
        self._refusals: dict[tuple[str, ...], Status] = {}
        self._strategy: Strategy = allocation_strategy(args.get("scoringStrategy"))

    def signature(self, pod: PodInfo) -> Hashable:
        spec = pod.spec
        return (tuple(sorted(spec.requests.items())), spec.nonzero_cpu, spec.nonzero_memory)

    def pre_filter(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[PreFilterResult | None, Status | None]:
        state.write(self.name, self._checked(pod))
        return None, None

    def _checked(self, pod: PodInfo) -> tuple[tuple[str, int], ...]:
        """Return the requests that must fit, less the ignored."""
        if not self._ignored and not self._ignored_groups:
            return pod.spec.checked
        return tuple(item for item in pod.spec.checked if not self._ignores(item[0]))

    def _ignores(self, resource: str) -> bool:
        return is_extended(resource) and (
            resource in self._ignored or resource.split("/", maxsplit=1)[0] in self._ignored_groups
        )

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        reasons = []
        if len(node.pods) + 1 > node.pods_allowed:
            reasons.append("Too many pods")
        checked = state.entries.get(self.name)
        for resource, wanted in self._checked(pod) if checked is None else checked:
            if wanted > node.allocatable.get(resource, 0) - node.requested.get(resource, 0):
                reasons.append(f"Insufficient {resource}")
        return self._refusal(tuple(reasons)) if reasons else None

    def _refusal(self, reasons: tuple[str, ...]) -> Status:
        """Return one status per combination of reasons; trials make millions of them."""
        known = self._refusals.get(reasons)
        if known is None:
            known = self._refusals[reasons] = unschedulable(*reasons).of(self.name)
        return known

    def filter_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Verdicts | None:
        """Number each combination of missing resources by its bits."""
        table = self._table
        names = ["Too many pods"]
        bits = (table.pod_count[rows] + 1 > table.pods_allowed[rows]).astype(np.int64)
        for resource, wanted in state.read(self.name):
            free = table.resource(table.allocatable, resource)[rows]
            free = free - table.resource(table.requested, resource)[rows]
            bits |= (free < wanted).astype(np.int64) << len(names)
            names.append(f"Insufficient {resource}")
        if not bits.any():
            return None
        combinations, codes = np.unique(bits, return_inverse=True)
        statuses = [
            self._refusal(tuple(name for bit, name in enumerate(names) if combination >> bit & 1))
            for combination in combinations.tolist()
        ]
        if combinations[0] == 0:
            return Verdicts(codes.astype(np.int16), statuses[1:])
        return Verdicts((codes + 1).astype(np.int16), statuses)

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self._strategy.score(
            [
                (
                    node.allocatable.get(name, 0) if wanted or not is_scalar(name) else 0,
                    node.nonzero(name) + wanted,
                )
                for name, wanted in self._wanted(pod)
            ]
        )

    def score_all(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        table = self._table
        amounts: list[Amounts] = []
        for name, wanted in self._wanted(pod):
            taken = (
                table.nonzero_cpu
                if name == CPU
                else table.nonzero_memory
                if name == MEMORY
                else table.resource(table.requested, name)
            )
            allocatable = table.resource(table.allocatable, name)[rows]
            if not wanted and is_scalar(name):
                # A scalar resource the pod does not want says nothing about the node.
                allocatable = np.zeros_like(allocatable)
            amounts.append((allocatable, taken[rows] + wanted))
        return self._strategy.score_all(amounts, len(rows))

    def _wanted(self, pod: PodInfo) -> list[tuple[str, int]]:
        spec = pod.spec
        nonzero = {CPU: spec.nonzero_cpu, MEMORY: spec.nonzero_memory}
        return self._strategy.wanted(lambda name: nonzero.get(name, spec.requests.get(name, 0)))

    def events_to_register(self) -> Sequence[Registration]:
        return [
            Registration(ClusterEvent(POD, Action.DELETE), self._after_pod_deleted),
            Registration(
                ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
                self._after_node_change,
            ),
        ]

    def _after_pod_deleted(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        freed = isinstance(old, PodInfo) and bool(old.node_name)
        return Hint.QUEUE if freed else Hint.SKIP

    def _after_node_change(self, pod: PodInfo, old: Any, new: Any) -> Hint:
        """Retry when the pod would fit the node empty and something it needs has grown."""
        if new is None or not _fits_empty(pod, new):
            return Hint.SKIP
        if old is None or new.pods_allowed > old.pods_allowed:
            return Hint.QUEUE
        grown = any(
            new.allocatable.get(name, 0) > old.allocatable.get(name, 0)
            for name, _ in pod.spec.checked
        )
        return Hint.QUEUE if grown else Hint.SKIP


def _fits_empty(pod: PodInfo, node: NodeInfo) -> bool:
    return node.pods_allowed >= 1 and all(
        wanted <= node.allocatable.get(name, 0) for name, wanted in pod.spec.checked
    )
