"""Which nodes a DaemonSet's pods belong on: selection and taints, nothing about room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def untolerated(
    tolerations: Sequence[Mapping[str, Any]], taints: Sequence[Mapping[str, Any]], effects: set[str]
) -> list[Mapping[str, Any]]:
    """Return the taints of the given effects that no toleration covers."""
    return [
        taint
        for taint in taints
        if taint.get("effect") in effects and not any(_covers(item, taint) for item in tolerations)
    ]


def _covers(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key = toleration.get("key") or ""
    if key and key != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
