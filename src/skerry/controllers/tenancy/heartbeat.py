"""Judges heartbeats: a SyncTarget not heard of for as long as its Lease lasts is not ready.

Reads SyncTargets; writes their conditions ``HeartbeatHealthy`` and ``Ready``, and an Event when the
first of them changes its mind. ``Ready`` is the
summary of whichever of ``SyncerReady``, ``APIImporterReady`` and ``HeartbeatHealthy`` exist; the
other two belong to others and are left alone.

Who could not be heard was not silent. A hub that was away finds that it heard of nobody meanwhile;
edges that were ready when it went have the whole time of their Lease to come back, from when this
controller began, and as long again as the hub asks so many of them to spread. Else a fleet of ten
thousand would be declared lost and found again, one by one, with placements, reports and Events
that follow from it, in the minute in which all return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.kit.returning import return_seconds
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.fleet.placement.heartbeat import (
    USUAL_LEASE_SECONDS,
    heartbeat_health,
    lease_seconds_reported,
)
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.logic.machinery.conditions import dated
from skerry.logic.machinery.plan import Announcement, Patch, Plan, Target
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Handler, Informer
from skerry.runtime.workqueue import WorkQueue

NAME = "synctarget-heartbeat"

# -- events -----------------------------------------------------------------------------------


def enqueue_on_changes(add: Callable[[Key], None]) -> Handler:
    """Return the handler that adds SyncTargets whose status or Lease duration is new."""

    def handle(old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or _stage(old) != _stage(new)):
            add(key_of(new))

    return handle


def _stage(obj: Object) -> tuple[object, int]:
    return obj.get("status"), lease_seconds_reported(obj)


# -- observe ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Observed:
    """One SyncTarget. ``heartbeat`` None: never heard of. ``lasts``: seconds until it expires."""

    key: Key
    resource_version: str
    heartbeat: datetime | None
    conditions: tuple[Mapping[str, Any], ...]
    lasts: int = USUAL_LEASE_SECONDS
    uid: str = ""


def observed_of(key: Key, sync_target: Object) -> Observed:
    """Return what a SyncTarget says of its heartbeat."""
    status = sync_target["status"]
    heartbeat = status.get("lastSyncerHeartbeatTime")
    return Observed(
        key,
        sync_target["metadata"]["resourceVersion"],
        parse_rfc3339(heartbeat) if heartbeat else None,
        tuple(status["conditions"]),
        lease_seconds_reported(sync_target),
        sync_target["metadata"]["uid"],
    )


# -- decide -----------------------------------------------------------------------------------

READY = "Ready"
HEARTBEAT_HEALTHY = "HeartbeatHealthy"
_SUMMARISED = ("SyncerReady", "APIImporterReady", HEARTBEAT_HEALTHY)

# A condition that is equal in these is left as it is.
_COMPARED = ("status", "reason", "message")

Condition = dict[str, Any]


def decide(observed: Observed, now: datetime, listening_since: datetime | None = None) -> Plan:
    """Tell what the heartbeat means; look again when that would change by itself."""
    old = {str(condition["type"]): condition for condition in observed.conditions}
    was_heard = old.get(HEARTBEAT_HEALTHY, {}).get("status") == "True"
    health = heartbeat_health(
        observed.heartbeat, now, observed.lasts, listening_since if was_heard else None
    )
    wait = None if health.expires is None else (health.expires - now).total_seconds()
    heartbeat = _condition(HEARTBEAT_HEALTHY, health.message, old, now)
    known = {**old, HEARTBEAT_HEALTHY: heartbeat}
    ready = _ready(known, now)
    if (old.get(READY), old.get(HEARTBEAT_HEALTHY)) == (ready, heartbeat):
        return Plan(requeue_after_seconds=wait)
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
    news = list(_news(observed, old.get(HEARTBEAT_HEALTHY), heartbeat))
    return Plan([action], news, requeue_after_seconds=wait)


def _news(
    observed: Observed, old: Mapping[str, Any] | None, new: Condition
) -> Iterator[Announcement]:
    """Yield an Event when an edge is heard of again, or no more; first words are none."""
    if old is None or old.get("status") == new["status"]:
        return
    metadata = {
        "name": observed.key.name,
        "uid": observed.uid,
        "annotations": {CLUSTER_ANNOTATION: observed.key.cluster},
    }
    version = f"{SYNC_TARGETS.group}/{SYNC_TARGETS.version}"
    about: Object = {"apiVersion": version, "kind": "SyncTarget", "metadata": metadata}
    if new["status"] == "True" and observed.heartbeat is not None:
        text = f"heard of at {rfc3339(observed.heartbeat)}"
        yield Announcement(about, "Normal", HEARTBEAT_HEALTHY, text)
    else:
        yield Announcement(about, "Warning", new["reason"], new["message"])


def _condition(kind: str, wrong: str, old: Mapping[str, Any], now: datetime) -> Condition:
    """Return a condition; one that already says the same is kept as it is."""
    condition = {"type": kind, "status": "False" if wrong else "True"}
    if wrong:
        condition |= {"reason": "ErrorHeartbeat", "message": wrong, "severity": "Warning"}
    return _kept(old.get(kind), condition, now)


def _ready(known: Mapping[str, Any], now: datetime) -> Condition:
    """Return the summary: the first failing of the conditions it stands for, or True."""
    for kind in _SUMMARISED:
        condition = known.get(kind)
        if condition is not None and condition.get("status") != "True":
            return _kept(known.get(READY), {**condition, "type": READY}, now)
    return _condition(READY, "", known, now)


def _kept(old: Mapping[str, Any] | None, wanted: Condition, now: datetime) -> Condition:
    if old is not None and all(old.get(name) == wanted.get(name) for name in _COMPARED):
        return dict(old)
    return dated(wanted, old, rfc3339(now))


# -- controller -------------------------------------------------------------------------------


def _returning(targets: Informer) -> timedelta:
    """Return over how long a time edges spread when they come back to a hub of so many."""
    return timedelta(seconds=return_seconds(len(targets.index)))


def build(workload: ControllerContext) -> Controller[Key, Observed]:
    """Return the controller that judges heartbeats; *workload* sees every SyncTarget."""
    targets = workload.factory.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
    queue: WorkQueue[Key] = workload.queue(NAME)
    targets.add_handler(enqueue_on_changes(queue.add))
    clock = workload.client.clock
    began = clock.now()

    async def observe(key: Key) -> Observed | None:
        obj = targets.index.get(key)
        return None if obj is None else observed_of(key, obj)

    reconciler = Reconciler(
        observe,
        lambda observed: decide(observed, clock.now(), began + _returning(targets)),
        workload.executor(NAME),
    )
    return workload.controller(NAME, reconciler, queue, [targets])
