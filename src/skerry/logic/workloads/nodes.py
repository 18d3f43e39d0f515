"""Which nodes a DaemonSet's pods belong on, by name, labels and affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.selectors import Requirement, Selector

_OPERATORS = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
    "Gt": "gt",
    "Lt": "lt",
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selects(spec: Mapping[str, Any], node: Object) -> bool:
    """Tell whether a pod's node name, selector and required affinity allow *node*."""
    metadata = node["metadata"]
    if spec.get("nodeName") and spec["nodeName"] != metadata["name"]:
        return False
    if not Selector.from_labels(spec.get("nodeSelector")).matches(metadata.get("labels")):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if not affinity:
        return True
    return any(_fits(term, node) for term in affinity.get("nodeSelectorTerms") or ())


def _fits(term: Mapping[str, Any], node: Object) -> bool:
    """Tell whether a term allows *node*; an empty term allows none."""
    metadata = node["metadata"]
    parts = (
        ("matchExpressions", metadata.get("labels") or {}),
        ("matchFields", {"metadata.name": metadata["name"]}),
    )
    for key, values in parts:
        wanted = [_requirement(item) for item in term.get(key) or ()]
        if not Selector(wanted).matches(values):
            return False
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _requirement(item: Mapping[str, Any]) -> Requirement:
    return Requirement(item["key"], _OPERATORS[item["operator"]], tuple(item.get("values") or ()))
