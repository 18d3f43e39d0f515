"""Bind a claim, or decide what becomes of a volume."""

from __future__ import annotations

import copy

from skerry.api.objects import Object
from skerry.controllers.workload.kinds import CLAIMS, VOLUMES
from skerry.controllers.workload.volume.observe import Observed, ObservedClaim, ObservedVolume
from skerry.logic.machinery.plan import (
    NOTHING,
    Action,
    Announcement,
    Create,
    Delete,
    Plan,
    Target,
    Update,
)
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import Selector
from skerry.logic.machinery.storage_classes import IS_DEFAULT, default_class, has_class
from skerry.logic.workloads.local_volumes import provisioned_name, provisioned_path
from skerry.logic.workloads.owners import TargetOf

PROVISIONER = "skerry.io/local-path"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_BOUND_BY = "pv.kubernetes.io/bound-by-controller"
# Who is asked for a volume; the second is where provisioners looked before 1.23.
_ASKED = "volume.kubernetes.io/storage-provisioner"
_ASKED_BETA = "volume.beta.kubernetes.io/storage-provisioner"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_CLAIM = TargetOf(CLAIMS)


def decide(observed: Observed) -> Plan:
    """Take the next step for a claim or a volume."""
    if isinstance(observed, ObservedVolume):
        return _volume(observed)
    return _claim(observed)


# Claims.


def _claim(observed: ObservedClaim) -> Plan:
    claim = observed.claim
    if "deletionTimestamp" in claim["metadata"]:
        return NOTHING
    name = claim["spec"].get("volumeName")
    if name:
        volume = next((v for v in observed.volumes if v["metadata"]["name"] == name), None)
        return _lost(claim) if volume is None else _bind(claim, volume)
    if not has_class(claim):
        default = default_class(observed.classes)
        if default is not None:
            wanted = copy.deepcopy(claim)
            wanted["spec"]["storageClassName"] = default["metadata"]["name"]
            return Plan([Update(_CLAIM(claim), wanted, reason="DefaultClass")])
    volume = best_volume(claim, observed.volumes)
    if volume is not None:
        return _bind(claim, volume)
    return _provisioned(observed)


def best_volume(claim: Object, volumes: tuple[Object, ...]) -> Object | None:
    """Return the volume reserved for the claim, else the smallest free one that fits."""
    for volume in volumes:
        if _is_for(volume, claim):
            return volume
    fitting = [v for v in volumes if not v["spec"].get("claimRef") and _fits(claim, v)]
    return min(fitting, key=lambda v: (_capacity(v).value(), v["metadata"]["name"]), default=None)


def _is_for(volume: Object, claim: Object) -> bool:
    """Tell whether a volume names this very claim; without a uid the name is enough."""
    reference, metadata = volume["spec"].get("claimRef") or {}, claim["metadata"]
    return (
        reference.get("name") == metadata["name"]
        and reference.get("namespace") == metadata["namespace"]
        and reference.get("uid") in (None, "", metadata["uid"])
    )


