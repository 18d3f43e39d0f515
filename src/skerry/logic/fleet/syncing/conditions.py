"""The state of an edge, for people and for the hub: the status of the SyncerConfig.

``Synced`` says in one line whether everything is at the edge. Each object that is not has a
condition of its own, its type being ``resource.group/namespace.name``; there is room for the
first hundred. What needs a person stands out under a name of its own: ``HubIdentityChanged``,
``DeletionsHeld``, ``ObjectsRefused``, ``EdgeForbidden``, ``KindsUnknown``, ``DiskFailing``.

Beside the conditions there are numbers (``objects``), what is held (``heldDeletions``) and which
version says so. The hub passes on what concerns others than the edge's own people.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import skerry
from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.machinery.conditions import dated
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target

# A SyncerConfig is read by people and travels on each heartbeat; more would serve neither.
MAX_OBJECTS = 100
_MAX_MESSAGE_LENGTH = 1024
_NAMED = 5
# Of objects nobody wants any more but which are still at the edge.
_LEFT = frozenset(("InUse", "NotRecorded"))


MAX_HELD_NAMES = 10
MAX_HELD_CLUSTERS = 20
# What the edge did not take, by what is done about it: the first of these is the reason.
_REFUSALS = {
    "NotOurs": "NotOurs",
    "EdgeForbidden": "Forbidden",
    "Rejected": "Invalid",
    "ImmutableField": "Invalid",
    "FieldConflict": "Invalid",
}
_REFUSED = ("NotOurs", "Forbidden", "Invalid")


@dataclass(frozen=True, slots=True)
class Objects:
    """How many objects are to be at the edge, are there as wanted, were refused, are not well."""

    wanted: int = 0
    applied: int = 0
    refused: int = 0
    unhealthy: int = 0


@dataclass(frozen=True, slots=True)
class HeldDeletions:
    """How many deletions wait for a person, the name to approve them by, and the first of them."""

    count: int
    approve: str
    names: tuple[str, ...]
    # Whose objects they are; empty where that is not known of all, or they are very many.
    clusters: tuple[ClusterName, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything the status is made of."""

    # The name of the SyncTarget, by which people know the edge.
    edge: str = ""
    objects: Objects = Objects()
    # Objects that are not as wanted.
    troubled: Mapping[ObjectRef, SyncOutcome] = field(default_factory=dict)
    # Set when the hub's store is not the one we know: what to do about it.
    identity_changed: str = ""
    # Set when deletions are held: what to do about it.
    deletions_held: str = ""
    held: HeldDeletions | None = None
    unknown_kinds: Sequence[str] = ()
    # Set when the syncer's own disk refuses to remember.
    disk_failing: str = ""


def conditions(standing: Standing, before: Sequence[Mapping[str, Any]], now: str) -> list[Object]:
    """Return the conditions; *before* lends its transition times where nothing changed."""
    made = [
        _synced(standing),
        _flag("HubIdentityChanged", standing.identity_changed, "OtherStore"),
        _flag("DeletionsHeld", standing.deletions_held, "OverBudget"),
        _refused(standing),
        _flag("EdgeForbidden", _forbidden(standing), "MissingRule"),
        _flag("KindsUnknown", ", ".join(standing.unknown_kinds), "NotServed"),
        _flag("DiskFailing", standing.disk_failing, "CannotRemember"),
    ]
    troubled = sorted(standing.troubled.items())[:MAX_OBJECTS]
    made.extend(_of_object(ref, outcome) for ref, outcome in troubled)
    known = {condition.get("type"): condition for condition in before}
    return [dated(condition, known.get(condition["type"]), now) for condition in made]


