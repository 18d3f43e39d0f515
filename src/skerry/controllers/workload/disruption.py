"""Says how many pods of a PodDisruptionBudget may be disrupted now.

Reads budgets, Pods, and the sets that pods belong to. Writes the status of budgets, by which
evictions (``server.subresources.eviction``) and the scheduler's preemption decide.

An eviction charges the budget itself, by compare-and-swap, and notes the pod in ``disruptedPods``:
until that pod is seen to go, it is not counted as healthy. A pod that is still there two minutes
later was not deleted after all, and counts again. So a budget is never promised twice, whichever of
the two writers is behind.

How many pods there should be is asked of their controllers, so that a set that is just being
scaled up, or whose pods are all gone, is not taken for a small one. A pod of no controller counts
only where nobody asks for a share. Where a controller cannot be asked, nothing may be disrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from skerry.api.objects import Object
from skerry.controllers.workload.events import enqueue_self, selector_of
from skerry.controllers.workload.kinds import (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.conditions import condition, set_conditions
from skerry.logic.machinery.plan import NOTHING, Announcement, Plan, Target, Update
from skerry.logic.workloads.owners import controller_of
from skerry.logic.workloads.pods import is_ready, is_terminating
from skerry.logic.workloads.rollout import resolved
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, by_namespace, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue

NAME = "disruption-controller"
ALLOWED = "DisruptionAllowed"
# How long an evicted pod may take to begin to go.
DELETION_TIMEOUT = timedelta(minutes=2)
IN_NAMESPACE = "namespace"

# -- observe and decide ----------------------------------------------------------------------


class Scale(NamedTuple):
    """A set of pods: its UID, and how many pods it should have."""

    uid: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Observed:
    """One budget, the pods it selects, and the set of each of them.

    ``scales`` is by name of pod. A pod that is not in it has no controller, or one whose size
    nobody knows; the latter is in ``unknown``.
    """

    budget: Object
    pods: tuple[Object, ...]
    scales: Mapping[str, Scale]
    unknown: tuple[str, ...] = ()


def decide(observed: Observed, now: datetime) -> Plan:
    """Bring the budget's status up to date."""
    budget = observed.budget
    if "deletionTimestamp" in budget["metadata"]:
        return NOTHING
    old = budget.get("status") or {}
    disrupted, requeue_after = _disrupted(old.get("disruptedPods") or {}, observed.pods, now)
    status = _status(observed, disrupted)
    allowed = status.pop("condition")
    status["conditions"] = set_conditions(old.get("conditions") or (), [allowed], rfc3339(now))
    status["observedGeneration"] = budget["metadata"].get("generation", 0)
    if disrupted:
        status["disruptedPods"] = disrupted
    announcements = []
    if not observed.pods and old.get("expectedPods", 1):
        announcements.append(Announcement(budget, "Normal", "NoPods", "No matching pods found"))
    if status == old:
        return Plan([], requeue_after_seconds=requeue_after)
    metadata = budget["metadata"]
    target = Target(DISRUPTION_BUDGETS, metadata["name"], metadata["namespace"])
    update = Update(target, {**budget, "status": status}, "StatusChanged", subresource="status")
    return Plan([update], announcements, requeue_after_seconds=requeue_after)


def _status(observed: Observed, disrupted: Mapping[str, str]) -> dict[str, Any]:
    healthy = sum(
        is_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted
        for pod in observed.pods
    )
    spec = observed.budget["spec"]
    by_share = spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)
    if by_share and observed.unknown:
        name = observed.unknown[0]
        why = f'found no controllers for pod "{name}"'
        old = observed.budget.get("status") or {}
        counts = {key: int(old.get(key) or 0) for key in ("desiredHealthy", "expectedPods")}
        refusal = condition(ALLOWED, False, "SyncFailed", why)
        return {"currentHealthy": healthy, "disruptionsAllowed": 0, **counts, "condition": refusal}
    expected, desired = _wanted(spec, observed)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "condition": condition(
            ALLOWED, bool(allowed), "SufficientPods" if allowed else "InsufficientPods", ""
        ),
    }


def _wanted(spec: Mapping[str, Any], observed: Observed) -> tuple[int, int]:
    """Return how many pods there should be, and how many of them healthy."""
    maximum, minimum = spec.get("maxUnavailable"), spec.get("minAvailable")
    if maximum is None and isinstance(minimum, int):
        return len(observed.pods), minimum
    expected = sum({each.uid: each.replicas for each in observed.scales.values()}.values())
    if maximum is not None:
        return expected, max(0, expected - resolved(maximum, expected, round_up=True))
    return expected, resolved(minimum, expected, round_up=True)


