"""Objects of one type across all workspaces, as small records.

One watch serves sources and mailboxes alike: a type bound from one export is watched everywhere
at once (``deployments:<identity>``), as is a type that every workspace has. Only what one
workspace defines for itself is watched there alone.

A record keeps of an object what decisions need: whether it is a copy, a proof of its content, its
labels where it can be selected by them; and the text of the copy to be made of it, unless it is a
copy itself. Names, which thousands of mailboxes have in common, are kept once. So ten thousand
copies cost a few hundred bytes each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

import msgspec
import orjson

from skerry.api.edge import binding_reference, is_projected, is_system_object, is_upsynced
from skerry.api.edge_categories import category_of
from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.customization.customize import (
    CustomizerName,
    customizer_name,
    wants_customization,
)
from skerry.logic.fleet.translation.categories import BINDINGS, DEFINITIONS, is_never_copied
from skerry.logic.fleet.translation.copies import (
    copied,
    digest,
    labelled,
)
from skerry.runtime.answers import EventKind
from skerry.runtime.client import EVERYWHERE, Selection, cluster_of

METADATA = Selection(metadata_only=True)
_NO_LABELS: Mapping[str, str] = {}
# Others get the loop after this many objects of a list.
_CHUNK = 200


class FeedKey(NamedTuple):
    """What is watched: a type at a version, everywhere or in one cluster.

    ``presence`` feeds know names only, for types that never travel but may be in the way.
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
    """What is remembered of an object.

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
    deleting: bool
    proof: bytes
    text: bytes | None
    labels: Mapping[str, str]
    customized: bool
    customizer: CustomizerName | None
    # Of an APIBinding or CustomResourceDefinition: what it says about types.
    lean: bytes | None

    @property
    def is_source(self) -> bool:
        """Whether the object may be copied."""
        return self.text is not None and not self.deleting

    @property
    def is_foreign(self) -> bool:
        """Whether the object, found in a mailbox, is somebody else's."""
        return not (self.projected or self.system)

    def copy(self) -> Object:
        """Return the copy to be made of the object, before customization."""
        found: Object = orjson.loads(self.text or b"{}")
        return found


def record_of(key: FeedKey, obj: Object) -> Record:
    """Return what is to be remembered of *obj*."""
    resource, metadata = key.group_resource, obj["metadata"]
    projected = is_projected(obj)
    system = is_system_object(resource, obj)
    text, proof = None, b""
    if not key.presence:
        copy = copied(resource, obj)
        proof = digest(resource, labelled(copy))
        if not projected and not is_never_copied(resource, obj):
            text = bytes(memoryview(orjson.dumps(copy)))
    return Record(
        intern(cluster_of(obj) or key.cluster),
        intern(metadata.get("namespace", "")),
        intern(metadata["name"]),
        metadata.get("uid", ""),
        str(metadata.get("resourceVersion", "")),
        projected,
        is_upsynced(obj),
        system,
        "deletionTimestamp" in metadata,
        proof,
        text,
        _NO_LABELS if metadata.get("namespace") else metadata.get("labels") or _NO_LABELS,
        wants_customization(obj),
        customizer_name(obj),
        _lean(resource, obj),
    )


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


Changed = Callable[["Feed", Record | None, Record | None], None]


class Feed:
    """The records of one type; what a reflector fills."""

    def __init__(self, key: FeedKey, changed: Changed) -> None:
        self.key = key
        self.synced = asyncio.Event()
        self._changed = changed
        self._held: dict[str, dict[str, dict[str, Record]]] = {}
        self._customizers: dict[tuple[str, CustomizerName], set[tuple[str, str]]] = {}

    def get(self, cluster: str, namespace: str, name: str) -> Record | None:
        return self._held.get(cluster, {}).get(namespace, {}).get(name)

    def within(self, cluster: str, namespace: str = "") -> Mapping[str, Record]:
        """Return the records of a namespace (or the cluster-scoped ones) by name."""
        return self._held.get(cluster, {}).get(namespace, {})

    def everything(self, cluster: str) -> Iterator[Record]:
        """Yield every record of a cluster."""
        for names in self._held.get(cluster, {}).values():
            yield from names.values()

    def customized_by(self, cluster: str, customizer: CustomizerName) -> list[ObjectRef]:
        """Return what names a Customizer."""
        found = self._customizers.get((cluster, customizer), ())
        return [
            ObjectRef("", *self.key.group_resource, namespace, name)
            for namespace, name in sorted(found)
        ]

    def item(self, record: Record) -> ObjectRef:
        """Return the name of what *record* is about."""
        return ObjectRef("", *self.key.group_resource, record.namespace, record.name)

    # What the reflector calls.

    async def replace(self, items: Sequence[Record]) -> None:
        present: set[tuple[str, str, str]] = set()
        for count, record in enumerate(items, 1):
            present.add((record.cluster, record.namespace, record.name))
            self._put(record)
            if count % _CHUNK == 0:
                await asyncio.sleep(0)
        gone = [
            record
            for cluster in self._held
            for record in self.everything(cluster)
            if (record.cluster, record.namespace, record.name) not in present
        ]
        for record in gone:
            self._remove(record)
        self.synced.set()

    def apply(self, kind: EventKind, item: Record) -> None:
        if kind == "DELETED":
            self._remove(item)
        else:
            self._put(item)

    def _put(self, record: Record) -> None:
        names = self._held.setdefault(record.cluster, {}).setdefault(record.namespace, {})
        old = names.get(record.name)
        if old is not None and old.resource_version == record.resource_version:
            return
        names[record.name] = record
        self._index(old, record)
        self._changed(self, old, record)

    def _remove(self, last: Record) -> None:
        namespaces = self._held.get(last.cluster, {})
        names = namespaces.get(last.namespace, {})
        old = names.pop(last.name, None)
        if old is None:
            return
        if not names:
            namespaces.pop(last.namespace, None)
        if not namespaces:
            self._held.pop(last.cluster, None)
        self._index(old, None)
        self._changed(self, old, None)

    def _index(self, old: Record | None, new: Record | None) -> None:
        if old is not None and old.customizer is not None:
            key = (old.cluster, old.customizer)
            self._customizers[key].discard((old.namespace, old.name))
            if not self._customizers[key]:
                del self._customizers[key]
        if new is not None and new.customizer is not None:
            known = self._customizers.setdefault((new.cluster, new.customizer), set())
            known.add((new.namespace, new.name))


def wide(group: str, version: str, resource: str, **more: Any) -> FeedKey:
    """Return the key of a type that is watched everywhere at once."""
    return FeedKey(EVERYWHERE, group, version, resource, **more)
