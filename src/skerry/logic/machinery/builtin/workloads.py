"""Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.kit.text import whole_number
from skerry.logic.machinery.builtin.likeness import same
from skerry.logic.machinery.builtin.metadata import annotation_errors
from skerry.logic.machinery.builtin.pod_defaults import default_claim_spec, default_template
from skerry.logic.machinery.builtin.pod_spec import pod_annotation_errors, template_errors
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    fresh_status,
    immutable,
    member,
    non_negative,
    number_at,
    unsupported,
)
from skerry.logic.machinery.builtin.workload_parts import (
    MISMATCH,
    above_hundred_errors,
    availability_errors,
    collision_errors,
    count_errors,
    kept_running_errors,
    named_workload_warnings,
    selector_change_errors,
    selector_errors,
    selects,
    set_template_errors,
    share,
    share_errors,
    status_errors,
    template_match_errors,
    workload_warnings,
)
from skerry.logic.machinery.names import dns1123_label
from skerry.logic.machinery.resource import Scale
from skerry.logic.machinery.selectors import label_errors, label_selector_errors

_ROLLING = "RollingUpdate"
_REVISIONS = 10
_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"


# Deployments.


def _default_deployment(deployment: Object) -> None:
    spec = child(deployment, "spec")
    absent(spec, "replicas", 1)
    strategy = child(spec, "strategy")
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
    if strategy["type"] == _ROLLING:
        rolling = child(strategy, "rollingUpdate")
        absent(rolling, "maxUnavailable", "25%")
        absent(rolling, "maxSurge", "25%")
    absent(spec, "revisionHistoryLimit", _REVISIONS)
    absent(spec, "progressDeadlineSeconds", 600)
    default_template(spec)


def _validate_deployment(deployment: Object) -> Errors:
    spec = deployment.get("spec") or {}
    errors = count_errors(
        spec, ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    )
    errors += selector_errors(spec, "deployment")
    errors += set_template_errors(spec, "ReplicaSet")
    errors += _strategy_errors(spec.get("strategy") or {})
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        text = "must be greater than minReadySeconds"
        errors.append(FieldError.invalid("spec.progressDeadlineSeconds", deadline, text))
    return errors


def _strategy_errors(strategy: Object) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    path = "spec.strategy"
    if kind == "Recreate":
        if rolling is None:
            return []
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [FieldError.forbidden(f"{path}.rollingUpdate", text)]
    if kind != _ROLLING:
        return [unsupported(path, strategy, ("Recreate", _ROLLING))]
    if rolling is None:
        text = "this should be defaulted and never be nil"
        return [FieldError.required(f"{path}.rollingUpdate", text)]
    return _rolling_errors(rolling, f"{path}.rollingUpdate")


def _rolling_errors(rolling: Object, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = share_errors(unavailable, f"{path}.maxUnavailable")
    errors += share_errors(surge, f"{path}.maxSurge")
    if share(unavailable) == 0 and share(surge) == 0:
        text = "may not be 0 when `maxSurge` is 0"
        errors.append(FieldError.invalid(f"{path}.maxUnavailable", unavailable, text))
    return errors + above_hundred_errors(unavailable, f"{path}.maxUnavailable")


def _validate_deployment_status(new: Object, old: Object) -> Errors:
    errors = status_errors(
        new, ("updatedReplicas", "readyReplicas", "availableReplicas"), ("unavailableReplicas",)
    )
    return errors + availability_errors(new) + collision_errors(new, old)


# ReplicaSets and their elder sibling.


def _default_replica_set(replica_set: Object) -> None:
    spec = child(replica_set, "spec")
    absent(spec, "replicas", 1)
    default_template(spec)


def _validate_replica_set(replica_set: Object) -> Errors:
    spec = replica_set.get("spec") or {}
    errors = count_errors(spec, ("replicas", "minReadySeconds"))
    # Kubernetes says "deployment" here too.
    errors += selector_errors(spec, "deployment")
    return errors + set_template_errors(spec, "ReplicaSet")


def _validate_replica_set_status(new: Object, _: Object) -> Errors:
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    return status_errors(new, parts) + availability_errors(new)


def _default_controller(controller: Object) -> None:
    spec = child(controller, "spec")
    labels = member(spec, "template", "metadata", "labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = child(controller, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    absent(spec, "replicas", 1)
    if spec.get("template") is not None:
        default_template(spec)


def _validate_controller(controller: Object) -> Errors:
    spec = controller.get("spec") or {}
    errors = count_errors(spec, ("minReadySeconds", "replicas"))
    selector = spec.get("selector") or {}
    if not selector:
        errors.append(FieldError.required("spec.selector"))
    if not spec.get("template"):
        return [*errors, FieldError.required("spec.template")]
    labels = member(spec, "template", "metadata", "labels") or {}
    if not selects({"matchLabels": selector}, labels):
        errors.append(FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH))
    errors += template_errors(spec.get("template") or {}, "spec.template")
    return errors + kept_running_errors(spec, "ReplicationController")


# StatefulSets.


def _default_stateful_set(stateful_set: Object) -> None:
    spec = child(stateful_set, "spec")
    absent(spec, "serviceName", "")
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = child(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
        child(strategy, "rollingUpdate")
    if strategy["type"] == _ROLLING and strategy.get("rollingUpdate") is not None:
        absent(strategy["rollingUpdate"], "partition", 0)
    retention = child(spec, "persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        if not retention.get(field):
            retention[field] = "Retain"
    absent(spec, "replicas", 1)
    absent(spec, "revisionHistoryLimit", _REVISIONS)
    default_template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        default_claim_spec(child(claim, "spec"))
        absent(child(claim, "status"), "phase", "Pending")


def _validate_stateful_set(stateful_set: Object) -> Errors:
    """Judge a StatefulSet; its template's pod spec is judged when its pods are created."""
    spec = stateful_set.get("spec") or {}
    errors: Errors = []
    management = spec.get("podManagementPolicy") or ""
    if management not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        errors.append(FieldError.invalid("spec.podManagementPolicy", management, text))
    errors += _stateful_strategy_errors(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        if retention.get(field) not in (None, "Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(unsupported(where, retention[field], ("Retain", "Delete")))
    errors += count_errors(spec, ("replicas", "minReadySeconds"))
    start = member(spec, "ordinals", "start")
    errors += non_negative(start, "spec.ordinals.start")
    errors += selector_errors(spec, "statefulset")
    if not label_selector_errors(spec.get("selector") or {}):
        errors += template_match_errors(spec)
        errors += _stateful_template_errors(spec.get("template") or {})
    return errors + kept_running_errors(spec, "StatefulSet")


def _stateful_template_errors(template: Object) -> Errors:
    metadata = template.get("metadata") or {}
    errors = label_errors(metadata.get("labels"), "spec.template.labels")
    annotations = metadata.get("annotations")
    if annotations:
        where = "spec.template.annotations"
        errors += annotation_errors(annotations, where)
        errors += pod_annotation_errors(annotations, template.get("spec") or {}, where)
    return errors


def _stateful_strategy_errors(strategy: Object) -> Errors:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    path = "spec.updateStrategy"
    if not kind:
        return [FieldError.required(path)]
    if kind == "OnDelete":
        if rolling is None:
            return []
        text = "only allowed for updateStrategy 'RollingUpdate'"
        return [FieldError.invalid(f"{path}.rollingUpdate", rolling, text)]
    if kind != _ROLLING:
        text = "must be 'RollingUpdate' or 'OnDelete'"
        return [FieldError.invalid(path, strategy, text)]
    return _stateful_rolling_errors(rolling or {}, f"{path}.rollingUpdate")


def _stateful_rolling_errors(rolling: Object, path: str) -> Errors:
    errors = non_negative(rolling.get("partition"), f"{path}.partition")
    unavailable = rolling.get("maxUnavailable")
    if unavailable is None:
        return errors
    where = f"{path}.maxUnavailable"
    errors += share_errors(unavailable, where)
    if share(unavailable) == 0:
        errors.append(FieldError.invalid(where, unavailable, "cannot be 0"))
    return errors + above_hundred_errors(unavailable, where)


_STATEFUL_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _validate_stateful_set_update(new: Object, old: Object) -> Errors:
    errors = _validate_stateful_set(new)
    spec, former = _fixed(new, _STATEFUL_CHANGEABLE), _fixed(old, _STATEFUL_CHANGEABLE)
    if not same(spec, former):
        text = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
            "'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden"
        )
        errors.append(FieldError.forbidden("spec", text))
    return errors


def _fixed(obj: Object, changeable: Sequence[str]) -> Object:
    return {k: v for k, v in (obj.get("spec") or {}).items() if k not in changeable}


def _validate_stateful_set_status(new: Object, old: Object) -> Errors:
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    errors = status_errors(new, parts)
    errors += availability_errors(new, "cannot be greater than status.readyReplicas")
    return errors + collision_errors(new, old)


# DaemonSets.


def _default_daemon_set(daemon_set: Object) -> None:
    spec = child(daemon_set, "spec")
    strategy = child(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = _ROLLING
    if strategy["type"] == _ROLLING:
        rolling = child(strategy, "rollingUpdate")
        absent(rolling, "maxUnavailable", 1)
        absent(rolling, "maxSurge", 0)
    absent(spec, "revisionHistoryLimit", _REVISIONS)
    default_template(spec)


def _prepare_daemon_set(daemon_set: Object) -> None:
    numbers = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled")
    daemon_set["status"] = dict.fromkeys((*numbers, "numberReady"), 0)
    _set_template_generation(daemon_set, 1)


def _prepare_daemon_set_update(new: Object, old: Object) -> None:
    """Count the changes of the template where old clients look for the count."""
    annotation = (member(old, "metadata", "annotations") or {}).get(_GENERATION_ANNOTATION, "1")
    generation = whole_number(annotation) or 1
    if not same(member(new, "spec", "template"), member(old, "spec", "template")):
        generation += 1
    _set_template_generation(new, generation)


def _set_template_generation(daemon_set: Object, generation: int) -> None:
    annotations = child(child(daemon_set, "metadata"), "annotations")
    annotations[_GENERATION_ANNOTATION] = str(generation)


def _validate_daemon_set(daemon_set: Object) -> Errors:
    spec = daemon_set.get("spec") or {}
    selector = spec.get("selector")
    errors = label_selector_errors(selector, "spec.selector")
    labels = member(spec, "template", "metadata", "labels") or {}
    if selector is None:
        errors.append(FieldError.invalid("spec.template.metadata.labels", labels, MISMATCH))
    else:
        errors = selector_errors(spec, "daemonset") + template_match_errors(spec)
    errors += template_errors(spec.get("template") or {}, "spec.template")
    errors += kept_running_errors(spec, "DaemonSet")
    errors += count_errors(spec, ("minReadySeconds", "revisionHistoryLimit"))
    return errors + _daemon_strategy_errors(spec.get("updateStrategy") or {})


def _daemon_strategy_errors(strategy: Object) -> Errors:
    path = "spec.updateStrategy"
    if strategy.get("type") == "OnDelete":
        return []
    if strategy.get("type") != _ROLLING:
        return [unsupported(path, strategy, (_ROLLING, "OnDelete"))]
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        return [FieldError.required(f"{path}.rollingUpdate")]
    return _daemon_rolling_errors(rolling, f"{path}.rollingUpdate")


def _daemon_rolling_errors(rolling: Object, path: str) -> Errors:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors: Errors = []
    for check in (share_errors, above_hundred_errors):
        errors += check(unavailable, f"{path}.maxUnavailable")
        errors += check(surge, f"{path}.maxSurge")
    if share(unavailable) and share(surge):
        text = "may not be set when maxUnavailable is non-zero"
        errors.append(FieldError.invalid(f"{path}.maxSurge", surge, text))
    elif not share(unavailable) and not share(surge):
        text = "cannot be 0 when maxSurge is 0"
        errors.append(FieldError.required(f"{path}.maxUnavailable", text))
    return errors


def _validate_daemon_set_status(new: Object, old: Object) -> Errors:
    numbers = (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
        "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
        "collisionCount",
    )  # fmt: skip
    return count_errors(new.get("status") or {}, numbers, "status") + collision_errors(new, old)


# Control over revisions, and warnings.


def _validate_revision(revision: Object) -> Errors:
    errors = non_negative(revision.get("revision"), "revision")
    data: Any = revision.get("data")
    if data is None:
        errors.append(FieldError.required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(FieldError.required("data", "data must be a valid JSON object"))
    return errors


def _validate_revision_update(new: Object, old: Object) -> Errors:
    errors = non_negative(new.get("revision"), "revision")
    return errors + immutable(new.get("data"), old.get("data"), "data")


_SCALE = Scale("spec.replicas", "status.replicas", "spec.selector")
_REPLICAS = {"status.replicas": number_at("status", "replicas")}


def _zero_status(*names: str) -> Callable[[Object], None]:
    """Return what gives a new object the numbers of its status that Go writes even if zero."""

    def prepare(obj: Object) -> None:
        obj["status"] = dict.fromkeys(names, 0)

    return prepare


RULES: RuleTable = {
    GroupResource("apps", "deployments"): Rules(
        default=_default_deployment,
        prepare_create=fresh_status,
        validate_create=_validate_deployment,
        validate_update=lambda new, old: (
            _validate_deployment(new) + selector_change_errors(new, old)
        ),
        validate_status=_validate_deployment_status,
        warnings=named_workload_warnings,
        scale=_SCALE,
    ),
    GroupResource("apps", "replicasets"): Rules(
        default=_default_replica_set,
        prepare_create=_zero_status("replicas"),
        validate_create=_validate_replica_set,
        validate_update=lambda new, old: (
            _validate_replica_set(new) + selector_change_errors(new, old)
        ),
        validate_status=_validate_replica_set_status,
        warnings=named_workload_warnings,
        selectable_fields=_REPLICAS,
        scale=_SCALE,
    ),
    GroupResource("", "replicationcontrollers"): Rules(
        default=_default_controller,
        prepare_create=_zero_status("replicas"),
        validate_create=_validate_controller,
        validate_update=lambda new, _: _validate_controller(new),
        validate_status=_validate_replica_set_status,
        warnings=named_workload_warnings,
        selectable_fields=_REPLICAS,
        scale=_SCALE,
    ),
    GroupResource("apps", "statefulsets"): Rules(
        default=_default_stateful_set,
        prepare_create=_zero_status("replicas", "availableReplicas"),
        validate_create=_validate_stateful_set,
        validate_update=_validate_stateful_set_update,
        validate_status=_validate_stateful_set_status,
        warnings=workload_warnings,
        check_name=dns1123_label,
        scale=_SCALE,
    ),
    GroupResource("apps", "daemonsets"): Rules(
        default=_default_daemon_set,
        prepare_create=_prepare_daemon_set,
        prepare_update=_prepare_daemon_set_update,
        validate_create=_validate_daemon_set,
        validate_update=lambda new, old: (
            _validate_daemon_set(new) + selector_change_errors(new, old)
        ),
        validate_status=_validate_daemon_set_status,
        warnings=workload_warnings,
    ),
    GroupResource("apps", "controllerrevisions"): Rules(
        default=lambda revision: absent(revision, "revision", 0),
        validate_create=_validate_revision,
        validate_update=_validate_revision_update,
        counts_generation=False,
    ),
}
