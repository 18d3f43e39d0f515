"""HorizontalPodAutoscalers at ``autoscaling/v1`` and ``v2``: one stored object, two shapes.

``v2`` is stored. ``v1`` knows a single CPU target; whatever else there is travels in annotations,
metrics in the shape they had before ``v2``, so that an object read and written back at ``v1``
loses nothing.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, Final

import orjson

from skerry.api.objects import Object
from skerry.logic.machinery.builtin.rules import child, member

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = _PREFIX + "metrics"
_CURRENT_METRICS: Final = _PREFIX + "current-metrics"
_CONDITIONS: Final = _PREFIX + "conditions"
_BEHAVIOR: Final = _PREFIX + "behavior"
CPU_UTILIZATION: Final = 80

# Per kind of metric: where v2 keeps what, and under which name v1's annotations have it.
_Path = tuple[str, ...]
_SOURCES: dict[str, tuple[tuple[_Path, str], ...]] = {
    "resource": (
        (("name",), "name"),
        (("target", "averageUtilization"), "targetAverageUtilization"),
        (("target", "averageValue"), "targetAverageValue"),
    ),
    "containerResource": (
        (("name",), "name"),
        (("container",), "container"),
        (("target", "averageUtilization"), "targetAverageUtilization"),
        (("target", "averageValue"), "targetAverageValue"),
    ),
    "pods": (
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "selector"),
        (("target", "averageValue"), "targetAverageValue"),
    ),
    "object": (
        (("describedObject",), "target"),
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "selector"),
        (("target", "value"), "targetValue"),
        (("target", "averageValue"), "averageValue"),
    ),
    "external": (
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "metricSelector"),
        (("target", "value"), "targetValue"),
        (("target", "averageValue"), "targetAverageValue"),
    ),
}
_STATUSES: dict[str, tuple[tuple[_Path, str], ...]] = {
    "resource": (
        (("name",), "name"),
        (("current", "averageUtilization"), "currentAverageUtilization"),
        (("current", "averageValue"), "currentAverageValue"),
    ),
    "containerResource": (
        (("name",), "name"),
        (("container",), "container"),
        (("current", "averageUtilization"), "currentAverageUtilization"),
        (("current", "averageValue"), "currentAverageValue"),
    ),
    "pods": (
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "selector"),
        (("current", "averageValue"), "currentAverageValue"),
    ),
    "object": (
        (("describedObject",), "target"),
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "selector"),
        (("current", "value"), "currentValue"),
        (("current", "averageValue"), "averageValue"),
    ),
    "external": (
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "metricSelector"),
        (("current", "value"), "currentValue"),
        (("current", "averageValue"), "currentAverageValue"),
    ),
}


def convert(obj: Object, version: str) -> Object:
    """Return the autoscaler at *version*, leaving *obj* as it is."""
    if obj.get("apiVersion") == f"autoscaling/{version}":
        return obj
    return _to_v1(obj) if version == "v1" else _to_v2(obj)


def cpu_metric(percentage: int) -> Object:
    """Return the metric that keeps pods at a share of the CPU they requested."""
    target = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _is_cpu(metric: Object) -> bool:
    resource = metric.get("resource") or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and member(resource, "target", "averageUtilization") is not None
    )


def _flattened(metric: Object, shapes: dict[str, tuple[tuple[_Path, str], ...]]) -> Object:
    """Return a metric as v1's annotations have it."""
    flat: Object = {"type": metric.get("type")}
    for kind, fields in shapes.items():
        if metric.get(kind) is not None:
            found = {name: member(metric[kind], *path) for path, name in fields}
            flat[kind] = {name: value for name, value in found.items() if value is not None}
    return flat


