"""The input tables ``sources`` and ``copies``: objects of one kind, as small records.

One watch serves source workspaces and mailboxes alike: a kind bound from one export is watched
everywhere at once (``deployments:<identity>``), as is a kind that every workspace has. Only what
one workspace defines for itself is watched there alone. So sources and copies are rows of the same
``Records``, distinguished by their cluster.

A record keeps of an object what decisions need: whether it is a copy, a digest of its content, its
labels where it can be selected by them; and the text of the copy to be made of it, unless it is a
copy itself. Names, which thousands of mailboxes have in common, are kept once. So ten thousand
copies cost a few hundred bytes each. This is why these two are plain dictionaries of dictionaries
and no tables of the kernel: a key per row would cost as much as the row.

The digest of a source is that of the copy to be made of it, label and all. So "is the copy what it
should be" is a comparison of two digests that are there already, and no object is made or read
for the million pairs that are equal. Where something is customized, the digest of the source says
nothing about the copy, and the object is made (``customized``).

Copies from before owners were recorded may have notes of deployment tools that were copied once and
are not any more. Their digest differs from every source's; so a copy without an owner also keeps
the digest that it would have without such notes, and is recognized by it (``plain``, ``content``).

Two questions are asked of an event before anything is done about it: is it news (another
resourceVersion than the one that is known), and does anything depend on it. Each namespace of each
mailbox has a ``default`` ServiceAccount and the ConfigMap with the root certificate; they are
dropped unless somebody has labelled one as a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

import msgspec
import orjson

from skerry.api.edge import binding_reference, is_projected, is_system_object, is_upsynced
from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import CLUSTER_ANNOTATION, ClusterName, ObjectRef
from skerry.logic.fleet.customization.customize import (
    CustomizerName,
    customizer_name,
    wants_customization,
)
from skerry.logic.fleet.translation.categories import (
    BINDINGS,
    DEFINITIONS,
    NAMESPACES,
    is_never_copied,
)
from skerry.logic.fleet.translation.copies import copied, digest, labelled
from skerry.logic.fleet.translation.ownership import Claim, Owned, claim_of, owned_of
from skerry.logic.fleet.translation.source_generation import recorded_generation

# The cluster of a watch that shows a kind in all workspaces.
EVERYWHERE = "*"
_NO_LABELS: Mapping[str, str] = {}
# What is larger is somebody's own: it is not found a second time, and would fill what is shared.
_SHORT, _FEW = 2048, 8
# Kinds of which each workspace has objects that are like those of others.
_ALIKE = frozenset((BINDINGS, NAMESPACES))
# Kinds of which each namespace has one object for itself: nobody sends it, and it is in the way of
# nothing. Of other kinds it matters that there is one: types, and releases once sent.
_OF_EACH_NAMESPACE = frozenset(
    (GroupResource("", "configmaps"), GroupResource("", "serviceaccounts"))
)


class WatchKey(NamedTuple):
    """What is watched: a type at a version, everywhere or in one cluster.

    ``presence`` watches know names only, for types that never travel but may be in the way.
    """

    cluster: str
    group: str
    version: str
    resource: str
    identity: str = ""
    presence: bool = False

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def gvr(self) -> GroupVersionResource:
        """The type as a watch names it."""
        resource = f"{self.resource}:{self.identity}" if self.identity else self.resource
        return GroupVersionResource(self.group, self.version, resource)


class Record(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an object.

    There are many and each event makes one: made in C, and nothing for the garbage collector to
    walk, as none can be part of a circle.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    projected: bool
    upsynced: bool
    system: bool
    being_deleted: bool
    digest: bytes
    text: bytes | None
    labels: Mapping[str, str]
    customized: bool
    customizer: CustomizerName | None
    # Of an APIBinding or CustomResourceDefinition: what it says about types.
    lean: bytes | None
    # Of a copy: whose it is. Of a source: since when it claims its name, and to whom that goes.
    owned: Owned | None
    claim: Claim | None
    # Of a copy that records no owner: a digest by which its source is known, where tools' notes
    # that were copied once make the other one differ.
    plain: bytes | None
    # Of a source: its own. Of a copy: that of the source it was made of, where it records one.
    generation: int

    @property
    def content(self) -> bytes:
        """Return what the digest of the source of this copy should be."""
        return self.plain or self.digest

    @property
    def is_source(self) -> bool:
        """Whether the object may be copied."""
        return self.text is not None and not self.being_deleted

    @property
    def is_foreign(self) -> bool:
        """Whether the object, found in a mailbox, is somebody else's."""
        return not (self.projected or self.system)

    def copy(self) -> Object:
        """Return the copy to be made of the object, before customization."""
        found: Object = orjson.loads(self.text or b"{}")
        return found


