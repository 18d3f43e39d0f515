"""One step of a rollout: find or make the new ReplicaSet, resize, tell, forget old ones.

Each decision takes one step of one kind; the change it makes enqueues the Deployment for the next.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import datetime

from skerry.api.objects import Object
from skerry.controllers.workload.deployment.observe import Observed
from skerry.controllers.workload.deployment.status import (
    complete,
    paused_conditions,
    status_of,
    with_condition,
    with_progress,
)
from skerry.controllers.workload.kinds import DEPLOYMENTS, REPLICA_SETS
from skerry.kit.text import whole_number
from skerry.logic.machinery.plan import Action, Announcement, Create, Delete, Patch, Plan, Update
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.owners import (
    TargetOf,
    claim,
    claim_actions,
    oldest_first,
    owner_reference,
)
from skerry.logic.workloads.revisions import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    POD_TEMPLATE_HASH,
    REVISION,
    content_hash,
    inherited_annotations,
    revision_of,
    same_template,
    with_revision,
)
from skerry.logic.workloads.rollout import (
    Limits,
    Set,
    limits_of,
    new_set_size,
    proportioned,
    shrunk_old_sets,
)

_SET = TargetOf(REPLICA_SETS)
_SELF = TargetOf(DEPLOYMENTS)


@dataclass(slots=True)
class _Step:
    """One decision in the making."""

    deployment: Object
    sets: list[Object]  # all that are ours, oldest first
    new: Object | None
    limits: Limits
    now: datetime
    running: frozenset[str]
    actions: list[Action]
    announcements: list[Announcement]

    @property
    def old(self) -> list[Object]:
        return [item for item in self.sets if item is not self.new]


def decide(observed: Observed, now: datetime) -> Plan:
    """Take the next step of the Deployment's rollout."""
    step = _begun(observed, now)
    deployment, spec = step.deployment, step.deployment["spec"]
    if "deletionTimestamp" in deployment["metadata"]:
        return _finished(step)
    if spec.get("paused") or _scaling(step):
        _revised(step, create=False)
        _scale(step)
        if spec.get("paused"):
            _forget_history(step)
        return _finished(step, paused=True)
    if step.limits.rolling:
        _revised(step, create=True)
        if not step.actions:
            _roll(step)
    else:
        _recreate(step)
    return _finished(step)


def _begun(observed: Observed, now: datetime) -> _Step:
    deployment = observed.deployment
    selector = Selector.from_label_selector(deployment["spec"].get("selector"))
    claimed = claim(deployment, selector, observed.replica_sets)
    reference = owner_reference(deployment, "apps/v1", "Deployment")
    sets = list(oldest_first((*claimed.owned, *claimed.adopted)))
    template = deployment["spec"]["template"]
    new = next((item for item in sets if same_template(item["spec"]["template"], template)), None)
    return _Step(
        deployment,
        sets,
        new,
        limits_of(deployment["spec"]),
        now,
        observed.running,
        claim_actions(claimed, reference, _SET),
        [],
    )


# The new ReplicaSet.


def _revised(step: _Step, *, create: bool) -> None:
    """Have a ReplicaSet for the present template, at the highest revision."""
    revision = max((revision_of(item) for item in step.old), default=0) + 1
    if step.new is None:
        if create:
            _create_new(step, revision)
        return
    metadata = step.new["metadata"]
    annotations = dict(metadata.get("annotations") or {}) | inherited_annotations(step.deployment)
    annotations = with_revision(annotations, revision)
    minimum = step.deployment["spec"].get("minReadySeconds") or 0
    same_minimum = (step.new["spec"].get("minReadySeconds") or 0) == minimum
    if annotations != (metadata.get("annotations") or {}) or not same_minimum:
        wanted = copy.deepcopy(step.new)
        wanted["metadata"]["annotations"] = annotations
        wanted["spec"]["minReadySeconds"] = minimum
        step.actions.append(Update(_SET(wanted), wanted, reason="RevisionChanged"))
        return
    _report_revision(step, annotations[REVISION])


def _report_revision(step: _Step, revision: str) -> None:
    metadata = step.deployment["metadata"]
    if (metadata.get("annotations") or {}).get(REVISION) == revision:
        return
    patch = {"metadata": {"uid": metadata["uid"], "annotations": {REVISION: revision}}}
    step.actions.append(
        Patch(_SELF(step.deployment), patch, reason="RevisionChanged", absent_is_fine=True)
    )


