"""Pods: what may be created, what may change afterwards, and how long a delete waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import parsed
from skerry.logic.machinery.builtin.known_specs import KnownSpecs, essence_of
from skerry.logic.machinery.builtin.likeness import difference_text, same
from skerry.logic.machinery.builtin.paths import address
from skerry.logic.machinery.builtin.pod_defaults import default_pod, default_template
from skerry.logic.machinery.builtin.pod_scheduling import toleration_errors
from skerry.logic.machinery.builtin.pod_spec import (
    image_space_errors,
    pod_annotation_errors,
    pod_spec_errors,
    template_errors,
)
from skerry.logic.machinery.builtin.pod_warnings import pod_warnings, template_warnings
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    each,
    immutable,
    member,
    text_at,
    truth_at,
)
from skerry.logic.machinery.names import dns1123_subdomain, out_of_range, qualified_name
from skerry.logic.machinery.quantity import QuantityError
from skerry.logic.machinery.schema.lists import identity

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_COMPUTE = ("cpu", "memory")
_MIRROR = "kubernetes.io/config.mirror"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_MAX_DEADLINE = 2**31 - 1


def quality_of_service(pod: Object) -> str:
    """Return the class by which the kubelet chooses whom to evict first."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = _compute(resources.get("requests")), _compute(resources.get("limits"))
        asked = asked or bool(requests or limits)
        guaranteed = guaranteed and len(limits) == len(_COMPUTE) and requests in ({}, limits)
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _compute(amounts: Object | None) -> dict[str, int]:
    """Return the amounts of CPU and memory above zero, in billionths."""
    found = {}
    for name in _COMPUTE:
        value = (amounts or {}).get(name)
        if value is not None:
            try:
                nanos = parsed(value).nanos
            except QuantityError:
                continue
            if nanos > 0:
                found[name] = nanos
    return found