def _fits(claim: Object, volume: Object) -> bool:
    spec, offered = claim["spec"], volume["spec"]
    selector = spec.get("selector")
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
    return (
        "deletionTimestamp" not in volume["metadata"]
        and (volume.get("status") or {}).get("phase", "Available") in ("Available", "Pending")
        and (offered.get("storageClassName") or "") == (spec.get("storageClassName") or "")
        and set(spec.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
        and (spec.get("volumeMode") or "Filesystem") == (offered.get("volumeMode") or "Filesystem")
        and not _capacity(volume) < Quantity.parse(str(wanted))
        and (
            selector is None
            or Selector.from_label_selector(selector).matches(volume["metadata"].get("labels"))
        )
    )


def _capacity(volume: Object) -> Quantity:
    return Quantity.parse(str((volume["spec"].get("capacity") or {}).get("storage", "0")))


def _bind(claim: Object, volume: Object) -> Plan:
    """Tie both together, volume first; each write waits for the one before to be seen."""
    if volume["spec"].get("claimRef") and not _is_for(volume, claim):
        return NOTHING
    metadata = claim["metadata"]
    if (volume["spec"].get("claimRef") or {}).get("uid") != metadata["uid"]:
        wanted = copy.deepcopy(volume)
        wanted["spec"]["claimRef"] = _reference(claim)
        wanted["metadata"].setdefault("annotations", {})[_BOUND_BY] = "yes"
        return Plan([Update(TargetOf(VOLUMES)(volume), wanted, reason="Bound")])
    annotations = metadata.get("annotations") or {}
    if claim["spec"].get("volumeName") != volume["metadata"]["name"] or (
        _BIND_COMPLETED not in annotations
    ):
        wanted = copy.deepcopy(claim)
        wanted["spec"]["volumeName"] = volume["metadata"]["name"]
        wanted["metadata"].setdefault("annotations", {}).update(
            {_BIND_COMPLETED: "yes", _BOUND_BY: "yes"}
        )
        return Plan([Update(_CLAIM(claim), wanted, reason="Bound")])
    return _bound_status(claim, volume)


def _bound_status(claim: Object, volume: Object) -> Plan:
    status = {
        "phase": "Bound",
        "accessModes": volume["spec"].get("accessModes") or [],
        "capacity": volume["spec"].get("capacity") or {},
    }
    old = claim.get("status") or {}
    actions: list[Action] = []
    if any(old.get(name) != value for name, value in status.items()):
        wanted = copy.deepcopy(claim)
        wanted["status"] = {**old, **status}
        actions.append(Update(_CLAIM(claim), wanted, reason="Bound", subresource="status"))
    return Plan(actions)


def _lost(claim: Object) -> Plan:
    """Say of a claim that was bound that its volume is gone; one that was not waits for it."""
    status = claim.get("status") or {}
    was_bound = _BIND_COMPLETED in (claim["metadata"].get("annotations") or {})
    if not was_bound or status.get("phase") == "Lost":
        return NOTHING
    wanted = {**claim, "status": {**status, "phase": "Lost"}}
    text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    update = Update(_CLAIM(claim), wanted, reason="ClaimLost", subresource="status")
    return Plan([update], [Announcement(claim, "Warning", "ClaimLost", text)])


def _awaiting(claim: Object, kind: Object) -> Plan:
    """Tell the provisioner of a class, which is somebody else, that a claim waits for it."""
    provisioner = str(kind.get("provisioner"))
    annotations = claim["metadata"].get("annotations") or {}
    if provisioner == _NO_PROVISIONER or annotations.get(_ASKED) == provisioner:
        return NOTHING
    wanted = copy.deepcopy(claim)
    wanted["metadata"].setdefault("annotations", {}).update(
        {_ASKED: provisioner, _ASKED_BETA: provisioner}
    )
    text = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or "
        "manually by the system administrator. If volume creation is delayed, please verify that "
        "the provisioner is running and correctly registered."
    )
    update = Update(_CLAIM(claim), wanted, reason="ExternalProvisioning")
    return Plan([update], [Announcement(claim, "Normal", "ExternalProvisioning", text)])


def _provisioned(observed: ObservedClaim) -> Plan:
    """Make a local volume for a claim of our class, where volumes can be made."""
    claim, wanted = observed.claim, observed.claim["spec"].get("storageClassName")
    kind = next((c for c in observed.classes if c["metadata"]["name"] == wanted), None)
    if kind is None:
        return NOTHING
    if not observed.root or kind.get("provisioner") != PROVISIONER:
        return _awaiting(claim, kind)
    spec, name = claim["spec"], provisioned_name(claim)
    path = provisioned_path(observed.root, claim)
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": (spec.get("resources") or {})["requests"]["storage"]},
            "accessModes": spec.get("accessModes") or [],
            "claimRef": _reference(claim),
            "hostPath": {"path": path, "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": kind.get("reclaimPolicy", "Delete"),
            "storageClassName": wanted,
            "volumeMode": spec.get("volumeMode") or "Filesystem",
        },
    }
    text = f"Successfully provisioned volume {name}"
    announcements = [Announcement(claim, "Normal", "ProvisioningSucceeded", text)]
    return Plan([Create(Target(VOLUMES, name), volume, reason="ClaimPending")], announcements)


def _reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


# Volumes.


def _volume(observed: ObservedVolume) -> Plan:
    """Say what a volume is to be used for; delete one of ours that was released."""
    volume, claim = observed.volume, observed.claim
    reference = volume["spec"].get("claimRef")
    if not reference or not reference.get("uid"):
        return _phase(volume, "Available")
    if claim is not None and claim["metadata"]["uid"] == reference["uid"]:
        bound = claim["spec"].get("volumeName") == volume["metadata"]["name"]
        return _phase(volume, "Bound" if bound else "Available")
    annotations = volume["metadata"].get("annotations") or {}
    if (
        # It is protected for as long as it says that it is bound.
        (volume.get("status") or {}).get("phase") != "Released"
        or volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete"
        or annotations.get(PROVISIONED_BY) != PROVISIONER
        or "deletionTimestamp" in volume["metadata"]
    ):
        return _phase(volume, "Released")
    target = TargetOf(VOLUMES)(volume)
    return Plan([Delete(target, reason="ClaimGone", uid=volume["metadata"]["uid"])])


def _phase(volume: Object, phase: str) -> Plan:
    if (volume.get("status") or {}).get("phase") == phase:
        return NOTHING
    wanted = copy.deepcopy(volume)
    wanted["status"] = {**(volume.get("status") or {}), "phase": phase}
    target = TargetOf(VOLUMES)(volume)
    return Plan([Update(target, wanted, reason="PhaseChanged", subresource="status")])


def standard_class() -> Object:
    """Return the class every embedded edge has, as kind's is called."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        # Every node of an embedded edge sees the same directories.
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": False,
    }