def _create_new(step: _Step, revision: int) -> None:
    deployment = step.deployment
    status = deployment.get("status") or {}
    template = copy.deepcopy(deployment["spec"]["template"])
    named = content_hash(template, status.get("collisionCount"))
    name = f"{deployment['metadata']['name']}-{named}"
    if any(item["metadata"]["name"] == name for item in step.sets):
        _count_collision(step)
        return
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[POD_TEMPLATE_HASH] = named
    selector = copy.deepcopy(deployment["spec"]["selector"])
    selector.setdefault("matchLabels", {})[POD_TEMPLATE_HASH] = named
    everyone = sum(_wanted(item) for item in step.sets)
    size = new_set_size(step.limits, 0, everyone)
    annotations = inherited_annotations(deployment) | _scale_annotations(step.limits)
    created: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "labels": dict(labels),
            "annotations": {**annotations, REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment, "apps/v1", "Deployment")],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": deployment["spec"].get("minReadySeconds") or 0,
            "selector": selector,
            "template": template,
        },
    }
    step.actions.append(Create(_SET(created), created, reason="NewTemplate"))
    _report_revision(step, str(revision))
    if size:
        _announce_scaling(step, name, 0, size)
    step.new = created
    step.sets.append(created)


def _count_collision(step: _Step) -> None:
    """Ask for another name: ours is taken by a ReplicaSet of another template."""
    wanted = copy.deepcopy(step.deployment)
    status = wanted.setdefault("status", {})
    status["collisionCount"] = status.get("collisionCount", 0) + 1
    step.actions.append(Update(_SELF(wanted), wanted, reason="NameCollision", subresource="status"))


# Sizes.


def _roll(step: _Step) -> None:
    """Grow the new ReplicaSet as far as allowed, else shrink the old ones."""
    new = step.new
    if new is None:
        return
    everyone = sum(_wanted(item) for item in step.sets)
    size = new_set_size(step.limits, _wanted(new), everyone)
    if size != _wanted(new):
        _resize(step, new, size)
        return
    active = [item for item in step.old if _wanted(item)]
    if active:
        numbers = [_numbers(item) for item in active]
        sizes = shrunk_old_sets(step.limits, _numbers(new), numbers)
        for item in active:
            if item["metadata"]["name"] in sizes:
                _resize(step, item, sizes[item["metadata"]["name"]])


def _recreate(step: _Step) -> None:
    """Shrink old ReplicaSets to nothing, wait for their pods, then make the new one."""
    for item in step.old:
        if _wanted(item):
            _resize(step, item, 0)
    if step.actions:
        return
    if any(item["metadata"]["uid"] in step.running for item in step.old):
        return
    _revised(step, create=True)
    if not step.actions and step.new is not None and _wanted(step.new) != step.limits.replicas:
        _resize(step, step.new, step.limits.replicas)


def _scaling(step: _Step) -> bool:
    """Tell whether the number of replicas changed since the ReplicaSets were last sized."""
    for item in step.sets:
        annotation = (item["metadata"].get("annotations") or {}).get(DESIRED_REPLICAS)
        if _wanted(item) and annotation is not None and annotation != str(step.limits.replicas):
            return True
    return False


def _scale(step: _Step) -> None:
    """Follow a change of the number wanted, in proportion while a rollout is under way."""
    active = [item for item in step.sets if _wanted(item)]
    if len(active) <= 1:
        only = active[0] if active else step.new or (step.sets[-1] if step.sets else None)
        if only is not None:
            _resize(step, only, step.limits.replicas)
        return
    if step.new is not None and _saturated(step.new, step.limits):
        for item in step.old:
            if _wanted(item):
                _resize(step, item, 0)
        return
    if not step.limits.rolling:
        return
    growing = step.limits.maximum > sum(_wanted(item) for item in active)
    newest_first = active[::-1] if growing else active
    ordered = sorted(newest_first, key=lambda item: -_wanted(item))
    sizes = proportioned(step.limits, [_numbers(item) for item in ordered])
    for item in active:
        _resize(step, item, sizes.get(item["metadata"]["name"], _wanted(item)))


def _saturated(new: Object, limits: Limits) -> bool:
    status = new.get("status") or {}
    annotation = (new["metadata"].get("annotations") or {}).get(DESIRED_REPLICAS)
    return (
        _wanted(new) == limits.replicas
        and annotation == str(limits.replicas)
        and status.get("availableReplicas", 0) == limits.replicas
    )


