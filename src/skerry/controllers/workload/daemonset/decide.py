"""One pod per fitting node; old ones replaced a few nodes at a time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.controllers.workload.daemonset.observe import Observed
from skerry.controllers.workload.kinds import DAEMON_SETS, PODS
from skerry.logic.machinery.plan import Action, Announcement, Create, Delete, Plan, Target, Update
from skerry.logic.machinery.selectors import Selector
from skerry.logic.machinery.taints import REPELLING, first_untolerated, taints_of, tolerations_of
from skerry.logic.workloads.history import REVISION_LABEL, forgotten, revised
from skerry.logic.workloads.nodes import selects
from skerry.logic.workloads.owners import TargetOf, claim, claim_actions, owner_reference
from skerry.logic.workloads.pods import (
    is_active,
    is_available,
    is_ready,
    phase,
    pod_from_template,
    seconds_until_available,
)
from skerry.logic.workloads.rollout import resolved

_POD = TargetOf(PODS)
_GENERATION = "pod-template-generation"
_EXECUTE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SCHEDULE = (
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
)


class _Step:
    """One decision in the making."""

    def __init__(self, observed: Observed, now: datetime) -> None:
        self.observed = observed
        self.now = now
        self.owner = observed.daemon_set
        self.reference = owner_reference(self.owner, "apps/v1", "DaemonSet")
        selector = Selector.from_label_selector(self.owner["spec"].get("selector"))
        self.claimed = claim(self.owner, selector, observed.pods)
        self.history = revised(self.owner, "DaemonSet", observed.revisions)
        self.by_node: dict[str, list[Object]] = {}
        for pod in (*self.claimed.owned, *self.claimed.adopted):
            self.by_node.setdefault(_node_of(pod), []).append(pod)
        self.minimum = int(self.owner["spec"].get("minReadySeconds") or 0)
        self.actions: list[Action] = []
        self.announcements: list[Announcement] = []
        self._suffixes = list(observed.suffixes)

    def up_to_date(self, pod: Object) -> bool:
        labels = pod["metadata"].get("labels") or {}
        return bool(labels.get(REVISION_LABEL) == self.history.hash)

    def available(self, pod: Object) -> bool:
        return is_available(pod, self.minimum, self.now)

    def create(self, node: str) -> None:
        metadata = self.owner["metadata"]
        name = f"{metadata['name'][:57]}-{self._suffixes.pop()}"
        pod = pod_from_template(
            self.owner["spec"]["template"], metadata["namespace"], name, self.reference
        )
        labels = pod["metadata"].setdefault("labels", {})
        labels |= {REVISION_LABEL: self.history.hash, _GENERATION: _generation(self.owner)}
        _bind(pod["spec"], node)
        target = Target(PODS, name, metadata["namespace"])
        self.actions.append(Create(target, pod, reason="NodeWithoutPod", exclusive=True))
        self._record_event("SuccessfulCreate", f"Created pod: {name}")

    def delete(self, pod: Object, reason: str) -> None:
        self.actions.append(Delete(_POD(pod), reason=reason, uid=pod["metadata"]["uid"]))
        self._record_event("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")

    def _record_event(self, reason: str, text: str) -> None:
        self.announcements.append(Announcement(self.owner, "Normal", reason, text))


def decide(observed: Observed, now: datetime) -> Plan:
    """Have exactly one live pod on each fitting node, of the present template in the end."""
    step = _Step(observed, now)
    step.actions += claim_actions(step.claimed, step.reference, _POD)
    wanted = {node["metadata"]["name"] for node in observed.nodes if should_run(step.owner, node)}
    if "deletionTimestamp" not in step.owner["metadata"]:
        step.actions += step.history.actions
        _place(step, wanted)
        strategy = step.owner["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") == "RollingUpdate":
            _roll(step, wanted, strategy.get("rollingUpdate") or {})
        used = {step.history.hash} | {
            (pod["metadata"].get("labels") or {}).get(REVISION_LABEL, "")
            for pod in step.claimed.owned
        }
        limit = step.owner["spec"].get("revisionHistoryLimit")
        step.actions += forgotten(observed.revisions, used, limit)
    # First: a pod that is refused must not keep the status from being reported.
    actions = [*_status(step, wanted), *step.actions]
    return Plan(actions, step.announcements, requeue_after_seconds=_requeue_after(step))


def should_run(owner: Object, node: Object) -> bool:
    """Tell whether a node is to have a pod of *owner*."""
    spec = copy.deepcopy(owner["spec"]["template"]["spec"])
    if not selects(spec, node):
        return False
    tolerations = tolerations_of([*(spec.get("tolerations") or ()), *_tolerations(spec)])
    return first_untolerated(taints_of(node["spec"].get("taints")), tolerations, REPELLING) is None


def _tolerations(spec: Object) -> list[Object]:
    found = [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in _EXECUTE]
    keys = [*_SCHEDULE]
    if spec.get("hostNetwork"):
        keys.append("node.kubernetes.io/network-unavailable")
    return found + [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in keys]


def _bind(spec: Object, node: str) -> None:
    """Send a pod to one node, through the scheduler."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms") or []
    # Each term is replaced in what it says of the node's name; selection was checked already.
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [field]} for term in terms if term.get("matchExpressions")
    ] or [{"matchFields": [field]}]
    known = spec.setdefault("tolerations", [])
    known += [item for item in _tolerations(spec) if item not in known]


