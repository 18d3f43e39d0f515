"""DefaultPreemption: make room for an important pod at the least cost to others.

On each node that refused for a curable reason: take all less important pods away; if the pod then
fits, give back as many as possible, those whose disruption budget would break first. Among the
nodes where this works choose by, in order: fewest broken budgets, least important most important
victim, smallest sum of priorities, fewest victims, youngest important victims.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skerry.api.errors import ApiError, NotFound
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.selectors import Selector
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.handle import ExtenderError, Handle
from skerry.scheduler.framework.plugin import Diagnosis, PostFilterResult
from skerry.scheduler.framework.state import CycleState
from skerry.scheduler.framework.status import (
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from skerry.scheduler.framework.trial import (
    Trial,
    Trials,
    filter_with_nominated,
    promised_on,
    recall,
    remember,
)
from skerry.scheduler.table import Rows

_NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
# Added to priorities before summing, so that many unimportant victims still weigh something.
_PRIORITY_SHIFT = 2**31
_YOUNGEST = "~"


class _Reversed:
    """Orders texts backwards: a later start is better."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: _Reversed) -> bool:
        return self.text > other.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


Harm = tuple[int, int, int, int, _Reversed]


@dataclass(slots=True)
class Candidate:
    """A node and whom to evict there, most important first."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int
    # What choosing it costs; less is better.
    harm: Harm = field(init=False)

    def __post_init__(self) -> None:
        top = self.victims[0].priority
        first = min(pod.started or _YOUNGEST for pod in self.victims if pod.priority == top)
        total = sum(pod.priority + _PRIORITY_SHIFT for pod in self.victims)
        self.harm = (self.violations, top, total, len(self.victims), _Reversed(first))


@dataclass(frozen=True, slots=True)
class _Budget:
    """A disruption budget, read once."""

    namespace: str
    selector: Selector
    allowed: int
    # Pods whose eviction is counted already.
    disrupted: frozenset[str]

    def covers(self, pod: PodInfo) -> bool:
        labels = pod.spec.labels
        return (
            pod.namespace == self.namespace
            and bool(labels)
            and self.selector.matches(labels)
            and pod.name not in self.disrupted
        )


CachedResults = dict[int, Trial[Candidate | Status]]


class DefaultPreemption:
    name = "DefaultPreemption"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle
        percentage = args.get("minCandidateNodesPercentage")
        absolute = args.get("minCandidateNodesAbsolute")
        self._percentage = 10 if percentage is None else int(percentage)
        self._absolute = 100 if absolute is None else int(absolute)
        self._trials: Trials[Candidate | Status] = Trials()
        self._budgets: list[_Budget] = []
        self._budgets_seen = -1

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        result, status = self._preempt(state, pod, diagnosis)
        if status is not None and status.message:
            status = replace(status, reasons=(f"preemption: {status.message}",))
        return result, status

    def _preempt(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        refusal = self._ineligible(pod, diagnosis)
        if refusal:
            return None, unschedulable(refusal)
        candidates, found = self._candidates(state, pod, diagnosis)
        if not candidates:
            return PostFilterResult(""), unschedulable(found.message())
        if any(extender.preempts for extender in self._handle.extenders):
            return PostFilterResult(None, lambda: self._with_extenders(pod, candidates)), None
        chosen = best_candidate(candidates)
        return PostFilterResult(chosen.node, lambda: self._evict(pod, chosen)), None

    def _ineligible(self, pod: PodInfo, diagnosis: Diagnosis) -> str:
        """Say why *pod* may not preempt; the empty text when it may."""
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        table = self._handle.cluster.table
        node = table.get(pod.nominated_node) if pod.nominated_node else None
        if node is None:
            return ""
        status = diagnosis.status_of(node.row)
        if status is not None and status.code is Code.UNRESOLVABLE:
            return ""
        terminating = any(
            other.priority < pod.priority and _being_preempted(other)
            for other in node.pods.values()
        )
        return "not eligible due to a terminating pod on the nominated node." if terminating else ""

    def _candidates(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[list[Candidate], Diagnosis]:
        table = self._handle.cluster.table
        found = Diagnosis(
            total=len(table), codes=np.zeros(table.capacity, np.int32), absent=_NOT_HELPFUL
        )
        rows = self._curable(diagnosis)
        hopeless = table.lowest_priority[rows] >= pod.spec.priority
        found.set_all(rows[hopeless], _NO_VICTIMS)
        rows = rows[~hopeless]
        self._read_budgets()
        known = self._trials.known(pod) if self._handle.framework().local(state) else None
        wanted = self._number_wanted(len(rows))
        offset = int(self._handle.ids.fraction() * len(rows))
        gentle: list[Candidate] = []
        harsh: list[Candidate] = []
        for row in self._unpromised_first(np.roll(rows, -offset).tolist()):
            node = table.target(row)
            candidate = self._tried(state, pod, node, known)
            if isinstance(candidate, Status):
                found.set(row, candidate)
                continue
            (harsh if candidate.violations else gentle).append(candidate)
            if gentle and len(gentle) + len(harsh) >= wanted:
                break
        return gentle + harsh, found

    def _read_budgets(self) -> None:
        """Take over budgets as they are now; whatever was tried under others is forgotten."""
        store = self._handle.cluster.objects.budgets
        if store.generation == self._budgets_seen:
            return
        self._budgets_seen = store.generation
        self._budgets = [budget for item in store if (budget := _budget(item)) is not None]
        self._trials.clear()

    def _tried(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, known: CachedResults | None
    ) -> Candidate | Status:
        """Return whom to evict on *node*, from memory where nothing there has changed."""
        if known is None:
            return self._victims_on(state, pod, node)
        promised = promised_on(self._handle.nominations, pod, node.name)
        trial = recall(known, node, promised)
        if trial is not None:
            return trial.answer
        answer = self._victims_on(state, pod, node)
        remember(known, node, promised, answer)
        return answer

    def _curable(self, diagnosis: Diagnosis) -> Rows:
        """Return the rows where removing pods may help."""
        rows = self._handle.cluster.table.rows()
        curable = [status.code is Code.UNSCHEDULABLE for status in diagnosis.kinds]
        absent = diagnosis.absent is not None and diagnosis.absent.code is Code.UNSCHEDULABLE
        lookup = np.array([absent, *curable], np.bool_)
        if not len(diagnosis.codes):
            return rows if absent else rows[:0]
        curable_rows: Rows = rows[lookup[diagnosis.codes[rows]]]
        return curable_rows

    def _unpromised_first(self, rows: list[int]) -> list[int]:
        """Put nodes others wait for last: room made there is theirs, so few of them will do."""
        promised = set(self._handle.nominations.nodes())
        if not promised:
            return rows
        table = self._handle.cluster.table
        return sorted(rows, key=lambda row: table.target(row).name in promised)

    def _number_wanted(self, nodes: int) -> int:
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    def _victims_on(self, state: CycleState, pod: PodInfo, live: NodeInfo) -> Candidate | Status:
        priority = pod.spec.priority
        lesser = [other for other in live.pods.values() if other.spec.priority < priority]
        if not lesser:
            return _NO_VICTIMS
        framework, nominations = self._handle.framework(), self._handle.nominations
        node = live.without(lesser)
        tracked = framework.tracks(state)
        if tracked:
            state = state.clone()
            for other in lesser:
                framework.remove_item(state, pod, other, node)
        status = filter_with_nominated(framework, nominations, state, pod, node)
        if status is not None:
            return status
        lesser.sort(key=importance)
        violating, others = _by_budget(lesser, self._budgets) if self._budgets else ([], lesser)
        victims: list[PodInfo] = []
        violations = 0
        for group in (violating, others):
            for other in group:
                if self._reprieved(state, pod, node, other, tracked):
                    continue
                victims.append(other)
                violations += group is violating
        if not victims:
            return error(f'expected at least one victim pod on node "{live.name}"')
        return Candidate(live.name, tuple(sorted(victims, key=importance)), violations)

    def _reprieved(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, other: PodInfo, tracked: bool
    ) -> bool:
        """Put *other* back and keep it there if *pod* fits all the same."""
        framework = self._handle.framework()
        node.add(other)
        if tracked:
            framework.add_item(state, pod, other, node)
        nominations = self._handle.nominations
        refusal = filter_with_nominated(framework, nominations, state, pod, node, again=True)
        if refusal is None:
            return True
        node.remove(other.uid)
        if tracked:
            framework.remove_item(state, pod, other, node)
        return False

    async def _with_extenders(
        self, pod: PodInfo, candidates: Sequence[Candidate]
    ) -> tuple[str | None, Status | None]:
        agreed: dict[str, tuple[Sequence[PodInfo], int]] = {
            item.node: (item.victims, item.violations) for item in candidates
        }
        for extender in self._handle.extenders:
            if not extender.preempts or not extender.interested(pod):
                continue
            try:
                answer = await extender.process_preemption(pod, agreed)
            except ExtenderError as problem:
                if extender.ignorable:
                    continue
                return None, error(str(problem), problem)
            for node in [name for name, (victims, _) in answer.items() if not victims]:
                if not extender.ignorable:
                    return None, error(f'expected at least one victim pod on node "{node}"')
                del answer[node]
            agreed = {name: (tuple(pods), count) for name, (pods, count) in answer.items()}
            if not agreed:
                break
        if not agreed:
            return None, unschedulable("no candidate node for preemption")
        left = [Candidate(name, tuple(pods), count) for name, (pods, count) in agreed.items()]
        return await self._evict(pod, best_candidate(left))

    async def _evict(self, pod: PodInfo, chosen: Candidate) -> tuple[str | None, Status | None]:
        """Delete the victims, and withdraw promises made to lesser pods on the node."""
        handle = self._handle
        handle.count_victims(len(chosen.victims))
        evictions = (self._evict_one(pod, victim, chosen.node) for victim in chosen.victims)
        ended = await asyncio.gather(*evictions, return_exceptions=True)
        problems = [problem for problem in ended if problem is not None]
        for problem in problems:
            if not isinstance(problem, ApiError | TransportError):
                raise problem
        if problems:
            return None, error(str(problems[0]), problems[0])
        try:
            for other in handle.nominations.nominated(chosen.node):
                if other.priority < pod.priority:
                    handle.nominations.withdraw(other.uid)
                    await handle.writer.patch_pod_status(other, {"nominatedNodeName": None})
        except (ApiError, TransportError) as problem:
            return None, error(str(problem), problem)
        return chosen.node, None

    async def _evict_one(self, pod: PodInfo, victim: PodInfo, node: str) -> None:
        handle = self._handle
        if handle.reject_waiting(victim.uid, self.name, "preempted"):
            return
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{pod.spec.scheduler_name}: preempting to accommodate a higher "
            "priority pod",
            "lastTransitionTime": rfc3339(handle.clock.now()),
        }
        try:
            await handle.writer.patch_pod_status(victim, {"conditions": [condition]})
            await handle.writer.delete_pod(victim)
        except NotFound:
            return
        note = f"Preempted by pod {pod.uid} on node {node}"
        handle.events.event(victim.pod, "Normal", "Preempted", "Preempting", note)


def importance(pod: PodInfo) -> tuple[int, str]:
    """Order pods, most important first: by priority, then whoever started earlier."""
    return (-pod.priority, pod.started or _YOUNGEST)


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """Return the least harmful choice; the first of equals."""
    return min(candidates, key=lambda item: item.harm)


def _being_preempted(pod: PodInfo) -> bool:
    conditions = (pod.pod.get("status") or {}).get("conditions") or ()
    return pod.terminating and any(
        item.get("type") == "DisruptionTarget"
        and item.get("status") == "True"
        and item.get("reason") == "PreemptionByScheduler"
        for item in conditions
    )


def _by_budget(
    pods: Sequence[PodInfo], budgets: Sequence[_Budget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split into those whose eviction breaks a budget and the rest, keeping order.

    Each eviction uses up one disruption, so later pods of a budget may break it where earlier
    ones do not. A pod the budget already counts as disrupted costs nothing more.
    """
    allowed = [budget.allowed for budget in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        broken = False
        for index, budget in enumerate(budgets):
            if not budget.covers(pod):
                continue
            allowed[index] -= 1
            broken = broken or allowed[index] < 0
        (violating if broken else others).append(pod)
    return violating, others


def _budget(obj: Object) -> _Budget | None:
    """Read a budget; None when it selects nothing."""
    status = obj.get("status") or {}
    selector = Selector.from_label_selector((obj.get("spec") or {}).get("selector"))
    if selector.empty:
        return None
    return _Budget(
        obj["metadata"].get("namespace") or "",
        selector,
        int(status.get("disruptionsAllowed") or 0),
        frozenset(status.get("disruptedPods") or ()),
    )
