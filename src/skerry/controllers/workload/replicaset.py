"""Keeps as many pods as a ReplicaSet wants.

Reads ReplicaSets and Pods. Writes pods (created, deleted, adopted, released) and the ReplicaSet's
status.

Invariants: a pod is deleted only while it is controlled by this ReplicaSet's uid. Pods that end
are replaced; pods on their way out are neither counted nor touched.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.controllers.workload.event_recording import event_recording_executor
from skerry.controllers.workload.events import (
    candidates,
    enqueue_owner,
    enqueue_self,
    index_owned,
)
from skerry.controllers.workload.kinds import PODS, REPLICA_SETS
from skerry.logic.machinery.plan import Action, Announcement, Create, Delete, Plan, Target, Update
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

NAME = "replicaset-controller"
# Pods created in one plan; the next look creates the rest.
BURST = 500

# -- observe and decide ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """One ReplicaSet, pods of its or nobody's, and fresh suffixes for names."""

    replica_set: Object
    pods: tuple[Object, ...]
    suffixes: tuple[str, ...] = ()


_POD = TargetOf(PODS)


def decide(observed: Observed, now: datetime) -> Plan:
    """Bring the number of active pods to what is wanted."""
    owner = observed.replica_set
    selector = Selector.from_label_selector(owner["spec"].get("selector"))
    claimed = claim(owner, selector, observed.pods)
    reference = owner_reference(owner, "apps/v1", "ReplicaSet")
    active = [pod for pod in (*claimed.owned, *claimed.adopted) if is_active(pod)]
    actions = claim_actions(claimed, reference, _POD)
    announcements: list[Announcement] = []
    if "deletionTimestamp" not in owner["metadata"]:
        changes, announcements = _changes(observed, active, reference)
        actions += changes
    # First: a pod that is refused must not keep the status from being reported.
    actions = [*_status(owner, active, now), *actions]
    return Plan(actions, announcements, look_again_seconds=_next_look(owner, active, now))


def _changes(
    observed: Observed, active: Sequence[Object], reference: Object
) -> tuple[list[Action], list[Announcement]]:
    owner = observed.replica_set
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


def _status(owner: Object, active: Sequence[Object], now: datetime) -> list[Action]:
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
    if old.get("conditions"):
        status["conditions"] = old["conditions"]
    if status == old:
        return []
    wanted = copy.deepcopy(owner)
    wanted["status"] = status
    return [Update(TargetOf(REPLICA_SETS)(owner), wanted, "StatusChanged", subresource="status")]


def _next_look(owner: Object, active: Sequence[Object], now: datetime) -> float | None:
    """Return when the next ready pod becomes available, which no event tells."""
    minimum = int(owner["spec"].get("minReadySeconds") or 0)
    if not minimum:
        return None
    left = [seconds_until_available(pod, minimum, now) for pod in active]
    return min((seconds for seconds in left if seconds), default=None)


# -- controller ------------------------------------------------------------------------------


def build(context: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that keeps ReplicaSets at their size.

    A ReplicaSet is looked at when it, one of its pods, or a pod it could adopt changes. It sees
    its own recent writes: pods get fresh names, so nothing else keeps it from making them twice.
    """
    replica_sets = context.factory.informer(REPLICA_SETS)
    pods = context.factory.informer(PODS)
    overlay = InformerOverlay(pods)
    queue: WorkQueue[Key] = context.queue(NAME)
    index_owned(pods)
    replica_sets.add_handler(enqueue_self(queue.add))
    pods.add_handler(enqueue_owner("ReplicaSet", replica_sets, queue.add))

    async def observe(key: Key) -> Observed | None:
        replica_set = replica_sets.index.get(key)
        if replica_set is None:
            return None
        await overlay.resolve(context.client)
        count = min(BURST, max(0, int(replica_set["spec"].get("replicas", 1))))
        suffixes = tuple(context.ids.suffix(5) for _ in range(count))
        return Observed(replica_set, tuple(candidates(overlay, replica_set)), suffixes)

    reconciler = Reconciler(
        observe,
        lambda observed: decide(observed, context.client.clock.now()),
        event_recording_executor(context, NAME, overlay),
    )
    return context.controller(NAME, reconciler, queue, [replica_sets, pods])
