"""The next step of a StatefulSet: one pod at a time, or all at once when it says Parallel."""

from __future__ import annotations

import copy
from datetime import datetime

from skerry.api.objects import Object
from skerry.controllers.workload.kinds import CLAIMS, PODS, STATEFUL_SETS
from skerry.controllers.workload.statefulset.observe import Observed
from skerry.logic.machinery.plan import Action, Announcement, Create, Delete, Plan, Target, Update
from skerry.logic.machinery.selectors import Selector
from skerry.logic.workloads.history import REVISION_LABEL, forgotten, revised, template_of
from skerry.logic.workloads.owners import TargetOf, claim, claim_actions, owner_reference
from skerry.logic.workloads.pods import (
    is_available,
    is_finished,
    is_ready,
    is_terminating,
    phase,
    pod_from_template,
    seconds_until_available,
)

_POD = TargetOf(PODS)
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"


class _Step:
    """One decision in the making."""

    def __init__(self, observed: Observed, now: datetime) -> None:
        self.observed = observed
        self.now = now
        self.owner = observed.stateful_set
        self.spec = self.owner["spec"]
        self.name = self.owner["metadata"]["name"]
        self.reference = owner_reference(self.owner, "apps/v1", "StatefulSet")
        selector = Selector.from_label_selector(self.spec.get("selector"))
        self.claimed = claim(self.owner, selector, self._named(observed.pods))
        self.history = revised(self.owner, "StatefulSet", observed.revisions)
        old = self.owner.get("status") or {}
        self.current: str = old.get("currentRevision") or self.history.name
        self.pods = {
            ordinal: pod
            for pod in (*self.claimed.owned, *self.claimed.adopted)
            if (ordinal := ordinal_of(self.name, pod)) is not None
        }
        start = int((self.spec.get("ordinals") or {}).get("start", 0))
        self.wanted = range(start, start + int(self.spec.get("replicas", 1)))
        self.minimum = int(self.spec.get("minReadySeconds") or 0)
        self.parallel = self.spec.get("podManagementPolicy") == "Parallel"
        self.actions: list[Action] = []
        self.announcements: list[Announcement] = []

    def _named(self, pods: tuple[Object, ...]) -> list[Object]:
        """Return the pods that are ours, or are nobody's and named like ours."""
        return [pod for pod in pods if ordinal_of(self.name, pod) is not None]

    def available(self, pod: Object) -> bool:
        return is_ready(pod) and is_available(pod, self.minimum, self.now)

    def settled(self, pod: Object | None) -> bool:
        """Tell whether a pod is there and serves, so that the next one may be touched."""
        return pod is not None and not is_terminating(pod) and self.available(pod)

    def delete(self, pod: Object, reason: str) -> None:
        self.actions.append(Delete(_POD(pod), reason=reason, uid=pod["metadata"]["uid"]))
        name = pod["metadata"]["name"]
        text = f"delete Pod {name} in StatefulSet {self.name} successful"
        self.announcements.append(Announcement(self.owner, "Normal", "SuccessfulDelete", text))


def ordinal_of(name: str, pod: Object) -> int | None:
    """Return the number of a pod named like one of the set; None for others."""
    base, _, number = str(pod["metadata"]["name"]).rpartition("-")
    return int(number) if base == name and number.isdigit() else None


def decide(observed: Observed, now: datetime) -> Plan:
    """Take the next step towards the wanted pods of the present template."""
    step = _Step(observed, now)
    step.actions += claim_actions(step.claimed, step.reference, _POD)
    if "deletionTimestamp" not in step.owner["metadata"]:
        step.actions += step.history.actions
        if _scale_up(step) and _scale_down(step):
            _update(step)
        used = {step.history.hash, step.current.rpartition("-")[2]}
        used |= {_revision(pod) for pod in step.pods.values()}
        limit = step.spec.get("revisionHistoryLimit")
        step.actions += forgotten(observed.revisions, used, limit)
        step.actions += _retired_claims(step)
    # First: a pod that is refused must not keep the status from being reported.
    actions = [*_status(step), *step.actions]
    return Plan(actions, step.announcements, requeue_after_seconds=_requeue_after(step))


# Numbers that are missing.


def _scale_up(step: _Step) -> bool:
    """Create missing pods in order; False when the rest must wait."""
    for ordinal in step.wanted:
        pod = step.pods.get(ordinal)
        if pod is not None and is_finished(pod) and not is_terminating(pod):
            step.delete(pod, "PodEnded")
            if not step.parallel:
                return False
        elif pod is None:
            _create(step, ordinal)
            if not step.parallel:
                return False
        elif not step.settled(pod) and not step.parallel:
            return _may_be_replaced(step, ordinal, pod)
    return True


def _may_be_replaced(step: _Step, ordinal: int, pod: Object) -> bool:
    """Let an update through to a pod that never gets ready; else all would wait for ever."""
    stuck = not is_terminating(pod) and _revision(pod) != step.history.hash
    return stuck and ordinal >= _partition(step)


