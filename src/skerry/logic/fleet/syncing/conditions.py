"""The state of an edge, for people: conditions on the SyncerConfig.

``Synced`` says in one line whether everything is at the edge. Each object that is not has a
condition of its own, its type being ``resource.group/namespace.name``; there is room for the
first hundred. What needs a person stands out under a name of its own: ``HubIdentityChanged``,
``DeletionsHeld``, ``EdgeForbidden``, ``KindsUnknown``, ``DiskFailing``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.machinery.plan import NOTHING, Patch, Plan, Target

# A SyncerConfig is read by people and travels on each heartbeat; more would serve neither.
MAX_OBJECTS = 100
_MAX_MESSAGE_LENGTH = 1024
_NAMED = 5
# Of objects nobody wants any more but which are still at the edge.
_LEFT = frozenset(("InUse", "NotRecorded"))


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything the conditions are made of."""

    # Objects at the edge as wanted, and those that are not.
    applied: int = 0
    troubled: Mapping[ObjectRef, SyncOutcome] = field(default_factory=dict)
    # Set when the hub's store is not the one we know: what to do about it.
    identity_changed: str = ""
    # Set when deletions are held: what to do about it.
    deletions_held: str = ""
    unknown_kinds: Sequence[str] = ()
    # Set when the syncer's own disk refuses to remember.
    disk_failing: str = ""


def conditions(standing: Standing, before: Sequence[Mapping[str, Any]], now: str) -> list[Object]:
    """Return the conditions; *before* lends its transition times where nothing changed."""
    made = [
        _synced(standing),
        _flag("HubIdentityChanged", standing.identity_changed, "OtherStore"),
        _flag("DeletionsHeld", standing.deletions_held, "OverBudget"),
        _flag("EdgeForbidden", _forbidden(standing), "MissingRule"),
        _flag("KindsUnknown", ", ".join(standing.unknown_kinds), "NotServed"),
        _flag("DiskFailing", standing.disk_failing, "CannotRemember"),
    ]
    troubled = sorted(standing.troubled.items())[:MAX_OBJECTS]
    made.extend(_of_object(ref, outcome) for ref, outcome in troubled)
    known = {condition.get("type"): condition for condition in before}
    for condition in made:
        old = known.get(condition["type"])
        same = old is not None and old.get("status") == condition["status"]
        condition["lastTransitionTime"] = old["lastTransitionTime"] if same and old else now
    return made


def report(config: Mapping[str, Any], standing: Standing, now: str, *, beat: bool) -> Plan:
    """Return the plan that has a SyncerConfig tell how things stand, and with *beat* when."""
    before = (config.get("status") or {}).get("conditions") or []
    made = conditions(standing, before, now)
    status: Object = {}
    if not same_conditions(before, made):
        status["conditions"] = made
    if beat:
        status["lastSyncerHeartbeatTime"] = now
    if not status:
        return NOTHING
    target = Target(SYNCER_CONFIGS, config["metadata"]["name"])
    patch = {"status": status}
    return Plan([Patch(target, patch, "Reported", subresource="status", quiet=True)])


def same_conditions(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether two lists say the same, whenever they began to."""
    return _timeless(one) == _timeless(other)


def _timeless(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in item.items() if k != "lastTransitionTime"} for item in found]


def _synced(standing: Standing) -> Object:
    """Say whether all that is wanted is there; what was left behind is reported beside it."""
    troubled = [ref for ref, found in standing.troubled.items() if found.reason not in _LEFT]
    if not troubled:
        return _condition("Synced", "True", "AllApplied", f"{standing.applied} objects applied")
    named = ", ".join(ref.text for ref in sorted(troubled)[:_NAMED])
    more = f" and {len(troubled) - _NAMED} more" if len(troubled) > _NAMED else ""
    message = f"{standing.applied} objects applied; not as wanted: {named}{more}"
    return _condition("Synced", "False", "ObjectsNotApplied", message)


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
        "lastTransitionTime": "",
    }
