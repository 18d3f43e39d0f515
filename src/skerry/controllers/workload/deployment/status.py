"""What a Deployment's status says: counts, availability, and how the rollout goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.conditions import condition_of, dated
from skerry.logic.workloads.rollout import limits_of

# Means "no deadline", as Kubernetes writes it.
_NO_DEADLINE = 2147483647
_COMPLETE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"
_FAILURE = "ReplicaFailure"


def status_of(
    deployment: Object, sets: Sequence[Object], new: Object | None, now: datetime
) -> Object:
    """Return the status that *sets* (all, the new one included) give the Deployment."""
    old = deployment.get("status") or {}
    total = sum(_count(item, "replicas") for item in sets)
    available = sum(_count(item, "availableReplicas") for item in sets)
    wanted = sum(int(item["spec"].get("replicas", 1)) for item in sets)
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": total,
        "updatedReplicas": 0 if new is None else _count(new, "replicas"),
        "readyReplicas": sum(_count(item, "readyReplicas") for item in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
        "collisionCount": old.get("collisionCount", 0),
    }
    status: dict[str, Any] = {name: value for name, value in counts.items() if value}
    conditions = _availability(deployment, old.get("conditions") or [], available, now)
    status["conditions"] = _with_failure(conditions, sets, new)
    return status


def _with_failure(
    conditions: list[Object], sets: Sequence[Object], new: Object | None
) -> list[Object]:
    """Return *conditions* with why a set gets no pods, the new one's reason before others'."""
    found = [
        failure
        for each in (*(() if new is None else (new,)), *sets)
        if (failure := condition_of((each.get("status") or {}).get("conditions") or [], _FAILURE))
    ]
    others = [each for each in conditions if each.get("type") != _FAILURE]
    if not found:
        return others
    return [*others, {**found[0], "lastUpdateTime": found[0].get("lastTransitionTime")}]


def with_progress(
    deployment: Object, status: Object, new: Object | None, now: datetime
) -> tuple[Object, float | None]:
    """Return *status* with how the rollout goes, and when to look whether it is overdue."""
    deadline = int(deployment["spec"].get("progressDeadlineSeconds", 600))
    conditions = status["conditions"]
    if deadline == _NO_DEADLINE:
        others = [each for each in conditions if each.get("type") != "Progressing"]
        return {**status, "conditions": others}, None
    current = condition_of(conditions, "Progressing")
    settled = (
        current is not None
        and current.get("reason") == _COMPLETE
        and status.get("replicas", 0) == status.get("updatedReplicas", 0)
    )
    if not settled:
        conditions = _progress(deployment, status, new, deadline, now)
    found = {**status, "conditions": conditions}
    return found, _until_overdue(deployment, found, deadline, now)


def complete(deployment: Object, status: Object) -> bool:
    """Tell whether every pod wanted is of the new template and available, and no other is left."""
    wanted = int(deployment["spec"].get("replicas", 1))
    counted = ("updatedReplicas", "replicas", "availableReplicas")
    if any(status.get(name, 0) != wanted for name in counted):
        return False
    return bool(status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0))


def _availability(
    deployment: Object, conditions: list[Object], available: int, now: datetime
) -> list[Object]:
    limits = limits_of(deployment["spec"])
    least = limits.least_available if limits.rolling else limits.replicas
    if available >= least:
        text = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        text = (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    return with_condition(conditions, "Available", *text, now)


def _progress(
    deployment: Object, status: Object, new: Object | None, deadline: int, now: datetime
) -> list[Object]:
    conditions: list[Object] = status["conditions"]
    name = deployment["metadata"]["name"]
    named = f'Deployment "{name}"'
    if new is not None:
        named = f'ReplicaSet "{new["metadata"]["name"]}"'
    if complete(deployment, status):
        text = f"{named} has successfully progressed."
        return _set(conditions, "True", _COMPLETE, text, now)
    if _moved(deployment.get("status") or {}, status):
        text = f"{named} is progressing."
        # Also when it says so already: when it last moved is what the deadline is counted from.
        return _replaced(conditions, "Progressing", "True", "ReplicaSetUpdated", text, now)
    if _overdue(conditions, deadline, now):
        return _set(conditions, "False", _TIMED_OUT, f"{named} has timed out progressing.", now)
    return conditions


def _set(
    conditions: list[Object], status: str, reason: str, message: str, now: datetime
) -> list[Object]:
    return with_condition(conditions, "Progressing", status, reason, message, now)


def with_condition(
    conditions: Sequence[Object], kind: str, status: str, reason: str, message: str, now: datetime
) -> list[Object]:
    """Return *conditions* with one set; unchanged status and reason leave it alone."""
    old = condition_of(conditions, kind)
    if old is not None and (old.get("status"), old.get("reason")) == (status, reason):
        return list(conditions)
    return _replaced(conditions, kind, status, reason, message, now)


def _replaced(
    conditions: Sequence[Object], kind: str, status: str, reason: str, message: str, now: datetime
) -> list[Object]:
    """Return *conditions* with one at the end, as Deployments have them.

    Theirs have a ``lastUpdateTime``, which moves even when only the reason does.
    """
    stamp = rfc3339(now)
    condition = {"type": kind, "status": status, "lastUpdateTime": stamp}
    fresh = dated(
        {**condition, "reason": reason, "message": message}, condition_of(conditions, kind), stamp
    )
    return [*(each for each in conditions if each.get("type") != kind), fresh]


def _moved(old: Object, new: Object) -> bool:
    """Tell whether more pods are new, fewer are old, or more are ready or available."""

    def number(status: Object, name: str) -> int:
        return int(status.get(name, 0))

    def outdated(status: Object) -> int:
        return number(status, "replicas") - number(status, "updatedReplicas")

    return (
        number(new, "updatedReplicas") > number(old, "updatedReplicas")
        or outdated(new) < outdated(old)
        or number(new, "readyReplicas") > number(old, "readyReplicas")
        or number(new, "availableReplicas") > number(old, "availableReplicas")
    )


def _overdue(conditions: list[Object], deadline: int, now: datetime) -> bool:
    current = condition_of(conditions, "Progressing")
    if current is None or current.get("reason") == _COMPLETE:
        return False
    if current.get("reason") == _TIMED_OUT:
        return True
    since = current.get("lastUpdateTime") or rfc3339(now)
    return parse_rfc3339(since) + timedelta(seconds=deadline) < now


def _until_overdue(
    deployment: Object, status: Object, deadline: int, now: datetime
) -> float | None:
    current = condition_of(status["conditions"], "Progressing")
    if current is None or current.get("reason") in (_COMPLETE, _TIMED_OUT):
        return None
    if complete(deployment, status):
        return None
    due = parse_rfc3339(current.get("lastUpdateTime") or rfc3339(now))
    return max(0.0, (due - now).total_seconds() + deadline) + 1.0


def _count(replica_set: Object, name: str) -> int:
    return int((replica_set.get("status") or {}).get(name, 0))


def paused_conditions(deployment: Object, conditions: list[Object], now: datetime) -> list[Object]:
    """Return *conditions* reporting a pause or its end, unless the rollout failed already."""
    current = condition_of(conditions, "Progressing")
    if current is not None and current.get("reason") == _TIMED_OUT:
        return conditions
    paused = current is not None and current.get("reason") == "DeploymentPaused"
    if deployment["spec"].get("paused") and not paused:
        return _set(conditions, "Unknown", "DeploymentPaused", "Deployment is paused", now)
    if not deployment["spec"].get("paused") and paused:
        return _set(conditions, "Unknown", "DeploymentResumed", "Deployment is resumed", now)
    return conditions
