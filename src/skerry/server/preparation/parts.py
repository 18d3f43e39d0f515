"""Writes of one part of an object, through a subresource: which part, and what it may become.

A subresource that takes the whole object takes it for one part only; the rest of what was sent is
ignored, not refused. Each part has rules of its own: what the object's own update forbids (a
pod's node, its resources) is the very purpose of some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skerry.api.edge import is_projected
from skerry.api.errors import FieldError
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.configuration import finalizer_errors
from skerry.logic.machinery.builtin.likeness import same
from skerry.logic.machinery.builtin.pod_spec import pod_spec_errors
from skerry.logic.machinery.builtin.pods import ephemeral_container_errors, quality_of_service
from skerry.logic.machinery.builtin.rules import Errors
from skerry.logic.machinery.edges.rights import MARKS
from skerry.logic.machinery.resource import Resource

Narrow = Callable[[Object, Object], Object]
Check = Callable[[Object, Object], Errors]

_CONTAINERS = ("containers", "initContainers")
_DECISIONS = ("Approved", "Denied", "Failed")


@dataclass(frozen=True, slots=True)
class Part:
    """What a subresource writes: ``narrow(new, old)`` is the live object with that part of the
    sent one, ``check(new, old)`` what is wrong with it."""

    narrow: Narrow
    check: Check


def part_of(resource: Resource, subresource: str) -> Part | None:
    """Return what *subresource* writes; None for a write of the whole object."""
    info = resource.info
    special = _PARTS.get((info.group, info.resource, subresource))
    if special is not None:
        return special
    if subresource == "status":
        taken = () if resource.custom else _taken_with_status(info.group_resource)
        narrow = partial(_status_and, taken) if taken else status_only
        return Part(narrow, resource.validate_status)
    return None


def _everything(new: Object, _: Object) -> Object:
    return new


def _nothing_wrong(_: Object, __: Object) -> Errors:
    return []


def _with(old: Object, new: Object, **members: Any) -> Object:
    """Return *old* with other *members*, and with the field managers of *new*."""
    merged = {**old, **members, "metadata": dict(old["metadata"])}
    managed = new["metadata"].get("managedFields")
    merged["metadata"].pop("managedFields", None)
    if managed is not None:
        merged["metadata"]["managedFields"] = managed
    return merged


def status_only(new: Object, old: Object) -> Object:
    """Return *old* with the status of *new*.

    On a copy the syncer's marks belong to the status: they say why it is as it is, and an edge that
    reports both needs one write for them.
    """
    merged = _with(old, new)
    merged.pop("status", None)
    if "status" in new:
        merged["status"] = new["status"]
    if is_projected(old):
        notes = (old["metadata"].get("annotations") or {}).items()
        kept = {name: value for name, value in notes if name not in MARKS}
        sent = (new["metadata"].get("annotations") or {}).items()
        merged["metadata"]["annotations"] = kept | {k: v for k, v in sent if k in MARKS}
    return merged


# What of the metadata a write of the status of a built-in kind takes as well, as in Kubernetes.
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_OTHERWISE: Mapping[tuple[str, str], Sequence[str]] = {
    ("", "pods"): ("labels", "annotations", "finalizers"),
    ("apps", "deployments"): ("annotations", "finalizers", "ownerReferences"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): (),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): (),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): (),
    ("storage.k8s.io", "volumeattachments"): (),
}


def _taken_with_status(kind: tuple[str, str]) -> Sequence[str]:
    return _OTHERWISE.get(kind, _METADATA)


def _status_and(taken: Sequence[str], new: Object, old: Object) -> Object:
    """Return *old* with the status of *new* and the *taken* members of its metadata.

    Of a copy an edge reports the status and its marks, and nothing else.
    """
    merged = status_only(new, old)
    return merged if is_projected(old) else _with_metadata(taken, merged, new)


def _with_metadata(taken: Sequence[str], merged: Object, new: Object) -> Object:
    """Return *merged* with the *taken* members of the metadata of *new*."""
    for name in taken:
        merged["metadata"].pop(name, None)
        if name in new["metadata"]:
            merged["metadata"][name] = new["metadata"][name]
    return merged


def _spec_errors(pod: Object) -> Errors:
    return pod_spec_errors(pod["spec"], "spec", pod["metadata"]["name"], is_pod=True)


# -- pods/ephemeralcontainers ------------------------------------------------------------------


def _ephemeral_only(new: Object, old: Object) -> Object:
    spec = dict(old["spec"])
    spec.pop("ephemeralContainers", None)
    if containers := (new.get("spec") or {}).get("ephemeralContainers"):
        spec["ephemeralContainers"] = containers
    return _with(old, new, spec=spec)


# -- pods/resize -------------------------------------------------------------------------------


def _resources_only(new: Object, old: Object) -> Object:
    """Return *old* with the resources of *new*'s containers; others are no different from a
    change of the pod, which the check refuses."""
    return _with(old, new, spec=new.get("spec") or {})


def _check_resize(new: Object, old: Object) -> Errors:
    restored = {**new["spec"]}
    for group in _CONTAINERS:
        former = {c.get("name"): c for c in old["spec"].get(group) or ()}
        if new["spec"].get(group):
            restored[group] = [
                _resized_back(container, former.get(container.get("name")) or {})
                for container in new["spec"][group]
            ]
    errors = _spec_errors(new)
    if not same(restored, old["spec"]):
        errors.append(FieldError.forbidden("spec", "only cpu and memory resources are mutable"))
    quality = quality_of_service(new)
    if quality != quality_of_service(old):
        text = "Pod QOS Class may not change as a result of resizing"
        errors.append(FieldError.invalid("spec", quality, text))
    return errors


def _resized_back(container: Object, former: Object) -> Object:
    """Return *container* with the CPU and memory it had before."""
    resources = dict(container.get("resources") or {})
    before = former.get("resources") or {}
    for kind in ("requests", "limits"):
        amounts = {k: v for k, v in (resources.get(kind) or {}).items() if k not in _COMPUTE}
        amounts |= {k: v for k, v in (before.get(kind) or {}).items() if k in _COMPUTE}
        resources[kind] = amounts
    return {**container, "resources": resources, "resizePolicy": former.get("resizePolicy")}


_COMPUTE = frozenset({"cpu", "memory"})


# -- certificatesigningrequests ----------------------------------------------------------------


def _approval_only(new: Object, old: Object) -> Object:
    """Return *old* with the conditions of *new*; the certificate is the signer's to set."""
    status = dict(old.get("status") or {})
    status.pop("conditions", None)
    if conditions := (new.get("status") or {}).get("conditions"):
        status["conditions"] = conditions
    return _with_metadata(_METADATA, _with(old, new, status=status), new)