def _disrupted(
    noted: Mapping[str, str], pods: Iterable[Object], now: datetime
) -> tuple[dict[str, str], float | None]:
    """Return which evicted pods have yet to begin to go, and when the next is given up on."""
    present = {pod["metadata"]["name"] for pod in pods if not is_terminating(pod)}
    kept = {
        name: since
        for name, since in noted.items()
        if name in present and parse_rfc3339(since) + DELETION_TIMEOUT > now
    }
    if not kept:
        return kept, None
    first = min(parse_rfc3339(since) for since in kept.values())
    return kept, (first + DELETION_TIMEOUT - now).total_seconds()


# -- controller ------------------------------------------------------------------------------


class _Scales:
    """Finds the size of the set that a pod belongs to."""

    def __init__(self, context: ControllerContext) -> None:
        self.informers = {
            ("apps", "ReplicaSet"): context.factory.informer(REPLICA_SETS),
            ("apps", "StatefulSet"): context.factory.informer(STATEFUL_SETS),
            ("apps", "Deployment"): context.factory.informer(DEPLOYMENTS),
            ("", "ReplicationController"): context.factory.informer(REPLICATION_CONTROLLERS),
        }

    def of(self, obj: Object) -> Scale | None:
        """Return the set that controls *obj*, and a Deployment in place of its ReplicaSet."""
        owner = self._owner(obj)
        if owner is None:
            return None
        above = controller_of(owner)
        if above is not None and above.get("kind") == "Deployment":
            owner = self._owner(owner) or owner
        return Scale(owner["metadata"]["uid"], int(owner["spec"].get("replicas", 1)))

    def _owner(self, obj: Object) -> Object | None:
        reference = controller_of(obj)
        if reference is None:
            return None
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        informer = self.informers.get((group, str(reference.get("kind"))))
        key = key_of(obj)
        found = informer and informer.index.get(Key(key.cluster, key.namespace, reference["name"]))
        return found if found and found["metadata"]["uid"] == reference["uid"] else None


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller.

    A budget is looked at when it changes, when a pod that it selects, or selected, changes, and
    when a set of its namespace is scaled.
    """
    budgets, pods = (context.factory.informer(each) for each in (DISRUPTION_BUDGETS, PODS))
    scales = _Scales(context)
    queue: WorkQueue[Key] = context.queue(NAME)
    for informer in (budgets, pods):
        informer.index.add_index(IN_NAMESPACE, by_namespace)
    budgets.add_handler(enqueue_self(queue.add))
    pods.add_handler(_enqueue_selecting(budgets, queue.add))
    for each in scales.informers.values():
        each.add_handler(_enqueue_scaled(budgets, queue.add))

    async def observe(key: Key) -> Observed | None:
        budget = budgets.index.get(key)
        if budget is None:
            return None
        selector = selector_of(budget)
        chosen = tuple(
            pod
            for pod in pods.index.by(IN_NAMESPACE, (key.cluster, key.namespace))
            if selector.matches(_labels(pod))
        )
        found = {pod["metadata"]["name"]: scales.of(pod) for pod in chosen}
        unknown = tuple(
            sorted(
                pod["metadata"]["name"]
                for pod in chosen
                if controller_of(pod) is not None and found[pod["metadata"]["name"]] is None
            )
        )
        known = {name: scale for name, scale in found.items() if scale is not None}
        return Observed(budget, chosen, known, unknown)

    reconciler = Reconciler(
        observe,
        lambda observed: decide(observed, context.client.clock.now()),
        context.executor(NAME),
    )
    return context.controller(NAME, reconciler, queue, [budgets, pods, *scales.informers.values()])


def _labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _enqueue_selecting(budgets: Informer, add: Callable[[Key], None]) -> Handler:
    """Enqueue the budgets that select a pod as it is, or as it was."""

    def handle(old: Object | None, new: Object | None) -> None:
        for pod in (old, new):
            for budget in budgets.index.by(IN_NAMESPACE, *by_namespace(pod)) if pod else ():
                if selector_of(budget).matches(_labels(pod or {})):
                    add(key_of(budget))

    return handle


def _enqueue_scaled(budgets: Informer, add: Callable[[Key], None]) -> Handler:
    """Enqueue the budgets of a namespace when a set there comes, goes or is scaled."""

    def handle(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _size(old) == _size(new):
            return
        obj = new or old
        if obj is not None:
            for budget in budgets.index.by(IN_NAMESPACE, *by_namespace(obj)):
                add(key_of(budget))

    return handle


def _size(obj: Object) -> int:
    return int(obj["spec"].get("replicas", 1))
