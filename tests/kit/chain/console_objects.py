"""Objects as the console's index takes them, in any of the states an edge may be in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skerry.api.refs import CLUSTER_ANNOTATION

_BAD = {"Held": "Held", "Refused": "ObjectsRefused"}


def sync_target(
    cluster: str,
    name: str,
    labels: Mapping[str, str] | None = None,
    state: str = "Ready",
    minute: int = 0,
) -> dict[str, Any]:
    """Return a SyncTarget that ``skerry fleet`` shows in *state*."""
    ready = "False" if state in ("Lost", "NotJoined") else "True"
    conditions = [{"type": "Ready", "status": ready, "reason": "R", "message": "m"}]
    if state in _BAD:
        conditions.append({"type": _BAD[state], "status": "True", "message": "why"})
    objects = {"wanted": 2, "applied": 1 if state == "Syncing" else 2, "unhealthy": 0}
    if state == "Unhealthy":
        objects["unhealthy"] = 1
    status: dict[str, Any] = {"conditions": conditions, "objects": objects}
    if state != "NotJoined":
        status["lastSyncerHeartbeatTime"] = f"2030-01-01T00:{minute:02}:00Z"
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{cluster}-{name}",
            "labels": dict(labels or {}),
            "annotations": {CLUSTER_ANNOTATION: cluster},
        },
        "spec": {},
        "status": status,
    }


def location(
    cluster: str, name: str, labels: Mapping[str, str], selects: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return a Location of SyncTargets with the labels it *selects*; None: of none."""
    selector = None if selects is None else {"matchLabels": dict(selects)}
    return {
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": {CLUSTER_ANNOTATION: cluster},
        },
        "spec": {"instanceSelector": selector},
    }


def slice_of(
    cluster: str, name: str, placement: str, members: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """Return a page of destinations."""
    entries = [
        {"cluster": c, "locationName": n, "syncTargetName": n, "syncTargetUID": f"uid-{c}-{n}"}
        for c, n in sorted(members)
    ]
    return {
        "metadata": {
            "name": name,
            "labels": {"edge.kcp.io/source-placement": placement},
            "annotations": {CLUSTER_ANNOTATION: cluster},
        },
        "destinations": entries,
    }


def placement(cluster: str, name: str, **status: Any) -> dict[str, Any]:
    """Return an EdgePlacement."""
    annotations = {CLUSTER_ANNOTATION: cluster}
    return {"metadata": {"name": name, "annotations": annotations}, "status": status}


def detail(cluster: str, name: str, healthy: str = "True", **more: Any) -> dict[str, Any]:
    """Return how an object fares at one destination."""
    at = {"cluster": cluster, "location": name, "syncTarget": name}
    return {**at, "delivered": True, "healthy": healthy, **more}


def summary(
    cluster: str, placed: str, name: str, *details: Mapping[str, Any], destinations: int = 0
) -> dict[str, Any]:
    """Return the StatusSummary of a Deployment."""
    wanted = destinations or len(details)
    return {
        "metadata": {
            "name": f"{placed}-deployments-{name}",
            "namespace": "shop",
            "annotations": {CLUSTER_ANNOTATION: cluster},
        },
        "placement": placed,
        "object": {
            "group": "apps",
            "resource": "deployments",
            "kind": "Deployment",
            "namespace": "shop",
            "name": name,
        },
        "destinations": wanted,
        "delivered": sum(bool(each["delivered"]) for each in details),
        "reported": len(details),
        "healthy": sum(each["healthy"] == "True" for each in details),
        "details": [dict(each) for each in details],
    }
