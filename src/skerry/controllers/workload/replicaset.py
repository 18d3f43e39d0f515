"""Keeps as many pods as a ReplicaSet, or a ReplicationController, wants.

Reads sets and Pods. Writes pods (created, deleted, adopted, released) and the set's status. The
older kind differs in nothing but its selector, a plain map of labels, so both are one controller
(``SetKind``), run once for each.

Invariants: a pod is deleted only while it is controlled by this set's uid. Pods that end are
replaced; pods on their way out are neither counted nor touched. A set whose pods are refused says
so in the condition ``ReplicaFailure`` until it has them all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.event_recording import event_recording_executor
from skerry.controllers.workload.events import (
    candidates,
    enqueue_owner,
    enqueue_self,
    index_owned,
    selector_of,
)
from skerry.controllers.workload.kinds import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.conditions import condition, find_condition, set_conditions
from skerry.logic.machinery.plan import (
    Action,
    Announcement,
    Create,
    Delete,
    Patch,
    Plan,
    Target,
    Update,
)
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.owners import TargetOf, claim, claim_actions, owner_reference
from skerry.logic.workloads.pods import (
    deletion_order,
    is_active,
    is_available,
    is_ready,
    pod_from_template,
    seconds_until_available,
)
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key
from skerry.runtime.workqueue import WorkQueue
from skerry.runtime.write_overlay import InformerOverlay


@dataclass(frozen=True, slots=True)
class SetKind:
    """A kind of set of equal pods. ``controller`` is what its events are signed with."""

    controller: str
    gvr: GroupVersionResource
    api_version: str
    kind: str
    selector: Callable[[Object], Selector]


REPLICA_SET = SetKind("replicaset-controller", REPLICA_SETS, "apps/v1", "ReplicaSet", selector_of)
REPLICATION_CONTROLLER = SetKind(
    "replication-controller",
    REPLICATION_CONTROLLERS,
    "v1",
    "ReplicationController",
    lambda owner: Selector.from_labels(owner["spec"].get("selector")),
)
FAILURE = "ReplicaFailure"
# Pods created in one plan; the next look creates the rest.
BURST = 500

# -- observe and decide ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """One set, pods of its or nobody's, and fresh suffixes for names."""

    owner: Object
    pods: tuple[Object, ...]
    suffixes: tuple[str, ...] = ()
    kind: SetKind = REPLICA_SET


_POD = TargetOf(PODS)


def decide(observed: Observed, now: datetime) -> Plan:
    """Bring the number of active pods to what is wanted."""
    owner, kind = observed.owner, observed.kind
    claimed = claim(owner, kind.selector(owner), observed.pods)
    reference = owner_reference(owner, kind.api_version, kind.kind)
    active = [pod for pod in (*claimed.owned, *claimed.adopted) if is_active(pod)]
    actions = claim_actions(claimed, reference, _POD)
    announcements: list[Announcement] = []
    if "deletionTimestamp" not in owner["metadata"]:
        changes, announcements = _changes(observed, active, reference)
        actions += changes
    # First: a pod that is refused must not keep the status from being reported.
    actions = [*_status(observed, active, now), *actions]
    return Plan(actions, announcements, requeue_after_seconds=_requeue_after(owner, active, now))


def _changes(
    observed: Observed, active: Sequence[Object], reference: Object
) -> tuple[list[Action], list[Announcement]]:
    owner = observed.owner
    missing = int(owner["spec"].get("replicas", 1)) - len(active)
    if missing > 0:
        made = [_creation(owner, suffix, reference) for suffix in observed.suffixes[:missing]]
        return list(made), [
            _announcement(owner, "SuccessfulCreate", "Created", a.target) for a in made
        ]
    doomed = deletion_order(active)[: min(-missing, BURST)]
    removed = [_deletion(pod) for pod in doomed]
    return list(removed), [
        _announcement(owner, "SuccessfulDelete", "Deleted", a.target) for a in removed
    ]


