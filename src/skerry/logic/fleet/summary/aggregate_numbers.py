"""Numbers that tools judge workloads by, as all destinations of one come to.

A source and its copies need not agree on ``spec.replicas``: a Customizer may set it per Location.
So where every destination is healthy the numbers are the source's own, and elsewhere they are those
of the worst destination, cut to what the source asks for. Tools compare them with the source.

Where a destination is not healthy for a reason that is in no number (a strategy by which tools do
not count, nothing to run at all), ``shown`` is false and the caller has to say it another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from skerry.api.objects import Raw, section_of
from skerry.logic.fleet.summary.report import Number

_MAX = 2**31 - 1


class Extent(NamedTuple):
    """The numbers that destinations report: their extremes, and those of the worst destination."""

    min: Mapping[str, Number]
    max: Mapping[str, Number]
    worst: Mapping[str, Number]


class Counts(NamedTuple):
    """Fields of a status, and whether a tool sees in them that something is not finished."""

    fields: dict[str, int]
    shown: bool


Counting = Callable[[Raw, Extent, bool], Counts]
"""From a source's spec, what is reported, and whether every destination is healthy."""


def count(section: Raw, name: str, default: int = 0) -> int:
    """Return a number of *section* as a count: whole, not negative, and not beyond 32 bits."""
    value = section.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return int(min(max(value, 0), _MAX))


def deployment(spec: Raw, extent: Extent, healthy: bool) -> Counts:
    """Count as ``kubectl rollout status`` does: updated, available, and none of the old left."""
    wanted = count(spec, "replicas", 1)
    if healthy:
        return _all(wanted, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    updated, ready, available = _worst(extent, wanted, "updatedReplicas")
    total = max(count(extent.max, "replicas"), updated, ready)
    fields = {
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": wanted - available,
    }
    return Counts(fields, updated < wanted or available < updated or updated < total)


def stateful_set(spec: Raw, extent: Extent, healthy: bool) -> Counts:
    """Count as for Deployments; which of the updated ones matter, a partition says."""
    wanted = count(spec, "replicas", 1)
    names = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    if healthy:
        return _all(wanted, *names)
    updated, ready, available = _worst(extent, wanted, "updatedReplicas")
    current = min(wanted, count(extent.min, "currentReplicas"))
    total = max(count(extent.max, "replicas"), updated, ready, current)
    fields = dict(zip(names, (total, ready, current, updated, available), strict=True))
    strategy = section_of(spec, "updateStrategy")
    partition = section_of(strategy, "rollingUpdate").get("partition")
    lagging = isinstance(partition, int) and updated < wanted - partition
    return Counts(fields, strategy.get("type") != "OnDelete" and (ready < wanted or lagging))


def replica_set(spec: Raw, extent: Extent, healthy: bool) -> Counts:
    """Count what is available; there is nothing to update."""
    wanted = count(spec, "replicas", 1)
    names = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    if healthy:
        return _all(wanted, *names)
    labelled, ready, available = _worst(extent, wanted, "fullyLabeledReplicas")
    total = max(count(extent.max, "replicas"), labelled, ready)
    fields = dict(zip(names, (total, labelled, ready, available), strict=True))
    return Counts(fields, available < wanted)


def daemon_set(spec: Raw, extent: Extent, healthy: bool) -> Counts:
    """Count nodes, of one destination: how many there are differs from edge to edge."""
    names = ("currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
    wanted = count(extent.max if healthy else extent.worst, "desiredNumberScheduled")
    found = [wanted if healthy else min(wanted, count(extent.worst, name)) for name in names]
    fields = {
        "desiredNumberScheduled": wanted,
        "numberMisscheduled": 0,
        **dict(zip(names, found, strict=True)),
        "numberUnavailable": wanted - found[-1],
    }
    _, updated, _, available = found
    on_delete = section_of(spec, "updateStrategy").get("type") == "OnDelete"
    return Counts(fields, not on_delete and (updated < wanted or available < wanted))


COUNTING: Final[Mapping[tuple[str, str], Counting]] = {
    ("apps", "Deployment"): deployment,
    ("apps", "StatefulSet"): stateful_set,
    ("apps", "ReplicaSet"): replica_set,
    ("", "ReplicationController"): replica_set,
    ("apps", "DaemonSet"): daemon_set,
}


def _all(wanted: int, *names: str) -> Counts:
    return Counts(dict.fromkeys(names, wanted), shown=False)


def _worst(extent: Extent, wanted: int, first: str) -> tuple[int, int, int]:
    """Return *first*, what is ready and of that what is available, where it is least."""
    of_first, ready, available = (
        min(wanted, count(extent.min, name))
        for name in (first, "readyReplicas", "availableReplicas")
    )
    return of_first, ready, min(ready, available)
