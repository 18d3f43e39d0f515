"""What becomes of a node that is not heard of, and of the pods on it.

A node is heard of when its Lease is renewed or its kubelet posts a status; when, is a matter of the
controller's own clock, because a node's may be wrong. Not heard of for the grace period, its
conditions become Unknown. Conditions become taints: ``NoSchedule`` for each kind of trouble, and
``NoExecute`` for a node that is not ready or not reachable. Pods that do not tolerate such a taint,
or no longer, are deleted.

If no node at all is ready, the trouble is more likely on this side of the network: then nothing is
evicted, and ``NoExecute`` taints are taken off again until one node is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.conditions import condition_of, find_condition, is_true
from skerry.logic.machinery.taints import NO_EXECUTE, NO_SCHEDULE, taints_of, tolerations_of

GRACE: Final = timedelta(seconds=40)
# A node that has just registered may take longer to say anything.
STARTUP_GRACE: Final = timedelta(seconds=60)
# How long a node must be gone before its pods are.
QUARANTINE: Final = timedelta(seconds=40)

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_TAINT_OF: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OURS: Final = frozenset({*_TAINT_OF.values(), UNSCHEDULABLE})
# What a kubelet posts, and nobody else can.
_POSTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Heard(NamedTuple):
    """When a node was last heard of, by our clock, and what it said then."""

    at: datetime
    renewed: str = ""
    posted: str = ""


def heard(before: Heard | None, node: Object, lease: Object | None, now: datetime) -> Heard:
    """Return *before*, or *now* if the node has renewed its Lease or posted a status since."""
    renewed = str(((lease or {}).get("spec") or {}).get("renewTime") or "")
    posted = str((find_condition(node, "Ready") or {}).get("lastHeartbeatTime") or "")
    if before is None:
        # A node that has said nothing yet is as old as itself; of others nobody knows.
        fresh = bool(renewed or posted)
        since = now if fresh else _created(node, now)
        return Heard(since, renewed, posted)
    if renewed > before.renewed or posted != before.posted:
        return Heard(now, renewed, posted)
    return before


def _created(node: Object, now: datetime) -> datetime:
    created = node["metadata"].get("creationTimestamp")
    return parse_rfc3339(created) if created else now


def seconds_left(node: Object, last: Heard, now: datetime) -> float:
    """Return how long a node may stay silent still."""
    grace = GRACE if find_condition(node, "Ready") is not None else STARTUP_GRACE
    return (last.at + grace - now).total_seconds()


def lapsed_conditions(node: Object, now: datetime) -> list[Object]:
    """Return the conditions of a node that is not heard of any more."""
    found = (node.get("status") or {}).get("conditions") or []
    after = [_unknown(each, now) if each["type"] in _POSTED else each for each in found]
    for kind in _POSTED:
        if condition_of(found, kind) is None:
            created = node["metadata"].get("creationTimestamp")
            never = {
                "type": kind,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": created or rfc3339(now),
                "lastTransitionTime": rfc3339(now),
            }
            after.append(never)
    return after


def _unknown(condition: Object, now: datetime) -> Object:
    if condition.get("status") == "Unknown":
        return condition
    return {
        **condition,
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": rfc3339(now),
    }


def wanted_taints(node: Object, now: datetime, *, disrupted: bool) -> list[Object]:
    """Return the taints of a node: those of others, and ours as its conditions say.

    *disrupted*: no node at all is ready. A taint that stays keeps its time.
    """
    spec = node.get("spec") or {}
    present = {(each["key"], each["effect"]): each for each in spec.get("taints") or ()}
    keys = [
        key
        for (kind, status), key in _TAINT_OF.items()
        if (find_condition(node, kind) or {}).get("status") == status
    ]
    wanted = [(key, NO_SCHEDULE) for key in keys]
    if spec.get("unschedulable"):
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    if not disrupted:
        wanted += [(key, NO_EXECUTE) for key in keys if key in (NOT_READY, UNREACHABLE)]
    others = [taint for key, taint in present.items() if key[0] not in _OURS]
    dated = {"timeAdded": rfc3339(now)}
    ours = [
        present.get((key, effect)) or {"key": key, "effect": effect, **dated}
        for key, effect in wanted
    ]
    return [*others, *ours]


def is_node_ready(node: Object) -> bool:
    """Tell whether a node says, and is believed, that it is ready."""
    return is_true(node, "Ready")


def seconds_to_stay(
    taints: Iterable[Mapping[str, Any]], pod: Object, since: datetime, now: datetime
) -> float | None:
    """Return how long a pod may stay on a node with *taints*; None for as long as it likes.

    *since* is when it was first seen under taints that have no time of their own.
    """
    listed = [each for each in taints if each.get("effect") == NO_EXECUTE]
    tolerations = pod["spec"].get("tolerations") or []
    limits: list[float] = []
    for raw, taint in zip(listed, taints_of(listed), strict=True):
        used = [
            toleration
            for toleration, read in zip(tolerations, tolerations_of(tolerations), strict=True)
            if read.tolerates(taint)
        ]
        if not used:
            return 0.0
        seconds = [each["tolerationSeconds"] for each in used if "tolerationSeconds" in each]
        if seconds:
            added = raw.get("timeAdded")
            begun = parse_rfc3339(added) if added else since
            limits.append((begun - now).total_seconds() + max(0, min(seconds)))
    return max(0.0, min(limits)) if limits else None


def not_ready_condition(pod: Object, now: datetime) -> list[Object] | None:
    """Return the conditions of a pod whose node is not ready; None if they say so already."""
    found: Sequence[Object] = (pod.get("status") or {}).get("conditions") or ()
    ready = condition_of(found, "Ready")
    if ready is None or ready.get("status") == "False":
        return None
    changed = {
        **ready,
        "status": "False",
        "reason": "NodeNotReady",
        "message": "Node is not ready",
        "lastTransitionTime": rfc3339(now),
    }
    return [changed if each["type"] == "Ready" else each for each in found]