def record_of(key: WatchKey, obj: Object) -> Record:
    """Return what is kept of *obj*."""
    resource, metadata = key.group_resource, obj["metadata"]
    projected = is_projected(obj)
    system = is_system_object(resource, obj)
    cluster = intern((metadata.get("annotations") or {}).get(CLUSTER_ANNOTATION) or key.cluster)
    text, content, claim = None, b"", None
    owned = plain = None
    if projected and not key.presence:
        content, owned = digest(resource, obj), owned_of(obj)
        if owned is None and (proof := digest(resource, copied(resource, obj))) != content:
            plain = proof
    elif not key.presence and not is_never_copied(resource, obj):
        copy = copied(resource, obj)
        content = digest(resource, labelled(copy))
        text = bytes(memoryview(orjson.dumps(copy)))
        if resource in _ALIKE and len(text) <= _SHORT:
            text = _kept_once(text)
        claim = claim_of(cluster, obj)
    return Record(
        cluster,
        intern(metadata.get("namespace", "")),
        intern(metadata["name"]),
        metadata.get("uid", ""),
        str(metadata.get("resourceVersion", "")),
        projected,
        is_upsynced(obj),
        system,
        "deletionTimestamp" in metadata,
        content,
        text,
        _NO_LABELS if metadata.get("namespace") else _labels(metadata.get("labels")),
        wants_customization(obj),
        customizer_name(obj),
        _lean(resource, obj),
        owned,
        claim,
        plain,
        recorded_generation(obj) if projected else metadata.get("generation", 0),
    )