def _prepare_create(pod: Object) -> None:
    pod["status"] = {"phase": "Pending", "qosClass": quality_of_service(pod)}
    spec = pod.get("spec") or {}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": None,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def _pod_errors(pod: Object) -> Errors:
    """Return what is wrong with a pod however it came about."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = metadata.get("annotations")
    errors: Errors = []
    if annotations:
        errors += pod_annotation_errors(annotations, spec, "metadata.annotations")
    essence = essence_of(pod)
    if _VALID.has(essence):
        return errors
    wrong = _spec_errors(spec, metadata.get("name") or "")
    if not wrong:
        _VALID.add(essence)
    return errors + wrong


_VALID: Final = KnownSpecs()


def _spec_errors(spec: Object, pod_name: str) -> Errors:
    errors = pod_spec_errors(spec, "spec", pod_name, is_pod=True)
    if not spec.get("serviceAccountName"):
        errors += _token_errors(spec.get("volumes") or ())
    for group in ("containers", "initContainers"):
        errors += image_space_errors(spec.get(group) or (), f"spec.{group}")
    return errors


def _token_errors(volumes: Sequence[Object]) -> Errors:
    errors: Errors = []
    for index, volume in enumerate(volumes):
        for position, source in enumerate(member(volume, "projected", "sources") or ()):
            if source.get("serviceAccountToken") is not None:
                field = f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken"
                text = "must not be specified when serviceAccountName is not set"
                errors.append(FieldError.forbidden(field, text))
    return errors


def _validate_create(pod: Object) -> Errors:
    errors = _pod_errors(pod)
    spec = pod.get("spec") or {}
    if spec.get("ephemeralContainers"):
        text = "cannot be set on create"
        errors.append(FieldError.forbidden("spec.ephemeralContainers", text))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        errors.append(FieldError.forbidden("spec.nodeName", text))
    return errors


def _validate_update(new: Object, old: Object) -> Errors:
    errors = _pod_errors(new) + _annotation_change_errors(new, old)
    spec, former = new.get("spec") or {}, old.get("spec") or {}
    for group in ("containers", "initContainers"):
        if len(spec.get(group) or ()) != len(former.get(group) or ()):
            text = "pod updates may not add or remove containers"
            return [*errors, FieldError.forbidden(f"spec.{group}", text)]
    errors += _deadline_errors(
        spec.get("activeDeadlineSeconds"), former.get("activeDeadlineSeconds")
    )
    errors += _toleration_change_errors(
        spec.get("tolerations") or [], former.get("tolerations") or []
    )
    errors += _gate_change_errors(
        spec.get("schedulingGates") or (), former.get("schedulingGates") or ()
    )
    if spec != former:
        errors += _other_change_errors(spec, former)
    return errors


def _annotation_change_errors(new: Object, old: Object) -> Errors:
    annotations = member(new, "metadata", "annotations") or {}
    former = member(old, "metadata", "annotations") or {}
    if annotations == former:
        return []
    errors: Errors = []
    for key in former:
        if annotations.get(key) != former[key]:
            errors += _guarded(key, "may not remove or update")
    for key in annotations:
        if key not in former:
            errors += _guarded(key, "may not add")
    return errors


def _guarded(key: str, verb: str) -> Errors:
    field = f"metadata.annotations[{key}]"
    if key.startswith(_APP_ARMOR):
        return [FieldError.forbidden(field, f"{verb} AppArmor annotations")]
    if key == _MIRROR:
        return [FieldError.forbidden(field, f"{verb} mirror pod annotation")]
    return []


def _deadline_errors(new: int | None, old: int | None) -> Errors:
    """Let a deadline be set once and shortened, never removed or prolonged."""
    field = "spec.activeDeadlineSeconds"
    if new is None:
        text = "must not update from a positive integer to nil value"
        return [] if old is None else [FieldError.invalid(field, None, text)]
    if not 0 <= new <= _MAX_DEADLINE:
        return [FieldError.invalid(field, new, out_of_range(0, _MAX_DEADLINE))]
    if old is not None and old < new:
        return [FieldError.invalid(field, new, "must be less than or equal to previous value")]
    return []


def _toleration_change_errors(new: list[Object], old: list[Object]) -> Errors:
    kept = {identity(_untimed(toleration)) for toleration in new}
    if any(identity(_untimed(toleration)) not in kept for toleration in old):
        text = "existing toleration can not be modified except its tolerationSeconds"
        return [FieldError.forbidden("spec.tolerations", text)]
    return toleration_errors(new, "spec.tolerations") if new != old else []


def _untimed(toleration: Object) -> Object:
    return {k: v for k, v in toleration.items() if k != "tolerationSeconds" and v}


def _gate_change_errors(new: Sequence[Object], old: Sequence[Object]) -> Errors:
    known = {gate.get("name") for gate in old}
    return [
        FieldError.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new)
        if gate.get("name") not in known
    ]


def _other_change_errors(spec: Object, former: Object) -> Errors:
    """Refuse every change but the few allowed ones, which are put back before comparing."""
    errors: Errors = []
    compared: Object = {**spec}
    for group in ("containers", "initContainers"):
        if spec.get(group):
            pairs = zip(spec[group], former[group], strict=True)
            compared[group] = [{**new, "image": old.get("image")} for new, old in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        compared[field] = former.get(field)
    grace = former.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        compared["terminationGracePeriodSeconds"] = grace
    if former.get("schedulingGates"):
        errors += _gated_change_errors(compared, former)
    if not same(compared, former):
        difference = difference_text(former, compared, "spec")
        text = f"pod updates may not change fields other than {_UPDATABLE}\n{difference}"
        errors.append(FieldError.forbidden("spec", text))
    return errors


def _gated_change_errors(compared: Object, former: Object) -> Errors:
    """Let a pod that is not yet offered to the scheduler become pickier about nodes."""
    errors: Errors = []
    selector, before = compared.get("nodeSelector") or {}, former.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(FieldError.invalid("spec.nodeSelector", selector, text))
    compared["nodeSelector"] = former.get("nodeSelector")
    old_affinity = member(former, "affinity", "nodeAffinity")
    if not old_affinity:
        affinity = {
            k: v for k, v in (compared.get("affinity") or {}).items() if k != "nodeAffinity"
        }
        compared["affinity"] = affinity or former.get("affinity")
    return errors


def _validate_status(new: Object, old: Object) -> Errors:
    errors = _annotation_change_errors(new, old)
    status, former = new.get("status") or {}, old.get("status") or {}
    for index, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type") or ""
        errors += each(f"metadata.conditions[{index}].Type", kind, _condition_wrong(kind))
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != former.get("nominatedNodeName"):
        errors += each("status.nominatedNodeName", nominated, dns1123_subdomain(nominated))
    if former.get("qosClass") and status.get("qosClass"):
        errors += immutable(status["qosClass"], former["qosClass"], "status.qosClass")
    policy = member(old, "spec", "restartPolicy") or ""
    errors += _transition_errors(status, former, "containerStatuses", policy)
    errors += _transition_errors(status, former, "ephemeralContainerStatuses", "Never")
    return errors + _address_errors(status, "podIPs") + _address_errors(status, "hostIPs")


# Conditions Kubernetes itself writes need no qualified name.
_CONDITIONS = frozenset(
    ("PodScheduled", "Ready", "Initialized", "ContainersReady", "DisruptionTarget",
     "PodReadyToStartContainers")
)  # fmt: skip


def _condition_wrong(kind: str) -> list[str]:
    return [] if kind in _CONDITIONS else qualified_name(kind)


def _transition_errors(new: Object, old: Object, field: str, policy: str) -> Errors:
    """Refuse to bring back a container that ended and is not to be restarted."""
    if policy == "Always":
        return []
    errors: Errors = []
    states = {status.get("name"): status.get("state") or {} for status in new.get(field) or ()}
    for index, status in enumerate(old.get(field) or ()):
        ended = member(status, "state", "terminated")
        if ended is None or (ended.get("exitCode") and policy == "OnFailure"):
            continue
        now: Any = states.get(status.get("name"))
        if now is not None and now.get("terminated") is None:
            text = "may not be transitioned to non-terminated state"
            errors.append(FieldError.forbidden(f"status.{field}[{index}].state", text))
    return errors


def _address_errors(status: Object, field: str) -> Errors:
    """Refuse what is no address, a repeated one, and more than one of a family."""
    errors: Errors = []
    taken: set[str] = set()
    for index, item in enumerate(status.get(field) or ()):
        text = item.get("ip") or ""
        where = f"status.{field}[{index}]"
        if address(text) is None:
            wanted = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            errors.append(FieldError.invalid(where, text, wanted))
        if text in taken:
            errors.append(FieldError.duplicate(where, item))
        taken.add(text)
    families = {address(text).__class__ for text in taken}
    if len(taken) > 1 and len(families) != len(taken):
        wanted = "may specify no more than one IP for each IP family"
        errors.append(FieldError.invalid(f"status.{field}", status[field], wanted))
    return errors


def ephemeral_container_errors(new: Object, old: Object) -> Errors:
    """Return what is wrong with a write to ``pods/ephemeralcontainers``: they only come."""
    if _MIRROR in (member(old, "metadata", "annotations") or {}):
        return [FieldError.forbidden("", "static pods do not support ephemeral containers")]
    errors = _pod_errors(new) + _annotation_change_errors(new, old)
    path = "spec.ephemeralContainers"
    present = {c.get("name"): c for c in member(new, "spec", "ephemeralContainers") or ()}
    for container in member(old, "spec", "ephemeralContainers") or ():
        name = container.get("name")
        if name not in present:
            text = f'existing ephemeral containers "{name}" may not be removed\n'
            errors.append(FieldError.forbidden(path, text))
        elif not same(present[name], container):
            difference = difference_text(container, present[name], path)
            text = f'existing ephemeral containers "{name}" may not be changed\n{difference}'
            errors.append(FieldError.forbidden(path, text))
    return errors


def grace_seconds(pod: Object) -> int | None:
    """Return how long a delete waits; a pod no kubelet runs goes at once."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or member(pod, "status", "phase") in ("Failed", "Succeeded"):
        return 0
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        return 0
    return 1 if grace < 0 else int(grace)