def _place(step: _Step, wanted: set[str]) -> None:
    """Create where a pod is missing, delete where none should be or one has ended."""
    for node, pods in sorted(step.by_node.items()):
        live = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        for pod in live:
            if node not in wanted:
                step.delete(pod, "NodeNotWanted")
            elif phase(pod) in ("Failed", "Succeeded"):
                step.delete(pod, "PodEnded")
    # A pod on its way out still holds its node's ports: the next one waits for its end.
    for node in sorted(wanted - step.by_node.keys()):
        step.create(node)


def _roll(step: _Step, wanted: set[str], strategy: Object) -> None:
    """Replace old pods, as many nodes at once as may be without an available one."""
    surge = resolved(strategy.get("maxSurge", 0), len(wanted), round_up=True)
    max_unavailable = resolved(strategy.get("maxUnavailable", 1), len(wanted), round_up=True)
    if surge:
        _surge(step, wanted, surge)
        return
    unavailable = 0
    old: list[Object] = []
    for node in sorted(wanted):
        active = [pod for pod in step.by_node.get(node, []) if is_active(pod)]
        if not any(step.available(pod) for pod in active):
            unavailable += 1
        old += [pod for pod in active if not step.up_to_date(pod)]
    # Those that serve nobody go first and cost nothing.
    for pod in [pod for pod in old if not step.available(pod)]:
        step.delete(pod, "TemplateChanged")
    spare = max_unavailable - unavailable
    for pod in [pod for pod in old if step.available(pod)][: max(0, spare)]:
        step.delete(pod, "TemplateChanged")


def _surge(step: _Step, wanted: set[str], surge: int) -> None:
    """Put new pods beside old ones, and take the old ones away once the new ones serve."""
    doubled = 0
    for node in sorted(wanted):
        active = [pod for pod in step.by_node.get(node, []) if is_active(pod)]
        old = [pod for pod in active if not step.up_to_date(pod)]
        new = [pod for pod in active if step.up_to_date(pod)]
        if not old:
            continue
        if any(step.available(pod) for pod in new) or not any(map(step.available, old)):
            for pod in old:
                step.delete(pod, "TemplateChanged")
        elif new:
            doubled += 1
        elif doubled < surge:
            doubled += 1
            step.create(node)


def _status(step: _Step, wanted: set[str]) -> list[Action]:
    owner, old = step.owner, step.owner.get("status") or {}
    counts: dict[str, Any] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": len(wanted),
        "numberReady": 0,
        "updatedNumberScheduled": 0,
        "numberAvailable": 0,
    }
    for node, pods in step.by_node.items():
        active = [pod for pod in pods if is_active(pod)]
        if node not in wanted:
            counts["numberMisscheduled"] += bool(active)
            continue
        _count(step, active, counts)
    counts["numberUnavailable"] = len(wanted) - counts["numberAvailable"]
    always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    status = {k: v for k, v in counts.items() if v or k in (*always, "numberReady")}
    status["observedGeneration"] = owner["metadata"].get("generation", 0)
    for kept in ("conditions", "collisionCount"):
        if old.get(kept):
            status[kept] = old[kept]
    if status == old:
        return []
    desired = copy.deepcopy(owner)
    desired["status"] = status
    target = TargetOf(DAEMON_SETS)(owner)
    return [Update(target, desired, reason="StatusChanged", subresource="status")]


def _count(step: _Step, active: Sequence[Object], counts: dict[str, Any]) -> None:
    if not active:
        return
    counts["currentNumberScheduled"] += 1
    counts["numberReady"] += any(map(is_ready, active))
    counts["numberAvailable"] += any(map(step.available, active))
    counts["updatedNumberScheduled"] += any(map(step.up_to_date, active))


def _requeue_after(step: _Step) -> float | None:
    if not step.minimum:
        return None
    pods = step.claimed.owned
    left = [seconds_until_available(pod, step.minimum, step.now) for pod in pods]
    return min((seconds for seconds in left if seconds), default=None)


def _generation(owner: Object) -> str:
    annotations = owner["metadata"].get("annotations") or {}
    known = annotations.get("deprecated.daemonset.template.generation")
    return str(known or owner["metadata"].get("generation", 1))


def _node_of(pod: Object) -> str:
    """Return the node a pod is on, or is meant for."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for item in term.get("matchFields") or ():
            if item.get("key") == "metadata.name" and item.get("values"):
                return str(item["values"][0])
    return ""
