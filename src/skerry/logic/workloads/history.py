"""ControllerRevisions: the templates a StatefulSet or DaemonSet has had, newest numbered highest.

The data of a revision is a patch that brings its template back, in the form ``kubectl rollout
undo`` applies. Going back to an old template gives its revision a new, highest number.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.logic.machinery.plan import Action, Create, Delete, Patch, Target
from skerry.logic.workloads.owners import owner_reference
from skerry.logic.workloads.revisions import content_hash

REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")
REVISION_LABEL = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class History:
    """The revision of the present template, and what must be written for it to be the newest."""

    hash: str
    name: str
    actions: tuple[Action, ...]


def revision_data(owner: Object) -> Object:
    """Return the patch that brings the owner's present template back."""
    template = copy.deepcopy(owner["spec"]["template"])
    template["$patch"] = "replace"
    return {"spec": {"template": template}}


def revised(owner: Object, kind: str, revisions: Sequence[Object]) -> History:
    """Return the present template's revision, found or to be created."""
    data = revision_data(owner)
    number = max((int(item.get("revision", 0)) for item in revisions), default=0)
    for item in revisions:
        if item.get("data") != data:
            continue
        actions: tuple[Action, ...] = ()
        if int(item.get("revision", 0)) < number:
            patch = {"metadata": {"uid": item["metadata"]["uid"]}, "revision": number + 1}
            actions = (Patch(_target(item), patch, reason="RolledBack", absent_is_fine=True),)
        labels = item["metadata"].get("labels") or {}
        name = item["metadata"]["name"]
        return History(labels.get(REVISION_LABEL, name.rpartition("-")[2]), name, actions)
    return _created(owner, kind, data, number + 1)


def _created(owner: Object, kind: str, data: Object, number: int) -> History:
    collisions = (owner.get("status") or {}).get("collisionCount")
    named = content_hash(data, collisions)
    metadata = owner["metadata"]
    name = f"{metadata['name'][:223]}-{named}"
    labels = dict((owner["spec"]["template"].get("metadata") or {}).get("labels") or {})
    revision: Object = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {**labels, REVISION_LABEL: named},
            "ownerReferences": [owner_reference(owner, "apps/v1", kind)],
        },
        "data": data,
        "revision": number,
    }
    return History(named, name, (Create(_target(revision), revision, reason="NewTemplate"),))


def forgotten(revisions: Sequence[Object], used: set[str], limit: int | None) -> list[Action]:
    """Return deletions of the oldest revisions that nothing uses, beyond *limit* of them.

    *used* are the hashes that pods have, the present one included.
    """
    spare = [item for item in revisions if _hash(item) not in used]
    spare.sort(key=lambda item: int(item.get("revision", 0)))
    kept = 10 if limit is None else limit
    return [
        Delete(_target(item), reason="HistoryLimit", uid=item["metadata"]["uid"])
        for item in spare[: max(0, len(spare) - kept)]
    ]


def _hash(revision: Object) -> str:
    return str((revision["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _target(revision: Object) -> Target:
    metadata = revision["metadata"]
    return Target(REVISIONS, metadata["name"], metadata["namespace"])
