"""Create what is missing, delete what is too much, tell how many there are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from skerry.api.objects import Object
from skerry.controllers.workload.kinds import PODS, REPLICA_SETS
from skerry.controllers.workload.replicaset.observe import BURST, Observed
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
    # First: a pod that is refused must not keep the status from being told.
    actions = [*_status(owner, active, now), *actions]
    return Plan(actions, announcements, look_again_seconds=_next_look(owner, active, now))


def _changes(
    observed: Observed, active: Sequence[Object], reference: Object
) -> tuple[list[Action], list[Announcement]]:
    owner = observed.replica_set
    missing = int(owner["spec"].get("replicas", 1)) - len(active)
    if missing > 0:
        made = [_creation(owner, suffix, reference) for suffix in observed.suffixes[:missing]]
        return list(made), [_told(owner, "SuccessfulCreate", "Created", a.target) for a in made]
    doomed = deletion_order(active)[: min(-missing, BURST)]
    removed = [_deletion(pod) for pod in doomed]
    return list(removed), [_told(owner, "SuccessfulDelete", "Deleted", a.target) for a in removed]


def _creation(owner: Object, suffix: str, reference: Object) -> Create:
    metadata = owner["metadata"]
    # A name must leave room for its suffix: 63 characters, as generateName does it.
    name = f"{metadata['name'][:57]}-{suffix}"
    pod = pod_from_template(owner["spec"]["template"], metadata["namespace"], name, reference)
    target = Target(PODS, name, metadata["namespace"])
    return Create(target, pod, reason="ReplicaMissing", exclusive=True)


def _deletion(pod: Object) -> Delete:
    return Delete(_POD(pod), reason="TooManyReplicas", uid=pod["metadata"]["uid"])


def _told(owner: Object, reason: str, verb: str, target: Target) -> Announcement:
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
