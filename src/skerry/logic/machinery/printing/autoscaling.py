"""Columns of HorizontalPodAutoscalers, whichever version they are read at.

``autoscaling/v1`` knows the CPU target only and carries everything else in annotations;
``autoscaling/v2`` lists metrics. Both come down to a list of (name, current, target).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.printing.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    computed,
    field,
    items,
    read,
    text,
)
from skerry.logic.machinery.resource import Column

_SPECS_ANNOTATION = "autoscaling.alpha.kubernetes.io/metrics"
_STATUSES_ANNOTATION = "autoscaling.alpha.kubernetes.io/current-metrics"
_MAX_SHOWN = 2
# Where each type of metric keeps its particulars.
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _metrics(autoscaler: Object) -> str:
    specs, statuses = _specs(autoscaler), _statuses(autoscaler)
    if not specs:
        return NONE
    shown = [
        _metric(spec, statuses[index] if index < len(statuses) else None)
        for index, spec in enumerate(specs)
    ]
    joined = ", ".join(shown[:_MAX_SHOWN])
    more = len(shown) - _MAX_SHOWN
    return f"{joined} + {more} more..." if more > 0 else joined


def _metric(spec: Mapping[str, Any], status: Mapping[str, Any] | None) -> str:
    kind = text(spec, "type")
    source = _SOURCES.get(kind)
    if source is None:
        return "<unknown type>"
    target, current = _target(read(spec, source)), _current(read(status, source))
    if kind in ("Resource", "ContainerResource"):
        return f"{text(spec, source, 'name')}: {_resource_metric(current, target)}"
    if kind == "Pods" or target.get("averageValue") is None:
        value = "averageValue" if kind == "Pods" else "value"
        return f"{_value(current, value)}/{_value(target, value)}"
    return f"{_value(current, 'averageValue')}/{_value(target, 'averageValue')} (avg)"


def _resource_metric(current: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    if target.get("averageValue") is not None:
        return f"{_value(current, 'averageValue')}/{target['averageValue']}"
    wanted, found = target.get("averageUtilization"), current.get("averageUtilization")
    shown = UNKNOWN if found is None else f"{found}%"
    return f"{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _value(amounts: Mapping[str, Any], key: str) -> str:
    found = amounts.get(key)
    return UNKNOWN if found is None else str(found)


def _target(source: Any) -> dict[str, Any]:
    """Return the wanted amounts in v2 words; the v1 annotation spells them flat."""
    nested = read(source, "target")
    if isinstance(nested, Mapping) and "kind" not in nested:
        return dict(nested)
    # In v1's annotation "target" is the object a metric is about.
    return {
        "value": read(source, "targetValue"),
        "averageValue": read(source, "targetAverageValue") or read(source, "averageValue"),
        "averageUtilization": read(source, "targetAverageUtilization"),
    }


def _current(source: Any) -> dict[str, Any]:
    nested = read(source, "current")
    if isinstance(nested, Mapping):
        return dict(nested)
    return {
        "value": read(source, "currentValue"),
        "averageValue": read(source, "currentAverageValue") or read(source, "averageValue"),
        "averageUtilization": read(source, "currentAverageUtilization"),
    }


def _specs(autoscaler: Object) -> Sequence[Any]:
    if not _is_v1(autoscaler):
        return items(autoscaler, "spec", "metrics")
    found = list(_annotated(autoscaler, _SPECS_ANNOTATION) or ())
    percentage = read(autoscaler, "spec", "targetCPUUtilizationPercentage")
    if percentage is not None or not found:
        # A v1 autoscaler without any metric means 80 % of the CPU asked for.
        found.append(_cpu("target", 80 if percentage is None else percentage))
    return found


def _statuses(autoscaler: Object) -> Sequence[Any]:
    if not _is_v1(autoscaler):
        return items(autoscaler, "status", "currentMetrics")
    annotated = _annotated(autoscaler, _STATUSES_ANNOTATION)
    if annotated is not None:
        return annotated
    percentage = read(autoscaler, "status", "currentCPUUtilizationPercentage")
    return [] if percentage is None else [_cpu("current", percentage)]


def _cpu(word: str, percentage: int) -> dict[str, Any]:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", word: {"averageUtilization": percentage}},
    }


def _is_v1(autoscaler: Object) -> bool:
    return text(autoscaler, "apiVersion") == "autoscaling/v1"


def _annotated(autoscaler: Object, annotation: str) -> list[Any] | None:
    """Return the list in an annotation, which anybody may have written: nothing of it is sure."""
    written = read(autoscaler, "metadata", "annotations", annotation)
    if not isinstance(written, str):
        return None
    try:
        found = json.loads(written)
    except ValueError:
        return None
    return found if isinstance(found, list) else None


HORIZONTAL_POD_AUTOSCALER_COLUMNS: tuple[Column, ...] = (
    NAME,
    computed(
        "Reference",
        lambda obj: (
            f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/"
            f"{text(obj, 'spec', 'scaleTargetRef', 'name')}"
        ),
        "What is scaled.",
    ),
    computed("Targets", _metrics, "Current and wanted values of the metrics."),
    computed("MinPods", lambda obj: text(obj, "spec", "minReplicas") or UNSET, "At least so many."),
    field("MaxPods", "spec", "maxReplicas", default=0),
    field("Replicas", "status", "currentReplicas", default=0),
    AGE,
)
