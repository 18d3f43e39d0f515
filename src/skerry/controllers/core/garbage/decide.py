"""What to do about one node: let go of its dependents, wait for them, or follow its owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skerry.api.objects import Object
from skerry.controllers.core.garbage.graph import FOREGROUND, ORPHAN
from skerry.controllers.core.garbage.observe import Observed, Owner
from skerry.logic.machinery.plan import (
    NOTHING,
    Action,
    Announcement,
    Delete,
    Patch,
    Plan,
    Propagation,
)

# Informers that are not synced yet, or types that are not served: nothing announces the end.
_REQUEUE_AFTER_SECONDS = 5.0
_UNKNOWN_OWNER_SECONDS = 30.0


def decide(observed: Observed) -> Plan:
    """Orphan, release, or delete; each only on what was verified."""
    metadata = observed.live["metadata"]
    if metadata.get("deletionTimestamp"):
        return _decide_deleting(observed, metadata.get("finalizers") or [])
    return _decide_staying(observed)


# A node that is being deleted.


def _decide_deleting(observed: Observed, finalizers: list[str]) -> Plan:
    if ORPHAN not in finalizers and FOREGROUND not in finalizers:
        return NOTHING
    if not observed.complete:
        return Plan(requeue_after_seconds=_REQUEUE_AFTER_SECONDS)
    if ORPHAN in finalizers:
        return _orphan(observed)
    blocking = [item for item in observed.dependents if item.blocks(observed.node.key)]
    if blocking:
        return NOTHING  # each is looked at by itself; the last one to go enqueues this one
    return Plan([_without_finalizer(observed, FOREGROUND, "DependentsGone")])


def _orphan(observed: Observed) -> Plan:
    """Make every dependent forget this owner; only then let it go."""
    uid = observed.node.key.uid
    patches: list[Action] = [
        Patch(
            dependent.target,
            {
                "metadata": {
                    "uid": dependent.key.uid,
                    "resourceVersion": dependent.resource_version,
                    "ownerReferences": [ref.raw() for ref in dependent.owners if ref.uid != uid]
                    or None,
                }
            },
            reason="OwnerOrphansDependents",
            absent_is_fine=True,
        )
        for dependent in observed.dependents
    ]
    return Plan([*patches, _without_finalizer(observed, ORPHAN, "DependentsOrphaned")])


def _without_finalizer(observed: Observed, name: str, reason: str) -> Patch:
    metadata = observed.live["metadata"]
    kept = [item for item in metadata["finalizers"] if item != name]
    return Patch(
        observed.node.target,
        {
            "metadata": {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": kept or None,
            }
        },
        reason=reason,
        absent_is_fine=True,
    )


# A node that is not.


def _decide_staying(observed: Observed) -> Plan:
    owners = observed.owners
    announcements = _announcements(observed)
    if not owners:
        return NOTHING
    if any(owner.state == "unknown" for owner in owners):
        return Plan(requeue_after_seconds=_UNKNOWN_OWNER_SECONDS)
    gone = [owner for owner in owners if owner.state == "absent"]
    waiting = [owner for owner in owners if owner.state == "waiting"]
    if any(owner.state in ("solid", "misplaced") for owner in owners):
        actions = [_without_owners(observed, [*gone, *waiting])] if gone or waiting else []
        # An owner of a type not read yet may go before it is: nothing would tell of its end.
        again = None if observed.complete else _REQUEUE_AFTER_SECONDS
        return Plan(actions, announcements, requeue_after_seconds=again)
    return Plan([*_unblocked(observed, waiting), _delete(observed, waiting)], announcements)


def _without_owners(observed: Observed, removed: Iterable[Owner]) -> Patch:
    """Drop references that lead nowhere; the owners that are left keep the object."""
    uids = {owner.ref.uid for owner in removed}
    return _owner_references(
        observed,
        lambda raw: None if raw.get("uid") in uids else raw,
        "OwnerGone",
    )


def _unblocked(observed: Observed, waiting: list[Owner]) -> list[Action]:
    """Break a circle: dependents in foreground deletion must not wait for us who wait for them."""
    if not waiting or not any(item.waits_for_dependents for item in observed.dependents):
        return []
    if not any(raw.get("blockOwnerDeletion") for raw in _raw_owners(observed)):
        return []
    return [
        _owner_references(
            observed,
            lambda raw: {**raw, "blockOwnerDeletion": False},
            "CircularDependency",
        )
    ]


def _owner_references(
    observed: Observed,
    change: Callable[[Object], Object | None],
    reason: str,
) -> Patch:
    """Change the references that were read: an owner that came since keeps the object."""
    metadata = observed.live["metadata"]
    changed = [change(raw) for raw in _raw_owners(observed)]
    kept = [raw for raw in changed if raw is not None]
    known = {key: metadata[key] for key in ("uid", "resourceVersion")}
    patch = {"metadata": {**known, "ownerReferences": kept or None}}
    return Patch(observed.node.target, patch, reason=reason, absent_is_fine=True)


def _delete(observed: Observed, waiting: list[Owner]) -> Delete:
    """Delete the object that was read, and no other.

    When an owner waits for it, whatever depends on it goes first; else as its finalizers say.
    """
    metadata = observed.live["metadata"]
    finalizers = metadata.get("finalizers") or ()
    propagation: Propagation = "Background"
    if ORPHAN in finalizers:
        propagation = "Orphan"
    elif FOREGROUND in finalizers or (waiting and observed.dependents):
        propagation = "Foreground"
    # Breaking a circle changes the version; the uid still says which object is meant.
    circular = bool(_unblocked(observed, waiting))
    return Delete(
        observed.node.target,
        reason="OwnerDeleting" if waiting else "OwnerGone",
        uid=metadata["uid"],
        resource_version="" if circular else metadata["resourceVersion"],
        propagation=propagation,
    )


def _announcements(observed: Observed) -> list[Announcement]:
    """Tell the user of references across namespaces, which never keep anything alive."""
    metadata = observed.live["metadata"]
    about = {
        "apiVersion": str(observed.node.target.gvr.group_version),
        "kind": observed.node.kind,
        "metadata": metadata,
    }
    place = metadata.get("namespace", "")
    return [
        Announcement(
            about,
            "Warning",
            "OwnerRefInvalidNamespace",
            f"ownerRef [{owner.ref.api_version}/{owner.ref.kind}, namespace: {place}, "
            f"name: {owner.ref.name}, uid: {owner.ref.uid}] does not exist in namespace "
            f'"{place}"',
        )
        for owner in observed.owners
        if owner.elsewhere or owner.state == "misplaced"
    ]


def _raw_owners(observed: Observed) -> list[Object]:
    return list(observed.live["metadata"].get("ownerReferences") or ())
