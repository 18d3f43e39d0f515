"""How many pods measurements ask for, as kube-controller-manager 1.32 counts them.

Amounts are thousandths, as Quantities count them. What is not known of a pod is never a reason to
scale: on the way down a pod without measurement counts as fully used, on the way up as idle, and so
does one that is not ready. Where that turns the direction round, nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple

from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.conditions import find_condition
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.workloads.pods import is_ready, is_terminating, phase

# How far from the target is near enough.
TOLERANCE = 0.1
# How long a pod's processor may be busy with its start, and how soon it first says if it is ready.
_INITIALIZATION = timedelta(minutes=5)
_FIRST_READINESS = timedelta(seconds=30)
_CPU = "cpu"


class Unusable(Exception):
    """Why measurements say nothing; the text is for people."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one pod used, when that was measured, and over how long."""

    amount: int
    at: datetime
    window: timedelta = timedelta(minutes=1)


Samples = Mapping[str, Sample]


class Usage(NamedTuple):
    """How many pods are wanted, what one uses on average, and, in percent, of its request."""

    replicas: int
    average: int
    utilization: int | None = None


class _Groups(NamedTuple):
    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


def by_utilization(
    current: int,
    target: int,
    resource: str,
    container: str,
    pods: Sequence[Object],
    samples: Samples,
    now: datetime,
) -> Usage:
    """Return what a *target* in percent of the pods' requests asks for."""
    groups, known = _grouped(pods, samples, resource, now)
    requests = {pod["metadata"]["name"]: _request(pod, container, resource) for pod in pods}

    def ratio(amounts: Mapping[str, int]) -> tuple[float, int, int]:
        counted = [name for name in amounts if name in requests]
        asked = sum(requests[name] for name in counted)
        if not asked:
            raise Unusable("no metrics returned matched known pods")
        total = sum(amounts[name] for name in counted)
        utilization = total * 100 // asked
        return utilization / target, total // len(counted), utilization

    def full(name: str) -> int:
        return requests[name] * max(100, target) // 100

    return _settled(current, groups, known, ratio, full)


def by_average(
    current: int,
    target: int,
    pods: Sequence[Object],
    samples: Samples,
    now: datetime,
    resource: str = "",
) -> Usage:
    """Return what a *target* amount for each pod asks for."""
    groups, known = _grouped(pods, samples, resource, now)

    def ratio(amounts: Mapping[str, int]) -> tuple[float, int, None]:
        average = sum(amounts.values()) // len(amounts)
        return average / target, average, None

    return _settled(current, groups, known, ratio, lambda _: target)


def by_total(current: int, target: int, amount: int, pods: Sequence[Object]) -> Usage:
    """Return what a *target* for one amount, which the pods share, asks for."""
    ratio = amount / target
    if not current:
        return Usage(ceil(ratio), amount)
    if abs(1.0 - ratio) <= TOLERANCE:
        return Usage(current, amount)
    if not pods:
        reason = "no pods returned by selector while calculating replica count"
        raise Unusable(f"unable to calculate ready pods: {reason}")
    ready = sum(phase(pod) == "Running" and is_ready(pod) for pod in pods)
    return Usage(ceil(ratio * ready), amount)


def by_share(replicas: int, target: int, amount: int) -> Usage:
    """Return what a *target* for each of the *replicas* that share one amount asks for."""
    far = not replicas or abs(1.0 - amount / (target * replicas)) > TOLERANCE
    wanted = ceil(amount / target) if far else replicas
    return Usage(wanted, ceil(amount / replicas) if replicas else amount)


def _settled(
    current: int,
    groups: _Groups,
    known: dict[str, int],
    ratio: Callable[[Mapping[str, int]], tuple[float, int, int | None]],
    full: Callable[[str], int],
) -> Usage:
    """Return how many pods are wanted once those of which nothing is known have been assumed."""
    first, average, utilization = ratio(known)
    unready = groups.unready if first > 1.0 else set()
    if not unready and not groups.missing:
        wanted = current if abs(1.0 - first) <= TOLERANCE else ceil(first * groups.ready)
        return Usage(wanted, average, utilization)
    assumed = dict(known)
    if first < 1.0:
        assumed |= {name: full(name) for name in groups.missing}
    elif first > 1.0:
        assumed |= dict.fromkeys((*groups.missing, *unready), 0)
    then, _, _ = ratio(assumed)
    wanted = ceil(then * len(assumed))
    turned = (first < 1.0 < then) or (then < 1.0 < first)
    against = (then < 1.0 and wanted > current) or (then > 1.0 and wanted < current)
    if abs(1.0 - then) <= TOLERANCE or turned or against:
        wanted = current
    return Usage(wanted, average, utilization)


def _grouped(
    pods: Sequence[Object], samples: Samples, resource: str, now: datetime
) -> tuple[_Groups, dict[str, int]]:
    """Sort pods by what their measurements are worth, and return those that count."""
    if not pods:
        raise Unusable("no pods returned by selector while calculating replica count")
    ready, groups = 0, _Groups(0, set(), set(), set())
    for pod in pods:
        name = pod["metadata"]["name"]
        if is_terminating(pod) or phase(pod) == "Failed":
            groups.ignored.add(name)
        elif phase(pod) == "Pending":
            groups.unready.add(name)
        elif name not in samples:
            groups.missing.add(name)
        elif resource == _CPU and _is_starting(pod, samples[name], now):
            groups.unready.add(name)
        else:
            ready += 1
    out = groups.ignored | groups.unready
    known = {name: sample.amount for name, sample in samples.items() if name not in out}
    if not known:
        raise Unusable("did not receive metrics for targeted pods (pods might be unready)")
    return groups._replace(ready=ready), known


def _is_starting(pod: Object, sample: Sample, now: datetime) -> bool:
    """Tell whether what a pod's processor does may still be its start."""
    found = find_condition(pod, "Ready")
    started = (pod.get("status") or {}).get("startTime")
    if found is None or not started:
        return True
    begun, unready = parse_rfc3339(started), found.get("status") == "False"
    changed = parse_rfc3339(found["lastTransitionTime"])
    if begun + _INITIALIZATION > now:
        return unready or sample.at < changed + sample.window
    # It was never ready.
    return unready and begun + _FIRST_READINESS > changed


def _request(pod: Object, container: str, resource: str) -> int:
    total = 0
    spec = pod["spec"]
    beside = (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    for each in (*spec["containers"], *beside):
        if container not in ("", each["name"]):
            continue
        requests = (each.get("resources") or {}).get("requests") or {}
        if resource not in requests:
            name = pod["metadata"]["name"]
            where = f"container {each['name']} of Pod {name}"
            raise Unusable(f"missing request for {resource} in {where}")
        total += Quantity.parse(str(requests[resource])).milli_value()
    return total
