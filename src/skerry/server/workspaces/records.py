"""Logical clusters, workspaces and bindings as the server remembers them.

Of each stored object only what requests depend on is decoded, into small records that share
whatever is equal: ten thousand workspaces have fifty thousand bindings, of five kinds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from skerry.api.edge import Mailbox, is_passing_through, mailbox_named
from skerry.api.edge_identity import APPROVAL_POLICY, REVOKED
from skerry.api.keys import ObjectKey
from skerry.api.refs import PATH_ANNOTATION
from skerry.logic.machinery.workspaces.limits import MAX_BYTES, MAX_OBJECTS, TREE_ANNOTATIONS
from skerry.logic.machinery.workspaces.names import ROOT
from skerry.logic.machinery.workspaces.workspace_content import (
    OWNER,
    REQUIRED_GROUPS,
    TYPE_ANNOTATION,
    owner_of,
)
from skerry.server.codec import decode_as

# A burst of creates writes equal statuses; those of another second differ in their times only.
_STATUSES = 64


class Cluster(msgspec.Struct, frozen=True, gc=False):
    """A logical cluster. ``path`` is empty for those that no path leads to."""

    name: str
    path: str
    type_name: str
    phase: str
    deleting: bool
    # Whose word is still awaited before it is ready, and who it belongs to.
    initializers: tuple[str, ...] = ()
    owner: str = ""
    # Groups one must be in to enter, as the annotation says; None where anybody may.
    required_groups: str | None = None
    # Whose mailbox it is by its name; whether it is one, ``Mailboxes`` tells.
    mailbox: Mailbox | None = None
    # Since when its edge is revoked, and whether requests of its own edges need a person.
    revoked: str = ""
    edge_approval: str = ""
    # How much it may hold, where that is not the hub's default.
    max_objects: str = ""
    max_bytes: str = ""
    # Of the top workspace of a tree: what the tree may hold; None where nothing is said.
    tree_limits: tuple[str, ...] | None = None


class BoundType(msgspec.Struct, frozen=True, gc=False):
    """One type a binding brings: which schema, under which identity."""

    schema_cluster: str
    schema_name: str
    schema_uid: str
    identity: str
    group: str
    resource: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Objects a binding lets its exporter see: all of a type, or those of some names."""

    group: str
    resource: str
    identity: str
    everything: bool
    # Pairs of namespace and name; an empty one stands for any.
    only: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, claim: Mapping[str, Any]) -> Claim:
        only = tuple(
            (each.get("namespace", ""), each.get("name", ""))
            for each in claim.get("resourceSelector") or []
        )
        return cls(
            claim.get("group", ""),
            claim["resource"],
            claim.get("identityHash", ""),
            bool(claim.get("all")),
            only,
        )

    def covers(self, key: ObjectKey) -> bool:
        """Tell whether the object at *key* is claimed; without a name: whether any there is."""
        resource = f"{self.resource}:{self.identity}" if self.identity else self.resource
        if (key.group, key.resource) != (self.group, resource):
            return False
        return self.everything or any(
            namespace in ("", key.namespace) and (not key.name or name in ("", key.name))
            for namespace, name in self.only
        )


class Binding(msgspec.Struct, frozen=True, gc=False):
    """What an APIBinding comes to; those that come to the same are one, whatever their names."""

    export_cluster: str
    export_name: str
    bound: tuple[BoundType, ...]
    claims: tuple[Claim, ...] = ()
    # Whether everything the export offers is bound.
    ready: bool = True
    # Whether it is being deleted, and the objects of its types with it.
    deleting: bool = False

    def is_to(self, export_cluster: str, export_name: str) -> bool:
        """Tell whether it binds that export."""
        return (self.export_cluster, self.export_name) == (export_cluster, export_name)


# -- reading stored objects ------------------------------------------------------------------


class _Metadata(msgspec.Struct, gc=False):
    annotations: dict[str, str] | None = None
    deletion: str | None = msgspec.field(name="deletionTimestamp", default=None)


class _ClusterStatus(msgspec.Struct, gc=False):
    phase: str | None = None
    initializers: tuple[str, ...] | None = None