def report(
    config: Mapping[str, Any],
    standing: Standing,
    now: str,
    *,
    beat: bool,
    before: Standing | None = None,
) -> Plan:
    """Return the plan that has a SyncerConfig tell how things stand, and with *beat* when.

    *before* is what was reported last: numbers that are the same are not repeated.
    """
    known = config.get("status") or {}
    made = conditions(standing, known.get("conditions") or [], now)
    status: Object = {}
    if not same_conditions(known.get("conditions") or [], made):
        status["conditions"] = made
    reported = {} if before is None else _figures(before)
    for name, value in _figures(standing).items():
        if value != known.get(name) and (before is None or value != reported[name]):
            status[name] = value
    if beat:
        status["lastSyncerHeartbeatTime"] = now
    if not status:
        return NOTHING
    target = Target(SYNCER_CONFIGS, config["metadata"]["name"])
    patch = {"status": status}
    return Plan([Patch(target, patch, "Reported", subresource="status", quiet=True)])


def _figures(standing: Standing) -> Object:
    held = standing.held
    return {
        "objects": asdict(standing.objects),
        "heldDeletions": None if held is None else _held(held),
        "syncerVersion": skerry.__version__,
    }


def _held(held: HeldDeletions) -> Object:
    clusters = {"clusters": list(held.clusters)} if held.clusters else {}
    return {
        "count": held.count,
        "approve": held.approve,
        "names": list(held.names),
        **clusters,
    }


def same_conditions(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether two lists say the same, whenever they began to."""
    return _timeless(one) == _timeless(other)


def _timeless(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in item.items() if k != "lastTransitionTime"} for item in found]


def _synced(standing: Standing) -> Object:
    """Say whether all that is wanted is there; what was left behind is reported beside it."""
    troubled = [ref for ref, found in standing.troubled.items() if found.reason not in _LEFT]
    applied = standing.objects.applied
    if not troubled:
        return _condition("Synced", "True", "AllApplied", f"{applied} objects applied")
    message = f"{applied} objects applied; not as wanted: {_named(troubled)}"
    return _condition("Synced", "False", "ObjectsNotApplied", message)


def _refused(standing: Standing) -> Object:
    """Say what the edge does not take, and what can be done about the first of it."""
    found: dict[str, list[ObjectRef]] = {}
    for ref, outcome in standing.troubled.items():
        if outcome.state == "Failed" and outcome.reason in _REFUSALS:
            found.setdefault(_REFUSALS[outcome.reason], []).append(ref)
    kind = "ObjectsRefused"
    if not found:
        return _flag(kind, "", "")
    said = [f"{name}: {_named(found[name])}" for name in _REFUSED if name in found]
    reason = next(name for name in _REFUSED if name in found)
    first = min(found[reason])
    if reason == "NotOurs":
        place = f" -n {first.namespace}" if first.namespace else ""
        resource = first.group_resource
        advice = f"to take one over: skerry edge adopt {standing.edge} {resource}/{first.name}"
        advice += place
    else:
        advice = f"{first.text}: {standing.troubled[first].message}"
    return _condition(kind, "True", reason, "; ".join([*said, advice]))


def _named(refs: Collection[ObjectRef]) -> str:
    """Name the first of some objects, and count the others."""
    named = ", ".join(ref.text for ref in heapq.nsmallest(_NAMED, refs))
    return named + (f" and {len(refs) - _NAMED} more" if len(refs) > _NAMED else "")


def _forbidden(standing: Standing) -> str:
    texts = {
        outcome.message
        for outcome in standing.troubled.values()
        if outcome.reason == "EdgeForbidden"
    }
    if not texts:
        return ""
    return "; ".join([*sorted(texts), "what `skerry edge manifest` prints now would allow it"])


def _flag(kind: str, message: str, reason: str) -> Object:
    if message:
        return _condition(kind, "True", reason, message)
    return _condition(kind, "False", "AsExpected", "")


def _of_object(ref: ObjectRef, outcome: SyncOutcome) -> Object:
    place = f"{ref.namespace}.{ref.name}" if ref.namespace else ref.name
    kind = f"{ref.group_resource}/{place.replace(':', '_')}"
    status = "Unknown" if outcome.state in ("Waiting", "Held") else "False"
    return _condition(kind, status, outcome.reason, outcome.message)


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:_MAX_MESSAGE_LENGTH],
    }