def _first_address(pod: Object) -> str:
    addresses = member(pod, "status", "podIPs")
    if addresses:
        return str(addresses[0].get("ip") or "")
    return str(member(pod, "status", "podIP") or "")


RULES: RuleTable = {
    GroupResource("", "pods"): Rules(
        default=default_pod,
        prepare_create=_prepare_create,
        validate_create=_validate_create,
        validate_update=_validate_update,
        validate_status=_validate_status,
        warnings=pod_warnings,
        counts_generation=False,
        grace_seconds=grace_seconds,
        selectable_fields={
            "spec.nodeName": text_at("spec", "nodeName"),
            "spec.restartPolicy": text_at("spec", "restartPolicy"),
            "spec.schedulerName": text_at("spec", "schedulerName"),
            "spec.serviceAccountName": text_at("spec", "serviceAccountName"),
            "spec.hostNetwork": truth_at("spec", "hostNetwork"),
            "status.phase": text_at("status", "phase"),
            "status.podIP": _first_address,
            "status.nominatedNodeName": text_at("status", "nominatedNodeName"),
        },
    ),
    GroupResource("", "podtemplates"): Rules(
        default=default_template,
        validate_create=lambda obj: template_errors(obj.get("template") or {}, "template"),
        validate_update=lambda new, _: template_errors(new.get("template") or {}, "template"),
        warnings=lambda obj: template_warnings(obj.get("template") or {}, "template"),
    ),
}
