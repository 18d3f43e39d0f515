"""ControllerRevisions: the templates a StatefulSet or DaemonSet has had, newest numbered highest.

The data of a revision is a patch that brings its template back, in the form ``kubectl rollout
undo`` applies, and written as Kubernetes' controllers write it: others compare it byte by byte with
what they make of the template themselves. Going back to an old template gives its revision a new,
highest number.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


def template_of(revision: Object) -> Object:
    """Return the template that a revision brings back."""
    template: Object = _plain(revision.get("data") or {})["spec"]["template"]
    template.pop("$patch", None)
    return template


def _plain(data: Object) -> Object:
    """Return the data of a revision, however it was written, as ``revision_data`` does."""
    found = copy.deepcopy(data)
    template = (found.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata")
    if metadata is not None and metadata.get("creationTimestamp", "") is None:
        del metadata["creationTimestamp"]
    return found


def _written(data: Object) -> Object:
    """Return *data* as Go writes a template: what is never left out, and keys in order."""
    template = data["spec"]["template"]
    metadata = {"creationTimestamp": None, **(template.get("metadata") or {})}
    spec = dict(template.get("spec") or {})
    for group in ("initContainers", "containers"):
        if spec.get(group):
            spec[group] = [{"resources": {}, **each} for each in spec[group]]
    shown: Object = _in_order({**template, "metadata": metadata, "spec": spec})
    return {"spec": {"template": shown}}


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def revised(owner: Object, kind: str, revisions: Sequence[Object]) -> History:
    """Return the present template's revision, found or to be created."""
    data = revision_data(owner)
    number = max((int(item.get("revision", 0)) for item in revisions), default=0)
    for item in revisions:
        if not _is_of(item, data):
            continue
        actions: tuple[Action, ...] = ()
        if int(item.get("revision", 0)) < number:
            patch = {"metadata": {"uid": item["metadata"]["uid"]}, "revision": number + 1}
            actions = (Patch(_target(item), patch, reason="RolledBack", absent_is_fine=True),)
        labels = item["metadata"].get("labels") or {}
        name = item["metadata"]["name"]
        return History(labels.get(REVISION_LABEL, name.rpartition("-")[2]), name, actions)
    return _created(owner, kind, data, number + 1)


def _is_of(revision: Object, data: Object) -> bool:
    """Tell whether a revision, of whichever version of ours, has that template."""
    found = revision.get("data") or {}
    return found == data or _in_order(found) == _written(data)


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
        "data": _written(data),
        "revision": number,
    }
    if annotations := metadata.get("annotations"):
        # kubectl's rollout history shows the cause of the change from here.
        revision["metadata"]["annotations"] = dict(annotations)
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
