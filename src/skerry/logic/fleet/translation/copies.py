"""The copy of an object that goes into a mailbox, and when one there is as it should be.

Left behind at the source: ``managedFields``, ``ownerReferences``, ``resourceVersion``,
``selfLink``, ``uid`` and whatever else the server keeps of an object; ``status``, which the edge
will have to say something about; finalizers, because whoever put them there works on the source
and would never release the copy; and, among labels and annotations, the keys of the workspace
layer and the notes of tools. Everything else is copied, and whatever the source no longer has goes
from the copy; so do notes of tools that were copied once.

A copy keeps what belongs to where it is: its status, finalizers and owners, the workspace layer's
keys, the annotations by which the syncer reports, and the record of whose copy it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import orjson

from skerry.api.edge import (
    APPLIED,
    CAUSE,
    CHANGED_BY,
    DOMAIN,
    HAND_OVER_TO,
    HANDED_OVER,
    OWNER_WORKSPACE,
    PROJECTED,
    PROJECTED_VALUE,
    SOURCE_GENERATION,
    SYNC_ERROR,
    UPSYNCED,
    WITHHELD_FROM,
    is_tool_key,
)
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.fleet.translation.categories import NAMESPACES

# What the syncer says of an object in the mailbox it is in.
_SYNCERS_OWN = frozenset((APPLIED, CAUSE, SYNC_ERROR, UPSYNCED))
# Whose a copy is, and what is asked of the source about that; nobody's content.
_OWNERSHIP = frozenset((HAND_OVER_TO, HANDED_OVER, OWNER_WORKSPACE, WITHHELD_FROM))
_LOCAL = _SYNCERS_OWN | _OWNERSHIP | {SOURCE_GENERATION, CHANGED_BY}

_NOT_CONTENT = frozenset(("apiVersion", "kind", "metadata", "status"))
_KEPT_METADATA = ("finalizers", "generateName", "ownerReferences", "resourceVersion", "uid")
# What a server itself puts into an object of a type, at its source as in a mailbox: neither
# copied nor compared. Token Secrets are not copied, so references to them would lead nowhere.
_SERVERS_OWN: Mapping[GroupResource, frozenset[str]] = {
    NAMESPACES: frozenset(("spec",)),
    GroupResource("", "serviceaccounts"): frozenset(("secrets",)),
}
_NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"


def is_system_key(key: str) -> bool:
    """Tell whether a label or annotation belongs to the workspace layer."""
    if DOMAIN in key:
        return False
    return ".kcp.io/" in key or key.startswith("kcp.io/")


def copied(resource: GroupResource, source: Object) -> Object:
    """Return what of *source* goes to a mailbox, before customization; shares its content."""
    metadata: Object = {"name": source["metadata"]["name"]}
    if source["metadata"].get("namespace"):
        metadata["namespace"] = source["metadata"]["namespace"]
    for field in ("labels", "annotations"):
        found = _copied_keys(source["metadata"].get(field))
        if kept := {key: value for key, value in found.items() if not is_tool_key(key)}:
            metadata[field] = kept
    return {
        "apiVersion": source.get("apiVersion", ""),
        "kind": source.get("kind", ""),
        "metadata": metadata,
        **_content(resource, source),
    }


def labelled(copy: Object) -> Object:
    """Return *copy* marked as one."""
    metadata = copy["metadata"]
    labels = {**(metadata.get("labels") or {}), PROJECTED: PROJECTED_VALUE}
    return {**copy, "metadata": {**metadata, "labels": labels}}


def bare_namespace(name: str) -> Object:
    """Return a Namespace that is there only to hold copies."""
    return labelled({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def digest(resource: GroupResource, obj: Object) -> bytes:
    """Return a short proof of everything that is compared: content, labels and annotations.

    Equal for a copy to be written and the same one read back from where it was written.
    """
    metadata = obj["metadata"]
    compared = (
        _content(resource, obj),
        _copied_keys(metadata.get("labels")),
        _copied_keys(metadata.get("annotations")),
    )
    text = orjson.dumps(compared, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=16).digest()


def replacement(resource: GroupResource, live: Object, copy: Object) -> Object:
    """Return the object to put in place of *live*, so that it is *copy* and still itself."""
    here, wanted = live["metadata"], copy["metadata"]
    metadata: Object = {**wanted}
    for field in _KEPT_METADATA:
        if field in here:
            metadata[field] = here[field]
    for field in ("labels", "annotations"):
        kept, new = _local_keys(here.get(field)), wanted.get(field) or {}
        if OWNER_WORKSPACE in new:  # the whole record is replaced
            kept = {key: value for key, value in kept.items() if key not in _OWNERSHIP}
        merged = {**kept, **new}
        metadata.pop(field, None)
        if merged:
            metadata[field] = merged
    result: Object = {**copy, "metadata": metadata}
    for field in ("status", *_SERVERS_OWN.get(resource, ())):
        if field in live:
            result[field] = live[field]
    return result


def _content(resource: GroupResource, obj: Object) -> Object:
    own = _SERVERS_OWN.get(resource, frozenset())
    return {k: v for k, v in obj.items() if k not in _NOT_CONTENT and k not in own}


def _copied_keys(found: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (found or {}).items() if not _is_local(key)}


def _local_keys(found: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (found or {}).items() if _is_local(key)}


def _is_local(key: str) -> bool:
    """Tell whether a key says something about the place an object is in."""
    return is_system_key(key) or key in _LOCAL or key == _NAMESPACE_NAME_LABEL
