"""Pods as the controllers of sets of them see them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.conditions import find_condition, is_true

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def phase(pod: Mapping[str, Any]) -> str:
    """Return the phase, Pending when nobody has said anything yet."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminating(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod has ended for good."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod counts: neither finished nor terminating."""
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod says it can serve."""
    return is_true(pod, "Ready")


def is_available(pod: Mapping[str, Any], min_ready_seconds: int, now: datetime) -> bool:
    """Tell whether the pod has been ready for long enough."""
    left = seconds_until_available(pod, min_ready_seconds, now)
    return left is not None and left <= 0


def seconds_until_available(
    pod: Mapping[str, Any], min_ready_seconds: int, now: datetime
) -> float | None:
    """Return how long a ready pod is still on probation; None when it is not ready."""
    condition = find_condition(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    since = condition.get("lastTransitionTime")
    if not min_ready_seconds or not since:
        return 0.0
    due = parse_rfc3339(since) + timedelta(seconds=min_ready_seconds)
    return max(0.0, (due - now).total_seconds())


def pod_from_template(
    template: Mapping[str, Any], namespace: str, name: str, reference: Object
) -> Object:
    """Return a pod as the template wants it, owned by *reference*."""
    metadata = copy.deepcopy(dict(template.get("metadata") or {}))
    kept: Object = {
        key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **kept,
            "name": name,
            "namespace": namespace,
            "ownerReferences": [reference],
        },
        "spec": copy.deepcopy(template["spec"]),
    }


def deletion_order(pods: Sequence[Object]) -> list[Object]:
    """Return *pods*, those that are missed least first.

    As Kubernetes ranks them: without a node, pending, not ready, cheap by annotation, crowded on
    one node, ready for a shorter time, often restarted, young.
    """
    crowd: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        crowd[node] = crowd.get(node, 0) + 1

    def rank(pod: Object) -> tuple[Any, ...]:
        node = pod["spec"].get("nodeName", "")
        return (
            bool(node),
            _PHASE_RANK.get(phase(pod), 2),
            is_ready(pod),
            _cost(pod),
            -crowd[node],
            _Reversed(_ready_since(pod)),
            -_restarts(pod),
            _Reversed(str(pod["metadata"].get("creationTimestamp", ""))),
            pod["metadata"]["name"],
        )

    return sorted(pods, key=rank)


class _Reversed:
    """Sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def _cost(pod: Mapping[str, Any]) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _ready_since(pod: Mapping[str, Any]) -> str:
    condition = find_condition(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return ""
    return str(condition.get("lastTransitionTime") or "")


def _restarts(pod: Mapping[str, Any]) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(item.get("restartCount", 0)) for item in statuses), default=0)