def _nested(flat: Object, shapes: dict[str, tuple[tuple[_Path, str], ...]]) -> Object:
    """Return a metric of v1's annotations as v2 has it."""
    metric: Object = {"type": flat.get("type")}
    for kind, fields in shapes.items():
        if flat.get(kind) is None:
            continue
        nested: Object = {}
        for path, name in fields:
            if flat[kind].get(name) is not None:
                holder = nested
                for step in path[:-1]:
                    holder = child(holder, step)
                holder[path[-1]] = flat[kind][name]
        if shapes is _SOURCES:
            child(nested, "target").setdefault("type", _target_type(nested["target"]))
        metric[kind] = nested
    return metric


def _target_type(target: Object) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "AverageValue" if "averageValue" in target and "value" not in target else "Value"


def _encoded(value: object) -> str:
    return orjson.dumps(value).decode()


def _to_v1(obj: Object) -> Object:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    annotations = {
        k: v for k, v in (member(obj, "metadata", "annotations") or {}).items() if k not in _ALL
    }
    others = [_flattened(metric, _SOURCES) for metric in metrics if not _is_cpu(metric)]
    if others:
        annotations[_METRICS] = _encoded(others)
    if current:
        annotations[_CURRENT_METRICS] = _encoded([_flattened(m, _STATUSES) for m in current])
    if spec.get("behavior"):
        annotations[_BEHAVIOR] = _encoded(spec["behavior"])
    if status.get("conditions"):
        annotations[_CONDITIONS] = _encoded(status["conditions"])
    new_spec = {k: v for k, v in spec.items() if k not in ("metrics", "behavior")}
    cpu = next((metric for metric in metrics if _is_cpu(metric)), None)
    if cpu is not None:
        new_spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    new_status = {k: v for k, v in status.items() if k not in ("currentMetrics", "conditions")}
    for metric in current:
        used = member(metric, "resource", "current", "averageUtilization")
        if member(metric, "resource", "name") == "cpu" and used is not None:
            new_status["currentCPUUtilizationPercentage"] = used
    return _assembled(obj, "v1", annotations, new_spec, new_status)


_ALL = (_METRICS, _CURRENT_METRICS, _CONDITIONS, _BEHAVIOR)


def _to_v2(obj: Object) -> Object:
    carried = member(obj, "metadata", "annotations") or {}
    annotations = {k: v for k, v in carried.items() if k not in _ALL}
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [_nested(flat, _SOURCES) for flat in _decoded_list(carried.get(_METRICS))]
    if percentage is not None or not metrics:
        metrics.append(cpu_metric(CPU_UTILIZATION if percentage is None else percentage))
    spec["metrics"] = metrics
    behavior = _decoded(carried.get(_BEHAVIOR))
    if isinstance(behavior, dict) and behavior:
        spec["behavior"] = behavior
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = [_nested(flat, _STATUSES) for flat in _decoded_list(carried.get(_CURRENT_METRICS))]
    if not current and used is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": used}}
        current = [{"type": "Resource", "resource": resource}]
    if current:
        status["currentMetrics"] = current
    conditions = _decoded_list(carried.get(_CONDITIONS))
    if conditions:
        status["conditions"] = conditions
    return _assembled(obj, "v2", annotations, spec, status)


def _decoded(text: str | None) -> Any:
    """Return what an annotation carries; one a client garbled carries nothing."""
    if not text:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _decoded_list(text: str | None) -> list[Object]:
    found = _decoded(text)
    if not isinstance(found, list):
        return []
    return [item for item in found if _is_metric(item)]


def _is_metric(item: object) -> bool:
    """Tell whether *item* has the shape of a metric or condition: objects below a type."""
    return isinstance(item, dict) and all(
        isinstance(item[kind], dict | NoneType) for kind in _SOURCES if kind in item
    )


def _assembled(
    obj: Object, version: str, annotations: Object, spec: Object, status: Object
) -> Object:
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    converted: Object = {**obj, "apiVersion": f"autoscaling/{version}"}
    converted["metadata"], converted["spec"] = metadata, spec
    if status or "status" in obj:
        converted["status"] = status
    return converted
