"""The ReplicaSet of a Deployment whose status is made of what its destinations report.

Helm 3 does not judge a Deployment by its status. It looks for the ReplicaSet that the Deployment
controls and that has its pod template, and counts what is ready there. Nothing runs where a source
is, so it would wait for one until its patience ends. With ``reportedState: Aggregate`` a Deployment
has one, as it has in every cluster that runs it, made of the same status:

* What is ready of the present template is what is ready at the worst destination, less all that may
  still be of another template there.
* It has the template of the Deployment at once. Whether that is at all destinations says the
  Deployment's ``observedGeneration``, which whoever waits compares as well.
* It is a report. It never travels (``is_system_object``), nobody acts on it, and it goes with the
  Deployment that owns it.
"""

from __future__ import annotations

from typing import Final

from skerry.api.edge import REPORTED_REPLICAS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object, Raw
from skerry.api.refs import ClusterName
from skerry.logic.fleet.summary.aggregate_numbers import count
from skerry.logic.machinery.plan import Action, Create, Delete, Patch, Plan, Target, Update

REPLICA_SETS: Final = GroupVersionResource("apps", "v1", "replicasets")
_REASON: Final = "DestinationsReported"
_ENDING = "-reported"
_MAX_NAME_LENGTH = 253
# After the one of a Deployment of before was deleted, and before Helm looks again.
_REQUEUE_AFTER_SECONDS = 1.0
_NUMBERS = (
    "observedGeneration",
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
)


def replica_set_name(deployment: str) -> str:
    """Return the name of the ReplicaSet that reports on a Deployment."""
    return deployment[: _MAX_NAME_LENGTH - len(_ENDING)].rstrip("-.") + _ENDING


def replica_set_plan(cluster: ClusterName, deployment: Raw, status: Raw, live: Raw) -> Plan:
    """Return what makes the ReplicaSet say what *status*, the Deployment's, does.

    *live* is the one that is there, or empty. One that is somebody else's is left alone.
    """
    metadata, spec = deployment["metadata"], _spec(deployment["spec"])
    name = replica_set_name(metadata["name"])
    target = Target(REPLICA_SETS, name, metadata["namespace"], cluster)
    if not live:
        made = _made(deployment, name, spec)
        report = {"status": _status(status, 1)}
        return Plan(
            [Create(target, made, _REASON, refusal_is_fine=True), _reported(target, report)]
        )
    there, owner = live["metadata"], _owner(live)
    if REPORTED_REPLICAS not in (there.get("annotations") or {}):
        return Plan()
    if owner.get("uid") != metadata["uid"]:
        # Of a Deployment that had the name before; or the names of both are cut to the same.
        if owner.get("name") != metadata["name"]:
            return Plan()
        gone = Delete(target, "OwnerGone", uid=there["uid"])
        return Plan([gone], requeue_after_seconds=_REQUEUE_AFTER_SECONDS)
    actions: list[Action] = []
    generation = count(there, "generation")
    if any(live["spec"].get(field) != value for field, value in spec.items()):
        made = {**live, "spec": {**live["spec"], **spec}}
        actions.append(Update(target, made, _REASON, refusal_is_fine=True))
        generation += 1
    wanted, said = _status(status, generation), live.get("status") or {}
    if any(count(said, field) != wanted[field] for field in _NUMBERS):
        actions.append(_reported(target, {"status": wanted}))
    return Plan(actions)


def _reported(target: Target, patch: Object) -> Patch:
    return Patch(target, patch, _REASON, subresource="status", absent_is_fine=True)


def _spec(deployment: Raw) -> Object:
    kept = ("replicas", "selector", "template")
    return {name: deployment[name] for name in kept if name in deployment}


def _made(deployment: Raw, name: str, spec: Object) -> Object:
    metadata, template = deployment["metadata"], spec["template"].get("metadata") or {}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": template.get("labels") or {},
            "annotations": {REPORTED_REPLICAS: "true"},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def _owner(live: Raw) -> Raw:
    owners = live["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), {})


def _status(deployment: Raw, generation: int) -> Object:
    """Return what the Deployment's status says of the present template at least."""
    updated = count(deployment, "updatedReplicas")
    others = max(0, count(deployment, "replicas") - updated)
    ready, available = (
        max(0, count(deployment, name) - others) for name in ("readyReplicas", "availableReplicas")
    )
    return {
        "observedGeneration": generation,
        "replicas": updated,
        "fullyLabeledReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": available,
    }