class _LogicalCluster(msgspec.Struct, gc=False):
    metadata: _Metadata
    status: _ClusterStatus | None = None


class _WorkspaceSpec(msgspec.Struct, gc=False):
    cluster: str | None = None


class _Workspace(msgspec.Struct, gc=False):
    spec: _WorkspaceSpec | None = None


class _Export(msgspec.Struct, gc=False):
    name: str | None = None


class _Reference(msgspec.Struct, gc=False):
    export: _Export | None = None


class _BindingSpec(msgspec.Struct, gc=False):
    reference: _Reference | None = None


class _BindingMetadata(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion: str | None = msgspec.field(name="deletionTimestamp", default=None)


class _APIBinding(msgspec.Struct, gc=False):
    metadata: _BindingMetadata
    spec: _BindingSpec | None = None
    status: msgspec.Raw = msgspec.Raw(b"{}")


_clusters = msgspec.json.Decoder(_LogicalCluster)
_workspaces = msgspec.json.Decoder(_Workspace)
_bindings = msgspec.json.Decoder(_APIBinding)


def cluster_of(name: str, value: bytes) -> Cluster:
    """Return what a stored LogicalCluster says of the cluster *name*."""
    obj = decode_as(_clusters, value)
    annotations = obj.metadata.annotations or {}
    status = obj.status or _ClusterStatus()
    path = annotations.get(PATH_ANNOTATION, "") or (ROOT if name == ROOT else "")
    return Cluster(
        name,
        path,
        sys.intern(annotations.get(TYPE_ANNOTATION, "")),
        sys.intern(status.phase or ""),
        obj.metadata.deletion is not None,
        status.initializers or (),
        sys.intern(owner_of(annotations.get(OWNER, ""))),
        annotations.get(REQUIRED_GROUPS),
        mailbox_named(path.rpartition(":")[2]),
        annotations.get(REVOKED, ""),
        sys.intern(annotations.get(APPROVAL_POLICY, "")),
        annotations.get(MAX_OBJECTS, ""),
        annotations.get(MAX_BYTES, ""),
        _tree_limits(annotations),
    )


def _tree_limits(annotations: Mapping[str, str]) -> tuple[str, ...] | None:
    texts = tuple(annotations.get(name, "") for name in TREE_ANNOTATIONS)
    return texts if any(texts) else None


def child_of(value: bytes) -> str:
    """Return the name of the cluster a stored Workspace stands for; empty when there is none."""
    spec = decode_as(_workspaces, value).spec
    return (spec.cluster if spec is not None else None) or ""


class BindingReader:
    """Reads stored APIBindings; equal statuses are looked into once."""

    def __init__(self) -> None:
        self._cache: dict[tuple[str, bytes, bool, bool], Binding] = {}

    def read(self, value: bytes) -> Binding:
        """Return what a stored APIBinding comes to."""
        obj = decode_as(_bindings, value)
        reference = (obj.spec or _BindingSpec()).reference or _Reference()
        export = reference.export or _Export()
        metadata = obj.metadata
        deleting = metadata.deletion is not None
        # Whoever placed a copy has no say in the mailbox.
        agrees = not is_passing_through(metadata.labels, metadata.annotations)
        key = (export.name or "", bytes(obj.status), deleting, agrees)
        cached = self._cache.get(key)
        if cached is None:
            if len(self._cache) >= _STATUSES:
                self._cache.clear()
            cached = self._cache[key] = _binding(*key)
        return cached


def _binding(name: str, text: bytes, deleting: bool, agrees: bool) -> Binding:
    status: dict[str, Any] = orjson.loads(text) or {}
    cluster = status.get("apiExportClusterName", "")
    bound = tuple(
        BoundType(
            cluster,
            each["schema"]["name"],
            each["schema"]["UID"],
            each["schema"]["identityHash"],
            each["group"],
            each["resource"],
        )
        for each in status.get("boundResources") or []
    )
    applied = status.get("appliedPermissionClaims") if agrees else None
    claims = tuple(Claim.of(each) for each in applied or [])
    conditions = status.get("conditions") or []
    ready = bool(conditions) and all(each.get("status") == "True" for each in conditions)
    return Binding(cluster, name, bound, claims, ready, deleting)
