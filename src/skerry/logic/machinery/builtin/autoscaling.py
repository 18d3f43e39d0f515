"""HorizontalPodAutoscalers: defaults and rules, written for ``v2`` and applied to both versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skerry.api.errors import FieldError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.builtin.amounts import (
    canonical,
    container_resource_errors,
    positive_errors,
)
from skerry.logic.machinery.builtin.hpa_versions import CPU_UTILIZATION, convert, cpu_metric
from skerry.logic.machinery.builtin.paths import NOT_POSITIVE
from skerry.logic.machinery.builtin.rules import (
    Errors,
    Rules,
    RuleTable,
    absent,
    child,
    each,
    unsupported,
)
from skerry.logic.machinery.builtin.workload_parts import count_errors
from skerry.logic.machinery.names import dns1123_label, path_segment
from skerry.logic.machinery.selectors import label_selector_errors

_MAX_WINDOW_SECONDS = 3600
_MAX_PERIOD_SECONDS = 1800
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGET_TYPES = ("AverageValue", "Utilization", "Value")
_FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _begin(autoscaler: Object) -> None:
    """Nothing has been scaled yet, which the status says in a number."""
    autoscaler["status"] = {"desiredReplicas": 0}


def _begin_v1(autoscaler: Object) -> None:
    autoscaler["status"] = {"currentReplicas": 0, "desiredReplicas": 0}


def _default_v1(autoscaler: Object) -> None:
    absent(child(autoscaler, "spec"), "minReplicas", 1)


def _default_v2(autoscaler: Object) -> None:
    spec = child(autoscaler, "spec")
    absent(spec, "minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_UTILIZATION)]
    for metric in spec["metrics"]:
        for field in _FIELDS.values():
            target = (metric.get(field) or {}).get("target") or {}
            canonical(target, "value")
            canonical(target, "averageValue")
    behavior = spec.get("behavior")
    if behavior is not None:
        _default_scaling(child(behavior, "scaleUp"), _SCALE_UP)
        _default_scaling(child(behavior, "scaleDown"), _SCALE_DOWN)


# By default growth doubles or adds four pods each quarter of a minute, whichever is more; how
# long to hesitate before shrinking is the controller's setting.
_SCALE_UP: Object = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Object = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def _default_scaling(rules: Object, defaults: Object) -> None:
    for name, value in defaults.items():
        if rules.get(name) is None:
            rules[name] = [dict(item) for item in value] if isinstance(value, list) else value


def _errors(autoscaler: Object, min_replicas: int = 1) -> Errors:
    spec = convert(autoscaler, "v2").get("spec") or {}
    minimum, maximum = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    errors: Errors = []
    if minimum is not None and minimum < min_replicas:
        text = f"must be greater than or equal to {min_replicas}"
        errors.append(FieldError.invalid("spec.minReplicas", minimum, text))
    if maximum < 1:
        errors.append(FieldError.invalid("spec.maxReplicas", maximum, "must be greater than 0"))
    if minimum is not None and maximum < minimum:
        text = "must be greater than or equal to `minReplicas`"
        errors.append(FieldError.invalid("spec.maxReplicas", maximum, text))
    errors += _reference_errors(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        errors += _metric_errors(metric, f"spec.metrics[{index}]")
    if minimum == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        text = (
            "must specify at least one Object or External metric to support scaling to zero "
            "replicas"
        )
        errors.append(FieldError.forbidden("spec.metrics", text))
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction) is not None:
            errors += _scaling_errors(behavior[direction], f"spec.behavior.{direction}")
    return errors


def _update_errors(new: Object, old: Object) -> Errors:
    """Let an autoscaler that already scales to zero keep doing so."""
    former = (old.get("spec") or {}).get("minReplicas")
    return _errors(new, 0 if former == 0 else 1)


def _status_errors(new: Object, _: Object) -> Errors:
    return count_errors(new.get("status") or {}, ("currentReplicas", "desiredReplicas"), "status")


def _reference_errors(reference: Object, path: str) -> Errors:
    errors: Errors = []
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            errors.append(FieldError.required(f"{path}.{field}"))
        else:
            errors += each(f"{path}.{field}", value, path_segment(value))
    return errors


def _scaling_errors(rules: Object, path: str) -> Errors:
    errors: Errors = []
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    where = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        text = "must be greater than or equal to zero"
        errors.append(FieldError.invalid(where, window, text))
    if window is not None and window > _MAX_WINDOW_SECONDS:
        text = f"must be less than or equal to {_MAX_WINDOW_SECONDS}"
        errors.append(FieldError.invalid(where, window, text))
    if select is not None and select not in _SELECT_POLICIES:
        errors.append(unsupported(f"{path}.selectPolicy", select, _SELECT_POLICIES))
    return errors + _policy_errors(rules.get("policies") or (), f"{path}.policies")


def _policy_errors(policies: Sequence[Object], path: str) -> Errors:
    if not policies:
        return [FieldError.required(path, "must specify at least one Policy")]
    errors: Errors = []
    for index, policy in enumerate(policies):
        where, kind = f"{path}[{index}]", policy.get("type") or ""
        if kind not in _POLICY_TYPES:
            errors.append(unsupported(f"{where}.type", kind, _POLICY_TYPES))
        for field in ("value", "periodSeconds"):
            number = policy.get(field) or 0
            if number <= 0:
                errors.append(FieldError.invalid(f"{where}.{field}", number, NOT_POSITIVE))
        if (policy.get("periodSeconds") or 0) > _MAX_PERIOD_SECONDS:
            text = f"must be less than or equal to {_MAX_PERIOD_SECONDS}"
            field = f"{where}.periodSeconds"
            errors.append(FieldError.invalid(field, policy["periodSeconds"], text))
    return errors


def _metric_errors(metric: Object, path: str) -> Errors:
    kind = metric.get("type") or ""
    errors: Errors = []
    if not kind:
        text = "must specify a metric source type"
        errors.append(FieldError.required(f"{path}.type", text))
    if kind not in _METRIC_TYPES:
        errors.append(unsupported(f"{path}.type", kind, _METRIC_TYPES))
    given = [field for field in _FIELDS.values() if metric.get(field) is not None]
    if given:
        errors += _SOURCES[given[0]](metric[given[0]], f"{path}.{given[0]}")
    expected = _FIELDS.get(kind)
    if expected is not None and expected not in given:
        text = "must populate information for the given metric source"
        errors.append(FieldError.required(f"{path}.{expected}", text))
    if len(given) != 1:
        text = "must populate the given metric source only"
        errors += [FieldError.forbidden(f"{path}.{f}", text) for f in given if f != expected]
    return errors


def _target_errors(target: Object, path: str) -> Errors:
    errors: Errors = []
    kind = target.get("type") or ""
    if not kind:
        text = "must specify a metric target type"
        errors.append(FieldError.required(f"{path}.type", text))
    if kind not in _TARGET_TYPES:
        text = "must be either Utilization, Value, or AverageValue"
        errors.append(FieldError.invalid(f"{path}.type", kind, text))
    for field in ("value", "averageValue"):
        if target.get(field) is not None and positive_errors(target[field], path):
            text = "must be positive"
            errors.append(FieldError.invalid(f"{path}.{field}", target[field], text))
    used = target.get("averageUtilization")
    if used is not None and used < 1:
        text = "must be greater than 0"
        errors.append(FieldError.invalid(f"{path}.averageUtilization", used, text))
    return errors


def _identifier_errors(metric: Object, path: str) -> Errors:
    name = metric.get("name") or ""
    if not name:
        return [FieldError.required(f"{path}.name", "must specify a metric name")]
    errors = each(f"{path}.name", name, path_segment(name))
    return errors + label_selector_errors(metric.get("selector"), f"{path}.selector")


def _custom_errors(source: Object, path: str) -> Errors:
    errors = _identifier_errors(source.get("metric") or {}, f"{path}.metric")
    return errors + _target_errors(source.get("target") or {}, f"{path}.target")


def _object_errors(source: Object, path: str) -> Errors:
    errors = _reference_errors(source.get("describedObject") or {}, f"{path}.describedObject")
    errors += _custom_errors(source, path)
    text = "must set either a target value or averageValue"
    return errors + _one_target_errors(source, path, ("value", "averageValue"), text)


def _external_errors(source: Object, path: str) -> Errors:
    errors = _custom_errors(source, path)
    text = "must set either a target value for metric or a per-pod target"
    errors += _one_target_errors(source, path, ("value", "averageValue"), text)
    target = source.get("target") or {}
    if target.get("value") is not None and target.get("averageValue") is not None:
        text = "may not set both a target value for metric and a per-pod target"
        errors.append(FieldError.forbidden(f"{path}.target.value", text))
    return errors


def _pods_errors(source: Object, path: str) -> Errors:
    errors = _custom_errors(source, path)
    text = "must specify a positive target averageValue"
    return errors + _one_target_errors(source, path, ("averageValue",), text)


def _one_target_errors(source: Object, path: str, fields: Sequence[str], text: str) -> Errors:
    target = source.get("target") or {}
    if any(target.get(field) is not None for field in fields):
        return []
    return [FieldError.required(f"{path}.target.{fields[-1]}", text)]


def _resource_errors(source: Object, path: str) -> Errors:
    name, target = source.get("name") or "", source.get("target") or {}
    errors: Errors = []
    if not name:
        errors.append(FieldError.required(f"{path}.name", "must specify a resource name"))
    errors += _target_errors(target, f"{path}.target")
    text = "must set either a target raw value or a target utilization"
    errors += _one_target_errors(source, path, ("averageValue", "averageUtilization"), text)
    if target.get("averageUtilization") is not None and target.get("averageValue") is not None:
        text = "may not set both a target raw value and a target utilization"
        errors.append(FieldError.forbidden(f"{path}.target.averageValue", text))
    return errors


def _container_resource_errors(source: Object, path: str) -> Errors:
    container, name = source.get("container") or "", source.get("name") or ""
    errors = _resource_errors(source, path)
    if name:
        errors += container_resource_errors(name, f"{path}.name")
    if not container:
        errors.append(FieldError.required(f"{path}.container", "must specify a container"))
    else:
        errors += each(f"{path}.container", container, dns1123_label(container))
    return errors


_SOURCES: dict[str, Callable[[Object, str], Errors]] = {
    "object": _object_errors,
    "external": _external_errors,
    "pods": _pods_errors,
    "resource": _resource_errors,
    "containerResource": _container_resource_errors,
}


def _rules(
    default: Callable[[Object], None],
    begin: Callable[[Object], None],
    conversion: Callable[[Object, str], Object] | None,
) -> Rules:
    return Rules(
        default=default,
        prepare_create=begin,
        validate_create=_errors,
        validate_update=_update_errors,
        validate_status=_status_errors,
        counts_generation=False,
        convert=conversion,
        storage_version="v2",
    )


_NAME = "horizontalpodautoscalers"
RULES: RuleTable = {
    GroupVersionResource("autoscaling", "v1", _NAME): _rules(_default_v1, _begin_v1, convert),
    GroupVersionResource("autoscaling", "v2", _NAME): _rules(_default_v2, _begin, None),
}
