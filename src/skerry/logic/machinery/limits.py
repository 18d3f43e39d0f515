"""LimitRanges: what a pod or claim gets when it asks for nothing, and what it may not exceed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity

_ZERO = Quantity.parse("0")


def apply_defaults(pod: Object, ranges: Sequence[Object]) -> None:
    """Fill in the requests and limits that *ranges* give containers that name none."""
    for item in _items(ranges, "Container"):
        default, request = item.get("default") or {}, item.get("defaultRequest") or {}
        for container in _containers(pod):
            resources = container.setdefault("resources", {})
            _fill(resources, "limits", default)
            _fill(resources, "requests", request)


def _fill(resources: dict[str, Any], part: str, defaults: Mapping[str, Any]) -> None:
    if defaults:
        present = resources.get(part) or {}
        resources[part] = {**defaults, **present}


def violations(obj: Object, ranges: Sequence[Object]) -> list[str]:
    """Return, as Kubernetes words it, each way in which a pod or claim breaks *ranges*."""
    if obj["kind"] == "PersistentVolumeClaim":
        return _claim_violations(obj, ranges)
    found: list[str] = []
    for item in _items(ranges, "Container"):
        for container in _containers(obj):
            found += _check(item, container.get("resources") or {}, "Container")
    totals = {"requests": _sum(obj, "requests"), "limits": _sum(obj, "limits")}
    for item in _items(ranges, "Pod"):
        found += _check(item, totals, "Pod")
    return found


def _claim_violations(claim: Object, ranges: Sequence[Object]) -> list[str]:
    found: list[str] = []
    resources = (claim.get("spec") or {}).get("resources") or {}
    for item in _items(ranges, "PersistentVolumeClaim"):
        found += _check(
            item, {"requests": resources.get("requests") or {}}, "PersistentVolumeClaim"
        )
    return found


def _check(item: Mapping[str, Any], resources: Mapping[str, Any], what: str) -> list[str]:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    found: list[str] = []
    for name, minimum in (item.get("min") or {}).items():
        found += _minimum(name, minimum, requests, limits, what)
    for name, maximum in (item.get("max") or {}).items():
        found += _maximum(name, maximum, requests, limits, what)
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        found += _ratio(name, ratio, requests, limits, what)
    return found


def _minimum(
    name: str, minimum: Any, requests: Mapping[str, Any], limits: Mapping[str, Any], what: str
) -> list[str]:
    floor, asked, limit = _quantity(minimum), requests.get(name), limits.get(name)
    if asked is None:
        return [f"minimum {name} usage per {what} is {minimum}.  No request is specified"]
    if _quantity(asked) < floor:
        return [f"minimum {name} usage per {what} is {minimum}, but request is {asked}"]
    if limit is not None and _quantity(limit) < floor:
        return [f"minimum {name} usage per {what} is {minimum}, but limit is {limit}"]
    return []


def _maximum(
    name: str, maximum: Any, requests: Mapping[str, Any], limits: Mapping[str, Any], what: str
) -> list[str]:
    ceiling, asked, limit = _quantity(maximum), requests.get(name), limits.get(name)
    if what == "PersistentVolumeClaim":
        # A claim has no limits: what it requests is what it may not exceed.
        limit = asked
    if limit is None:
        return [f"maximum {name} usage per {what} is {maximum}.  No limit is specified"]
    if _quantity(limit) > ceiling:
        return [f"maximum {name} usage per {what} is {maximum}, but limit is {limit}"]
    if asked is not None and _quantity(asked) > ceiling:
        return [f"maximum {name} usage per {what} is {maximum}, but request is {asked}"]
    return []


def _ratio(
    name: str, ratio: Any, requests: Mapping[str, Any], limits: Mapping[str, Any], what: str
) -> list[str]:
    asked, limit = requests.get(name), limits.get(name)
    head = f"{name} max limit to request ratio per {what} is {ratio}"
    if asked is None or _quantity(asked) <= _ZERO:
        return [f"{head}, but no request is specified or request is 0"]
    if limit is None or _quantity(limit) <= _ZERO:
        return [f"{head}, but no limit is specified or limit is 0"]
    observed = _quantity(limit).milli_value() / _quantity(asked).milli_value()
    if observed * 1000 > _quantity(ratio).milli_value():
        return [f"{head}, but provided ratio is {observed:f}"]
    return []


def _sum(pod: Object, part: str) -> dict[str, str]:
    totals: dict[str, Quantity] = {}
    for container in (pod.get("spec") or {}).get("containers") or []:
        for name, amount in ((container.get("resources") or {}).get(part) or {}).items():
            totals[name] = totals.get(name, _ZERO) + _quantity(amount)
    for container in (pod.get("spec") or {}).get("initContainers") or []:
        for name, amount in ((container.get("resources") or {}).get(part) or {}).items():
            totals[name] = max(totals.get(name, _ZERO), _quantity(amount))
    return {name: str(total) for name, total in totals.items()}


def _items(ranges: Sequence[Object], kind: str) -> Iterator[Mapping[str, Any]]:
    for limit_range in ranges:
        for item in (limit_range.get("spec") or {}).get("limits") or []:
            if item.get("type") == kind:
                yield item


def _containers(pod: Object) -> Iterator[dict[str, Any]]:
    spec = pod.get("spec") or {}
    yield from spec.get("initContainers") or []
    yield from spec.get("containers") or []


def _quantity(text: Any) -> Quantity:
    return Quantity.parse(str(text))