def _resize(step: _Step, replica_set: Object, size: int) -> None:
    """Set a ReplicaSet's size and note what it was sized for."""
    annotations = replica_set["metadata"].get("annotations") or {}
    noted = {**annotations, **_scale_annotations(step.limits)}
    old = _wanted(replica_set)
    if size == old and noted == annotations:
        return
    wanted = copy.deepcopy(replica_set)
    wanted["spec"]["replicas"] = size
    wanted["metadata"]["annotations"] = noted
    step.actions.append(Update(_SET(wanted), wanted, reason="ScalingReplicaSet"))
    if size != old:
        _announce_scaling(step, replica_set["metadata"]["name"], old, size)


def _announce_scaling(step: _Step, name: str, old: int, new: int) -> None:
    direction = "up" if new > old else "down"
    text = f"Scaled {direction} replica set {name} from {old} to {new}"
    step.announcements.append(Announcement(step.deployment, "Normal", "ScalingReplicaSet", text))


def _scale_annotations(limits: Limits) -> dict[str, str]:
    return {DESIRED_REPLICAS: str(limits.replicas), MAX_REPLICAS: str(limits.maximum)}


# The end of a step.


def _forget_history(step: _Step) -> None:
    """Delete ReplicaSets that hold nothing, beyond as many as are to be kept for undo."""
    limit = step.deployment["spec"].get("revisionHistoryLimit")
    if limit is None:
        return
    empty = [item for item in step.old if _may_go(item)]
    for item in sorted(empty, key=revision_of)[: max(0, len(step.old) - int(limit))]:
        step.actions.append(
            Delete(
                _SET(item),
                reason="HistoryLimit",
                uid=item["metadata"]["uid"],
                resource_version=item["metadata"].get("resourceVersion", ""),
                propagation="Background",
            )
        )


def _may_go(replica_set: Object) -> bool:
    status = replica_set.get("status") or {}
    generation = replica_set["metadata"].get("generation", 0)
    return (
        not _wanted(replica_set)
        and not status.get("replicas")
        and generation <= status.get("observedGeneration", 0)
        and "deletionTimestamp" not in replica_set["metadata"]
    )


def _finished(step: _Step, *, paused: bool = False) -> Plan:
    """Add the status to what was decided."""
    deployment = step.deployment
    status = status_of(deployment, step.sets, step.new, step.now)
    again: float | None = None
    if paused:
        status["conditions"] = paused_conditions(deployment, status["conditions"], step.now)
    elif "deletionTimestamp" not in deployment["metadata"]:
        status["conditions"] = paused_conditions(deployment, status["conditions"], step.now)
        _note_new(step, status)
        status, again = with_progress(deployment, status, step.new, step.now)
        if complete(deployment, status):
            _forget_history(step)
    collided = any(action.reason == "NameCollision" for action in step.actions)
    if status != (deployment.get("status") or {}) and not collided:
        patch = {
            "metadata": {"uid": deployment["metadata"]["uid"]},
            "status": _nulled(step, status),
        }
        step.actions.append(
            Patch(
                _SELF(deployment),
                patch,
                reason="StatusChanged",
                subresource="status",
                absent_is_fine=True,
            )
        )
    return Plan(step.actions, step.announcements, requeue_after_seconds=again)


def _note_new(step: _Step, status: Object) -> None:
    """Say that progress began with the new ReplicaSet, which starts the deadline."""
    if step.new is None or any(item["type"] == "Progressing" for item in status["conditions"]):
        return
    name = step.new["metadata"]["name"]
    created = "uid" not in step.new["metadata"]
    reason = "NewReplicaSetCreated" if created else "FoundNewReplicaSet"
    text = f'Created new replica set "{name}"' if created else f'Found new replica set "{name}"'
    status["conditions"] = with_condition(
        status["conditions"], "Progressing", "True", reason, text, step.now
    )


def _nulled(step: _Step, status: Object) -> Object:
    """Return *status* as a merge patch: what is gone is null."""
    gone = dict.fromkeys((step.deployment.get("status") or {}).keys() - status.keys())
    return {**gone, **status}


def _wanted(replica_set: Object) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _numbers(replica_set: Object) -> Set:
    annotations = replica_set["metadata"].get("annotations") or {}
    maximum = annotations.get(MAX_REPLICAS, "0")
    available = int((replica_set.get("status") or {}).get("availableReplicas", 0))
    size = _wanted(replica_set)
    return Set(
        replica_set["metadata"]["name"],
        size,
        min(size, available),
        whole_number(maximum) or 0,
    )