def _signing_only(new: Object, old: Object) -> Object:
    """Return *old* with the status of *new*, but the decisions as they were."""
    status = dict(new.get("status") or {})
    decided = [c for c in _conditions(old) if c.get("type") in ("Approved", "Denied")]
    others = [c for c in _conditions(new) if c.get("type") not in ("Approved", "Denied")]
    status.pop("conditions", None)
    if decided or others:
        status["conditions"] = [*decided, *others]
    return _with_metadata(_METADATA, _with(old, new, status=status), new)


def _conditions(request: Object) -> list[Object]:
    return (request.get("status") or {}).get("conditions") or []


def _check_approval(new: Object, old: Object) -> Errors:
    errors = _condition_errors(new)
    field = "status.conditions"
    for kind in ("Approved", "Denied"):
        before = [c for c in _conditions(old) if c.get("type") == kind]
        now = [c for c in _conditions(new) if c.get("type") == kind]
        if before and not now:
            errors.append(
                FieldError.forbidden(field, f'updates may not remove a condition of type "{kind}"')
            )
        elif before and before != now:
            text = f'updates may not modify a condition of type "{kind}"'
            errors.append(FieldError.forbidden(field, text))
    return errors


def _condition_errors(new: Object) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, condition in enumerate(_conditions(new)):
        field, kind = f"status.conditions[{index}]", condition.get("type") or ""
        if not kind:
            errors.append(FieldError.required(f"{field}.type"))
        elif kind in seen:
            errors.append(FieldError.duplicate(f"{field}.type", kind))
        seen.add(kind)
        status = condition.get("status")
        if not status:
            errors.append(FieldError.required(f"{field}.status"))
        elif kind in _DECISIONS and status != "True":
            errors.append(FieldError.not_supported(f"{field}.status", status, ["True"]))
        elif status not in ("True", "False", "Unknown"):
            errors.append(
                FieldError.not_supported(f"{field}.status", status, ["True", "False", "Unknown"])
            )
    if {"Approved", "Denied"} <= seen:
        text = "Approved and Denied conditions are mutually exclusive"
        errors.append(FieldError.invalid("status.conditions", "Denied", text))
    return errors


def _check_signing(new: Object, old: Object) -> Errors:
    before = (old.get("status") or {}).get("certificate")
    now = (new.get("status") or {}).get("certificate")
    errors = _condition_errors(new)
    if before and before != now:
        text = "updates may not change the certificate once it was issued"
        errors.append(FieldError.forbidden("status.certificate", text))
    return errors


_CERTIFICATES = "certificates.k8s.io"
_PARTS: Mapping[tuple[str, str, str], Part] = {
    # Their handlers make the change themselves, and refuse what must be refused.
    ("", "pods", "binding"): Part(_everything, _nothing_wrong),
    ("", "namespaces", "finalize"): Part(_everything, lambda new, _: finalizer_errors(new)),
    ("", "pods", "ephemeralcontainers"): Part(_ephemeral_only, ephemeral_container_errors),
    ("", "pods", "resize"): Part(_resources_only, _check_resize),
    (_CERTIFICATES, "certificatesigningrequests", "approval"): Part(
        _approval_only, _check_approval
    ),
    (_CERTIFICATES, "certificatesigningrequests", "status"): Part(_signing_only, _check_signing),
}
