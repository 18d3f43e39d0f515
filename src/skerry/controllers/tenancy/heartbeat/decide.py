"""What the conditions of a SyncTarget should say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.controllers.tenancy.heartbeat.observe import Observed
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.heartbeat import heartbeat_health
from skerry.logic.machinery.conditions import dated
from skerry.logic.machinery.plan import Patch, Plan, Target

READY = "Ready"
HEARTBEAT_HEALTHY = "HeartbeatHealthy"
_SUMMARISED = ("SyncerReady", "APIImporterReady", HEARTBEAT_HEALTHY)

# A condition that says the same in these is left as it is.
_SAID = ("status", "reason", "message")

Condition = dict[str, Any]


def decide(observed: Observed, now: datetime) -> Plan:
    """Tell what the heartbeat means; look again when that would change by itself."""
    health = heartbeat_health(observed.heartbeat, now, observed.lasts)
    wait = None if health.expires is None else (health.expires - now).total_seconds()
    old = {str(condition["type"]): condition for condition in observed.conditions}
    heartbeat = _condition(HEARTBEAT_HEALTHY, health.message, old, now)
    known = {**old, HEARTBEAT_HEALTHY: heartbeat}
    ready = _ready(known, now)
    if (old.get(READY), old.get(HEARTBEAT_HEALTHY)) == (ready, heartbeat):
        return Plan(look_again_seconds=wait)
    others = [c for c in observed.conditions if c["type"] not in (READY, HEARTBEAT_HEALTHY)]
    patch = {
        # Others write conditions too, and a list is replaced as a whole.
        "metadata": {"resourceVersion": observed.resource_version},
        "status": {"conditions": [ready, heartbeat, *others]},
    }
    target = Target(SYNC_TARGETS, observed.key.name, cluster=observed.key.cluster)
    action = Patch(
        target, patch, reason="HeartbeatJudged", subresource="status", absent_is_fine=True
    )
    return Plan([action], look_again_seconds=wait)


def _condition(kind: str, wrong: str, old: Mapping[str, Any], now: datetime) -> Condition:
    """Return a condition; one that already says the same is kept as it is."""
    said = {"type": kind, "status": "False" if wrong else "True"}
    if wrong:
        said |= {"reason": "ErrorHeartbeat", "message": wrong, "severity": "Warning"}
    return _kept(old.get(kind), said, now)


def _ready(known: Mapping[str, Any], now: datetime) -> Condition:
    """Return the summary: the first failing of the conditions it stands for, or True."""
    for kind in _SUMMARISED:
        condition = known.get(kind)
        if condition is not None and condition.get("status") != "True":
            return _kept(known.get(READY), {**condition, "type": READY}, now)
    return _condition(READY, "", known, now)


def _kept(old: Mapping[str, Any] | None, wanted: Condition, now: datetime) -> Condition:
    if old is not None and all(old.get(name) == wanted.get(name) for name in _SAID):
        return dict(old)
    return dated(wanted, old, rfc3339(now))