def _labels(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    if labels and len(labels) <= _FEW:
        return _shared_labels(tuple(labels.items()))
    return labels or _NO_LABELS


@lru_cache(maxsize=4096)
def _shared_labels(labels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return the labels that equal ones were found as first: bindings of one export have the same
    in every mailbox."""
    return dict(labels)


def _lean(resource: GroupResource, obj: Object) -> bytes | None:
    if resource == BINDINGS:
        return _kept_once(orjson.dumps(_lean_binding(obj)))
    return _kept_once(orjson.dumps(lean_definition(obj))) if resource == DEFINITIONS else None


@lru_cache(maxsize=4096)
def _kept_once(text: bytes) -> bytes:
    """Return the first text equal to *text*: workspaces that bind alike say so in equal words."""
    return bytes(memoryview(text))


def _lean_binding(obj: Object) -> Object:
    """Return what a binding says about types.

    Its own name matters only where it brings types that travel, for then it goes along. The
    others have names of their own in every workspace, and would make all workspaces differ.
    """
    status = obj.get("status") or {}
    path, name = binding_reference(obj)
    goes_along = any(
        category_of(GroupResource(bound.get("group", ""), bound["resource"])).to_mailbox
        for bound in status.get("boundResources") or ()
    )
    return {
        "metadata": {"name": obj["metadata"]["name"] if goes_along else ""},
        "spec": {"reference": {"export": {"path": path, "name": name}}},
        "status": {
            "apiExportClusterName": status.get("apiExportClusterName", ""),
            "boundResources": [
                {
                    "group": bound.get("group", ""),
                    "resource": bound["resource"],
                    "schema": {
                        "name": bound["schema"]["name"],
                        "identityHash": bound["schema"].get("identityHash", ""),
                    },
                }
                for bound in status.get("boundResources") or ()
            ],
        },
    }


def lean_definition(obj: Object) -> Object:
    """Return what a definition or schema says about its type, without how objects look."""
    spec, metadata = obj["spec"], obj["metadata"]
    found: Object = {
        "metadata": {
            field: metadata[field]
            for field in ("name", "uid", "resourceVersion", "annotations")
            if field in metadata
        },
        "spec": {
            "group": spec.get("group", ""),
            "names": {field: spec["names"][field] for field in ("plural", "kind")},
            "scope": spec.get("scope", ""),
            "versions": [
                {"name": each["name"], "served": each.get("served", False)}
                for each in spec.get("versions") or ()
            ],
        },
    }
    if obj.get("kind") == "CustomResourceDefinition":
        found["metadata"] = {"name": metadata["name"]}
        conditions = (obj.get("status") or {}).get("conditions") or ()
        found["status"] = {
            "conditions": [
                {"type": each["type"], "status": each["status"]}
                for each in conditions
                if each["type"] == "Established"
            ]
        }
    return found


@lru_cache(maxsize=65536)
def _shared_ref(group: str, resource: str, namespace: str, name: str) -> ObjectRef:
    """Return the identity of an object within its cluster; thousands of mailboxes share it."""
    return ObjectRef("", group, resource, namespace, name)


_NO_ROWS: Mapping[str, Record] = {}
_NO_NAMESPACES: Mapping[str, Mapping[str, Record]] = {}


class Records:
    """The records of one watch: by cluster, namespace and name."""

    def __init__(self, key: WatchKey) -> None:
        self.key = key
        self.kind = key.group_resource
        # What is in no namespace is apart: a level less, in each of thousands of mailboxes.
        self._rows: dict[ClusterName, dict[str, Record]] = {}
        self._namespaced: dict[ClusterName, dict[str, dict[str, Record]]] = {}
        self._customized: dict[tuple[ClusterName, CustomizerName], set[ObjectRef]] = {}

    # -- asking ------------------------------------------------------------------------------

    def get(self, cluster: ClusterName, namespace: str, name: str) -> Record | None:
        if namespace:
            namespaces = self._namespaced.get(cluster, _NO_NAMESPACES)
            return namespaces.get(namespace, _NO_ROWS).get(name)
        return self._rows.get(cluster, _NO_ROWS).get(name)

    def within(self, cluster: ClusterName, namespace: str = "") -> Mapping[str, Record]:
        """Return the records of a namespace (or the cluster-scoped ones) by name."""
        if namespace:
            return self._namespaced.get(cluster, _NO_NAMESPACES).get(namespace, _NO_ROWS)
        return self._rows.get(cluster, _NO_ROWS)

    def everything(self, cluster: ClusterName) -> Iterator[Record]:
        """Yield every record of a cluster."""
        yield from self._rows.get(cluster, _NO_ROWS).values()
        for names in self._namespaced.get(cluster, _NO_NAMESPACES).values():
            yield from names.values()

    def __iter__(self) -> Iterator[Record]:
        for names in self._rows.values():
            yield from names.values()
        for namespaces in self._namespaced.values():
            for names in namespaces.values():
                yield from names.values()

    def customized_by(self, cluster: ClusterName, customizer: CustomizerName) -> list[ObjectRef]:
        """Return what names a Customizer."""
        return sorted(self._customized.get((cluster, customizer), ()))

    def ref(self, record: Record) -> ObjectRef:
        """Return the identity of what *record* is about, without its cluster."""
        return _shared_ref(*self.kind, record.namespace, record.name)

    # -- changing ----------------------------------------------------------------------------

    def is_news(self, record: Record) -> bool:
        """Tell whether *record* says anything that is not known already."""
        old = self.get(record.cluster, record.namespace, record.name)
        return old is None or old.resource_version != record.resource_version

    def matters(self, record: Record) -> bool:
        """Tell whether anything depends on *record*; what does not need not be put."""
        own = record.system and self.kind in _OF_EACH_NAMESPACE
        return not own or record.projected

    def put(self, record: Record) -> Record | None:
        """Take a new state of an object; returns the one before."""
        if record.namespace:
            namespaces = self._namespaced.setdefault(record.cluster, {})
            names = namespaces.setdefault(record.namespace, {})
        else:
            names = self._rows.setdefault(record.cluster, {})
        old = names.get(record.name)
        names[record.name] = record
        self._index(old, record)
        return old

    def remove(self, last: Record) -> Record | None:
        """Drop an object; returns what was known of it, None when that was nothing."""
        cluster, namespace = last.cluster, last.namespace
        namespaces = self._namespaced.get(cluster, {})
        names = namespaces.get(namespace, {}) if namespace else self._rows.get(cluster, {})
        old = names.pop(last.name, None)
        if old is None:
            return None
        if not names and not namespace:
            del self._rows[cluster]
        elif not names:
            del namespaces[namespace]
            if not namespaces:
                del self._namespaced[cluster]
        self._index(old, None)
        return old

    def _index(self, old: Record | None, new: Record | None) -> None:
        if old is not None and old.customizer is not None:
            key = (old.cluster, old.customizer)
            self._customized[key].discard(self.ref(old))
            if not self._customized[key]:
                del self._customized[key]
        if new is not None and new.customizer is not None:
            known = self._customized.setdefault((new.cluster, new.customizer), set())
            known.add(self.ref(new))


def wide(group: str, version: str, resource: str, **more: Any) -> WatchKey:
    """Return the key of a kind that is watched everywhere at once."""
    return WatchKey(EVERYWHERE, group, version, resource, **more)
