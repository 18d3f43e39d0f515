"""What to do about a terminating namespace: delete, say how far it is, or let it go."""

from __future__ import annotations

import copy
from collections import Counter
from datetime import datetime

from skerry.api.objects import Object
from skerry.controllers.core.namespace.keys import NAMESPACES
from skerry.controllers.core.namespace.observe import KUBERNETES_FINALIZER, Content, Observed
from skerry.kit.timestamps import parse_rfc3339, rfc3339
from skerry.logic.machinery.conditions import set_conditions
from skerry.logic.machinery.plan import Action, Delete, DeleteCollection, Plan, Target, Update

# Content that waits for somebody's finalizer is looked at less and less often.
_PATIENCE = ((10.0, 1.0), (60.0, 5.0))
_MAX_WAIT_SECONDS = 15.0

_ONLY_WHEN_SURE = (
    ("NamespaceContentRemaining", "False"),
    ("NamespaceFinalizersRemaining", "False"),
)


def decide(observed: Observed, now: datetime) -> Plan:
    """Delete what is there; with nothing left and nothing unread, finalize."""
    deletions = [action for content in observed.content for action in _deletions(observed, content)]
    status = _status_update(observed, now)
    if deletions:
        # Most of it goes at once, so the next look follows immediately.
        return Plan([*deletions, *status], requeue_after_seconds=0.0)
    if observed.content or observed.undiscovered or observed.unread:
        return Plan(status, requeue_after_seconds=_wait_seconds(observed, now))
    return Plan([_finalize(observed)])


def _deletions(observed: Observed, content: Content) -> list[Action]:
    if not content.live:
        return []
    key = observed.key
    if content.deletes_collections:
        return [
            DeleteCollection(
                content.gvr,
                reason="NamespaceTerminating",
                namespace=key.name,
                cluster=key.cluster,
                propagation="Background",
            )
        ]
    return [
        Delete(
            Target(content.gvr, name, key.name, key.cluster),
            reason="NamespaceTerminating",
            uid=uid,
            propagation="Background",
        )
        for name, uid in content.live
    ]


def _finalize(observed: Observed) -> Update:
    wanted = copy.deepcopy(observed.namespace)
    finalizers = wanted["spec"]["finalizers"]
    wanted["spec"]["finalizers"] = [name for name in finalizers if name != KUBERNETES_FINALIZER]
    return Update(_target(observed), wanted, reason="ContentRemoved", subresource="finalize")


def _status_update(observed: Observed, now: datetime) -> list[Action]:
    """Return the update of the conditions, unless they are as they should be."""
    wanted = copy.deepcopy(observed.namespace)
    status = wanted.setdefault("status", {})
    status["phase"] = "Terminating"
    status["conditions"] = set_conditions(
        status.get("conditions") or (), conditions(observed), rfc3339(now)
    )
    if status == observed.namespace.get("status"):
        return []
    return [Update(_target(observed), wanted, reason="ConditionsChanged", subresource="status")]


def conditions(observed: Observed) -> list[Object]:
    """Return the conditions Kubernetes gives a terminating namespace.

    Of content that could not all be read nothing good is said: what was reported before stays.
    """
    undiscovered = ", ".join(observed.undiscovered)
    unread = ", ".join(observed.unread)
    counts = ", ".join(
        f"{content.gvr.resource}.{content.gvr.group} has {content.total} resource instances"
        for content in observed.content
    )
    held: Counter[str] = Counter()
    for content in observed.content:
        held.update(dict(content.finalizers))
    finalizers = ", ".join(f"{name} in {held[name]} resource instances" for name in sorted(held))
    found = [
        _condition(
            "NamespaceDeletionDiscoveryFailure",
            ("DiscoveryFailed", f"Discovery failed for some groups: {undiscovered}"),
            ("ResourcesDiscovered", "All resources successfully discovered"),
            failed=bool(undiscovered),
        ),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            ("GroupVersionParsingFailed", ""),
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
            failed=False,
        ),
        _condition(
            "NamespaceDeletionContentFailure",
            ("ContentDeletionFailed", f"Failed to delete all resource types: {unread}"),
            (
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            failed=bool(unread),
        ),
        _condition(
            "NamespaceContentRemaining",
            ("SomeResourcesRemain", f"Some resources are remaining: {counts}"),
            ("ContentRemoved", "All content successfully removed"),
            failed=bool(counts),
        ),
        _condition(
            "NamespaceFinalizersRemaining",
            (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {finalizers}",
            ),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            failed=bool(finalizers),
        ),
    ]
    unsure = bool(unread or undiscovered)
    return [c for c in found if not (unsure and (c["type"], c["status"]) in _ONLY_WHEN_SURE)]


def _condition(kind: str, bad: tuple[str, str], good: tuple[str, str], *, failed: bool) -> Object:
    reason, message = bad if failed else good
    status = "True" if failed else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _wait_seconds(observed: Observed, now: datetime) -> float:
    """Return when to look again: half the longest grace period, or less often as time goes by."""
    grace = max((content.grace_seconds for content in observed.content), default=0)
    if grace:
        return min(grace / 2 + 1, _MAX_WAIT_SECONDS)
    since = now - parse_rfc3339(observed.namespace["metadata"]["deletionTimestamp"])
    for age, wait in _PATIENCE:
        if since.total_seconds() < age:
            return wait
    return _MAX_WAIT_SECONDS


def _target(observed: Observed) -> Target:
    return Target(NAMESPACES, observed.key.name, cluster=observed.key.cluster)