def _creation(owner: Object, suffix: str, reference: Object) -> Create:
    metadata = owner["metadata"]
    # A name must leave room for its suffix: 63 characters, as generateName does it.
    name = f"{metadata['name'][:57]}-{suffix}"
    pod = pod_from_template(owner["spec"]["template"], metadata["namespace"], name, reference)
    target = Target(PODS, name, metadata["namespace"])
    return Create(target, pod, reason="ReplicaMissing", exclusive=True)


def _deletion(pod: Object) -> Delete:
    return Delete(_POD(pod), reason="TooManyReplicas", uid=pod["metadata"]["uid"])


def _announcement(owner: Object, reason: str, verb: str, target: Target) -> Announcement:
    return Announcement(owner, "Normal", reason, f"{verb} pod: {target.name}")


def _status(observed: Observed, active: Sequence[Object], now: datetime) -> list[Action]:
    owner = observed.owner
    spec, old = owner["spec"], owner.get("status") or {}
    template = Selector.from_labels((spec["template"].get("metadata") or {}).get("labels"))
    minimum = int(spec.get("minReadySeconds") or 0)
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(template.matches(p["metadata"].get("labels")) for p in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, minimum, now) for pod in active),
    }
    # Zero is left out, except of the one field that is required.
    status: dict[str, Any] = {k: v for k, v in counts.items() if v or k == "replicas"}
    status["observedGeneration"] = owner["metadata"].get("generation", 0)
    conditions = old.get("conditions") or []
    if len(active) >= int(spec.get("replicas", 1)):
        conditions = set_conditions(conditions, (), rfc3339(now), dropped={FAILURE})
    if conditions:
        status["conditions"] = conditions
    if status == old:
        return []
    wanted = copy.deepcopy(owner)
    wanted["status"] = status
    target = TargetOf(observed.kind.gvr)(owner)
    return [Update(target, wanted, "StatusChanged", subresource="status")]


def refused(kind: SetKind, owner: Object, why: str, now: datetime) -> Plan:
    """Return what is written on a set whose pods are refused; the first reason stays."""
    if find_condition(owner, FAILURE) is not None:
        return Plan()
    known = (owner.get("status") or {}).get("conditions") or []
    failure = condition(FAILURE, True, "FailedCreate", why)
    change = {"status": {"conditions": set_conditions(known, [failure], rfc3339(now))}}
    target = TargetOf(kind.gvr)(owner)
    return Plan([Patch(target, change, FAILURE, subresource="status", absent_is_fine=True)])


def _requeue_after(owner: Object, active: Sequence[Object], now: datetime) -> float | None:
    """Return when the next ready pod becomes available, which no event tells."""
    minimum = int(owner["spec"].get("minReadySeconds") or 0)
    if not minimum:
        return None
    left = [seconds_until_available(pod, minimum, now) for pod in active]
    return min((seconds for seconds in left if seconds), default=None)


# -- controller ------------------------------------------------------------------------------


def build(context: ControllerContext, kind: SetKind = REPLICA_SET) -> Controller[Key, Observed]:
    """Return the controller that keeps sets of a kind at their size.

    A set is looked at when it, one of its pods, or a pod it could adopt changes. It sees its own
    recent writes: pods get fresh names, so nothing else keeps it from making them twice.
    """
    sets = context.factory.informer(kind.gvr)
    pods = context.factory.informer(PODS)
    overlay = InformerOverlay(pods)
    queue: WorkQueue[Key] = context.queue(kind.controller)
    index_owned(pods)
    sets.add_handler(enqueue_self(queue.add))
    pods.add_handler(enqueue_owner(kind.kind, sets, queue.add, kind.selector))

    async def observe(key: Key) -> Observed | None:
        owner = sets.index.get(key)
        if owner is None:
            return None
        await overlay.resolve(context.client)
        count = min(BURST, max(0, int(owner["spec"].get("replicas", 1))))
        suffixes = tuple(context.ids.suffix(5) for _ in range(count))
        return Observed(owner, tuple(candidates(overlay, owner)), suffixes, kind)

    reconciler = Reconciler(
        observe,
        lambda observed: decide(observed, context.client.clock.now()),
        event_recording_executor(
            context,
            kind.controller,
            overlay,
            lambda owner, why: refused(kind, owner, why, context.client.clock.now()),
        ),
    )
    return context.controller(kind.controller, reconciler, queue, [sets, pods])
