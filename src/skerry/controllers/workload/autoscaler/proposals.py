"""What one metric asks for: a number of pods, and what the status says of it.

The sentences are those of kube-controller-manager, which people search for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from skerry.api.objects import Object
from skerry.controllers.workload.autoscaler.observe import Observed, Reading
from skerry.kit.invariant import present
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.workloads.scaling.usage import (
    Unusable,
    Usage,
    by_average,
    by_share,
    by_total,
    by_utilization,
)


class Proposal(NamedTuple):
    """How many pods a metric wants, which one that is, and its status."""

    replicas: int
    name: str
    status: Object


class Refusal(NamedTuple):
    """Why a metric wants nothing: a reason, a sentence about the metric, and one about all."""

    reason: str
    message: str
    whole: str


def proposed(
    metric: Mapping[str, Any], reading: Reading, observed: Observed, now: datetime
) -> Proposal | Refusal:
    """Return what one metric asks for, or why it cannot be asked."""
    kind = metric["type"]
    try:
        return _OF[kind](metric, reading, observed, now)
    except Unusable as error:
        reason, inside, outside = _SENTENCES[kind]
        text = inside(metric, observed, str(error))
        return Refusal(reason, text, f"{outside(metric)}: {text}")


def _resource(
    metric: Mapping[str, Any], reading: Reading, observed: Observed, now: datetime
) -> Proposal:
    contained = metric["type"] == "ContainerResource"
    field = "containerResource" if contained else "resource"
    source = metric[field]
    target, name = source["target"], source["name"]
    samples = _measured(reading)
    current: Object
    if target.get("averageValue") is not None:
        wanted = _milli(target["averageValue"])
        usage = by_average(_replicas(observed), wanted, observed.pods, samples, now, name)
        label, current = f"{name} resource", {"averageValue": _quantity(usage.average)}
    else:
        container = source["container"] if contained else ""
        wanted = int(target["averageUtilization"])
        usage = by_utilization(
            _replicas(observed), wanted, name, container, observed.pods, samples, now
        )
        what = "container resource utilization" if contained else "resource utilization"
        label = f"{name} {what} (percentage of request)"
        current = {
            "averageUtilization": usage.utilization,
            "averageValue": _quantity(usage.average),
        }
    identity = {key: source[key] for key in ("name", "container") if key in source}
    return Proposal(
        usage.replicas, label, {"type": metric["type"], field: {**identity, "current": current}}
    )


def _pods(
    metric: Mapping[str, Any], reading: Reading, observed: Observed, now: datetime
) -> Proposal:
    source = metric["pods"]
    target = _milli(source["target"]["averageValue"])
    usage = by_average(_replicas(observed), target, observed.pods, _measured(reading), now)
    current = {"averageValue": _quantity(usage.average)}
    status = {"type": "Pods", "pods": {"metric": source["metric"], "current": current}}
    return Proposal(usage.replicas, f"pods metric {source['metric']['name']}", status)


def _object(
    metric: Mapping[str, Any], reading: Reading, observed: Observed, _: datetime
) -> Proposal:
    source = metric["object"]
    usage, current, shared = _shared(source["target"], reading, observed)
    described = source["describedObject"]
    status: Object = {"describedObject": described, "metric": source["metric"], "current": current}
    name = f"{described['kind']} metric {source['metric']['name']}"
    if shared:
        name = f"external metric {source['metric']['name']}({shown(source['metric'])})"
    return Proposal(usage.replicas, name, {"type": "Object", "object": status})


def _external(
    metric: Mapping[str, Any], reading: Reading, observed: Observed, _: datetime
) -> Proposal:
    source = metric["external"]
    usage, current, _shares = _shared(source["target"], reading, observed)
    status = {"metric": source["metric"], "current": current}
    name = f"external metric {source['metric']['name']}({shown(source['metric'])})"
    return Proposal(usage.replicas, name, {"type": "External", "external": status})


def _shared(
    target: Mapping[str, Any], reading: Reading, observed: Observed
) -> tuple[Usage, Object, bool]:
    """Return what one amount asks for, its status, and whether it is for each pod."""
    if not isinstance(reading, int):
        raise reading if isinstance(reading, Unusable) else Unusable("no value")
    if target.get("averageValue") is not None:
        replicas = int((present(observed.scale, "read before").get("status") or {})["replicas"])
        usage = by_share(replicas, _milli(target["averageValue"]), reading)
        return usage, {"averageValue": _quantity(usage.average)}, True
    usage = by_total(_replicas(observed), _milli(target["value"]), reading, observed.pods)
    return usage, {"value": _quantity(usage.average)}, False


def shown(metric: Mapping[str, Any]) -> str:
    """Return the selector of a metric as Go prints it."""
    selector = metric.get("selector")
    if selector is None:
        return "nil"
    labels = "".join(
        f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items())
    )
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{each['key']},Operator:{each['operator']},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )


def _measured(reading: Reading) -> Any:
    if isinstance(reading, Unusable):
        raise reading
    return reading


def _replicas(observed: Observed) -> int:
    return int(present(observed.scale, "read before")["spec"].get("replicas", 0))


def _milli(quantity: object) -> int:
    return Quantity.parse(str(quantity)).milli_value()


def _quantity(milli: int) -> str:
    return str(Quantity.of_milli(milli))


_OF: dict[str, Callable[[Mapping[str, Any], Reading, Observed, datetime], Proposal]] = {
    "Resource": _resource,
    "ContainerResource": _resource,
    "Pods": _pods,
    "Object": _object,
    "External": _external,
}

_Inside = Callable[[Mapping[str, Any], Observed, str], str]


def _resource_failure(metric: Mapping[str, Any], _: Observed, why: str) -> str:
    source = metric.get("resource") or metric["containerResource"]
    name = source["name"]
    what = "usage" if source["target"].get("averageValue") is not None else "utilization"
    if why.startswith(("unable to fetch", "no metrics returned from", "container ")):
        why = f"unable to get metrics for resource {name}: {why}"
    return f"failed to get {name} {what}: {why}"


def _pods_failure(metric: Mapping[str, Any], _: Observed, why: str) -> str:
    if why.startswith(("unable to fetch", "no metrics returned from")):
        return f"unable to get metric {metric['pods']['metric']['name']}: {why}"
    return why


def _object_failure(metric: Mapping[str, Any], observed: Observed, why: str) -> str:
    source = metric["object"]
    described, name = source["describedObject"], source["metric"]["name"]
    if why.startswith(("unable to fetch", "no metrics returned from", "unable to map")):
        namespace = observed.autoscaler["metadata"]["namespace"]
        # The arguments are in this order in Kubernetes, too.
        where = f"{described['kind']} on {namespace} {described['name']}"
        return f"unable to get metric {name}: {where}/{why}"
    return why


def _external_failure(metric: Mapping[str, Any], observed: Observed, why: str) -> str:
    source = metric["external"]["metric"]
    if why.startswith(("unable to fetch", "no metrics returned from")):
        place = f"{observed.autoscaler['metadata']['namespace']}/{source['name']}/{shown(source)}"
        return f"unable to get external metric {place}: {why}"
    return why


def _external_whole(metric: Mapping[str, Any]) -> str:
    name = metric["external"]["metric"]["name"]
    each = metric["external"]["target"].get("averageValue") is not None
    inner = (
        f"failed to get {name} external metric" if each else f"failed to get external metric {name}"
    )
    return f"failed to get {name} external metric value: {inner}"


_SENTENCES: dict[str, tuple[str, _Inside, Callable[[Mapping[str, Any]], str]]] = {
    "Resource": (
        "FailedGetResourceMetric",
        _resource_failure,
        lambda metric: f"failed to get {metric['resource']['name']} resource metric value",
    ),
    "ContainerResource": (
        "FailedGetContainerResourceMetric",
        _resource_failure,
        lambda metric: (
            f"failed to get {metric['containerResource']['container']} container metric value"
        ),
    ),
    "Pods": ("FailedGetPodsMetric", _pods_failure, lambda _: "failed to get pods metric value"),
    "Object": (
        "FailedGetObjectMetric",
        _object_failure,
        lambda _: "failed to get object metric value",
    ),
    "External": ("FailedGetExternalMetric", _external_failure, _external_whole),
}