def _create(step: _Step, ordinal: int) -> None:
    namespace = step.owner["metadata"]["namespace"]
    name = f"{step.name}-{ordinal}"
    template, revision = _template_for(step, ordinal)
    pod = pod_from_template(template, namespace, name, step.reference)
    labels = pod["metadata"].setdefault("labels", {})
    labels |= {REVISION_LABEL: revision, _POD_NAME: name, _POD_INDEX: str(ordinal)}
    pod["spec"]["hostname"] = name
    if step.spec.get("serviceName"):
        pod["spec"]["subdomain"] = step.spec["serviceName"]
    _mount_claims(step, pod, name)
    target = Target(PODS, name, namespace)
    step.actions.append(Create(target, pod, reason="ReplicaMissing"))
    text = f"create Pod {name} in StatefulSet {step.name} successful"
    step.announcements.append(Announcement(step.owner, "Normal", "SuccessfulCreate", text))


def _template_for(step: _Step, ordinal: int) -> tuple[Object, str]:
    """Return the template a number gets: the old one below the partition of an update."""
    if ordinal >= _partition(step) or step.current == step.history.name:
        return step.spec["template"], step.history.hash
    for revision in step.observed.revisions:
        if revision["metadata"]["name"] == step.current:
            return template_of(revision), step.current.rpartition("-")[2]
    return step.spec["template"], step.history.hash


def _mount_claims(step: _Step, pod: Object, name: str) -> None:
    """Have the pod's claims, and use them as its volumes."""
    templates = step.spec.get("volumeClaimTemplates") or []
    present = {item["metadata"]["name"] for item in step.observed.claims}
    volumes = [
        volume
        for volume in pod["spec"].get("volumes") or ()
        if volume["name"] not in {item["metadata"]["name"] for item in templates}
    ]
    namespace = step.owner["metadata"]["namespace"]
    labels = (step.spec["selector"].get("matchLabels")) or {}
    for template in templates:
        volume = template["metadata"]["name"]
        claim_name = f"{volume}-{name}"
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim_name}})
        if claim_name in present:
            continue
        metadata = {**copy.deepcopy(template["metadata"]), "name": claim_name}
        metadata["namespace"] = namespace
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": copy.deepcopy(template["spec"]),
        }
        step.actions.append(Create(Target(CLAIMS, claim_name, namespace), obj, "ClaimMissing"))
    if volumes:
        pod["spec"]["volumes"] = volumes


# Numbers that are too many.


def _scale_down(step: _Step) -> bool:
    """Delete pods beyond the wanted ones, highest first; False when the rest must wait."""
    for ordinal in sorted(set(step.pods) - set(step.wanted), reverse=True):
        pod = step.pods[ordinal]
        if not is_terminating(pod):
            step.delete(pod, "TooManyReplicas")
        if not step.parallel:
            return False
    return True


def _retired_claims(step: _Step) -> list[Action]:
    """Delete claims of numbers that are gone, where the retention policy says so."""
    policy = step.spec.get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenScaled", "Retain") != "Delete":
        return []
    found: list[Action] = []
    for item in step.observed.claims:
        number = item["metadata"]["name"].rpartition("-")[2]
        gone = number.isdigit() and int(number) not in step.wanted
        if gone and int(number) not in step.pods and not is_terminating(item):
            target = TargetOf(CLAIMS)(item)
            found.append(Delete(target, reason="ScaledDown", uid=item["metadata"]["uid"]))
    return found


# Changes of the template.


def _update(step: _Step) -> None:
    """Replace pods of older templates, highest number first, one at a time."""
    strategy = step.spec.get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    for ordinal in sorted(step.wanted, reverse=True):
        if ordinal < _partition(step):
            return
        pod = step.pods.get(ordinal)
        if pod is None:
            return
        if _revision(pod) != step.history.hash:
            if not is_terminating(pod):
                step.delete(pod, "TemplateChanged")
            return
        if not step.settled(pod):
            return


def _partition(step: _Step) -> int:
    strategy = step.spec.get("updateStrategy") or {}
    return int((strategy.get("rollingUpdate") or {}).get("partition") or 0)


def _revision(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _status(step: _Step) -> list[Action]:
    owner, old = step.owner, step.owner.get("status") or {}
    pods = [pod for n, pod in step.pods.items() if n in step.wanted or not is_terminating(pod)]
    live = [pod for pod in pods if phase(pod) != "Failed"]
    ready = [pod for pod in live if is_ready(pod) and not is_terminating(pod)]
    updated = [pod for pod in live if _revision(pod) == step.history.hash]
    current_hash = step.current.rpartition("-")[2]
    current = step.current
    everyone = len(updated) == len(live) == len(step.wanted)
    if everyone and all(step.settled(pod) for pod in live):
        current, current_hash = step.history.name, step.history.hash
    counts = {
        "replicas": len(live),
        "readyReplicas": len(ready),
        "currentReplicas": sum(_revision(pod) == current_hash for pod in live),
        "updatedReplicas": len(updated),
        "availableReplicas": sum(step.available(pod) for pod in ready),
    }
    status: Object = {
        k: v for k, v in counts.items() if v or k in ("replicas", "availableReplicas")
    }
    status |= {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "currentRevision": current,
        "updateRevision": step.history.name,
        "collisionCount": old.get("collisionCount", 0),
    }
    if old.get("conditions"):
        status["conditions"] = old["conditions"]
    if status == old:
        return []
    desired = copy.deepcopy(owner)
    desired["status"] = status
    target = TargetOf(STATEFUL_SETS)(owner)
    return [Update(target, desired, reason="StatusChanged", subresource="status")]


def _requeue_after(step: _Step) -> float | None:
    if not step.minimum:
        return None
    left = [seconds_until_available(p, step.minimum, step.now) for p in step.pods.values()]
    return min((seconds for seconds in left if seconds), default=None)
