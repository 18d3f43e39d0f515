"""Who owns whom, as the server tells it.

A graph of metadata, by uid within a logical cluster: an owner reference never crosses clusters.
Every change returns the keys that may have to be looked at because of it; looking at too many
costs time, looking at too few loses garbage.

Most objects own nothing, are owned by nothing and are not being deleted. Of those only presence
is remembered, in about 150 bytes each: a server with a million objects must be able to afford
its garbage collector.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.kinds import GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.kit.ids import uuid_text
from skerry.logic.machinery.plan import Target
from skerry.runtime.client import cluster_of

_UUID_BYTES = 16
# Longer than a UUID by itself, so that no other uid is ever taken for one.
_OTHER = b"uid-that-is-not-a-uuid:"

_NO_FINALIZERS: frozenset[str] = frozenset()

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class NodeKey(NamedTuple):
    """An object, whatever its name: uids are not reused."""

    cluster: str
    uid: str


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """One entry of ``metadata.ownerReferences``."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    controls: bool = False

    @classmethod
    def of(cls, raw: dict[str, Any]) -> OwnerRef:
        return cls(
            raw.get("apiVersion", ""),
            raw.get("kind", ""),
            raw.get("name", ""),
            raw.get("uid", ""),
            bool(raw.get("blockOwnerDeletion")),
            bool(raw.get("controller")),
        )

    def raw(self) -> dict[str, Any]:
        """Return the reference as an object states it."""
        flags = {"blockOwnerDeletion": self.blocks, "controller": self.controls}
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            **{name: True for name, flag in flags.items() if flag},
        }


@dataclass(frozen=True, slots=True)
class Node:
    """What matters of one object."""

    key: NodeKey
    target: Target
    kind: str
    owners: tuple[OwnerRef, ...]
    deleting: bool
    finalizers: frozenset[str]
    resource_version: str = ""

    @property
    def waits_for_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.deleting and ORPHAN in self.finalizers

    @property
    def is_plain(self) -> bool:
        """Whether presence is all that matters."""
        return not self.owners and not self.deleting

    def owner_keys(self) -> Iterable[NodeKey]:
        return (NodeKey(self.key.cluster, owner.uid) for owner in self.owners)

    def blocks(self, owner: NodeKey) -> bool:
        """Tell whether this dependent holds up *owner*'s foreground deletion."""
        return any(ref.uid == owner.uid and ref.blocks for ref in self.owners)


def node_of(info: ResourceInfo, obj: Object) -> Node:
    """Return what matters of *obj*, an object of the type *info*."""
    metadata = obj["metadata"]
    cluster = cluster_of(obj)
    return Node(
        NodeKey(cluster, metadata["uid"]),
        Target(info.gvr, metadata["name"], metadata.get("namespace", ""), cluster),
        info.kind,
        tuple(OwnerRef.of(raw) for raw in metadata.get("ownerReferences") or ()),
        bool(metadata.get("deletionTimestamp")),
        frozenset(metadata["finalizers"]) if metadata.get("finalizers") else _NO_FINALIZERS,
        metadata.get("resourceVersion", ""),
    )


class Presence(NamedTuple):
    """That an object exists, and where."""

    namespace: str
    waits_for_dependents: bool = False


class Graph:
    """Nodes and, for each owner present or not, its dependents."""

    def __init__(self) -> None:
        self._nodes: dict[NodeKey, Node] = {}
        self._dependents: dict[NodeKey, dict[NodeKey, None]] = {}
        # Values are shared: one tuple for all objects of a type in a namespace.
        self._plain: dict[bytes, tuple[GroupVersionResource, Presence]] = {}
        self._shared: dict[
            tuple[GroupVersionResource, str], tuple[GroupVersionResource, Presence]
        ] = {}

    def __len__(self) -> int:
        return len(self._nodes) + len(self._plain)

    def get(self, key: NodeKey) -> Node | None:
        """Return a node that has owners or is being deleted; others are only present."""
        return self._nodes.get(key)

    def presence(self, key: NodeKey) -> Presence | None:
        """Return where an object is; None when it is not known to exist."""
        node = self._nodes.get(key)
        if node is not None:
            return Presence(node.target.namespace, node.waits_for_dependents)
        found = self._plain.get(_packed(key))
        return found[1] if found is not None else None

    def dependents(self, key: NodeKey) -> list[Node]:
        """Return the nodes that name *key* as an owner, in the order they came."""
        return [self._nodes[dependent] for dependent in self._dependents.get(key, ())]

    def of_type(self, gvr: GroupVersionResource) -> set[bytes]:
        """Return every object of a type, packed; for working out what a list no longer has."""
        found = {key for key, (kind, _) in self._plain.items() if kind == gvr}
        found.update(_packed(key) for key, node in self._nodes.items() if node.target.gvr == gvr)
        return found

    def put(self, node: Node) -> set[NodeKey]:
        """Take in a new or changed node; returns what to look at."""
        old = self._nodes.pop(node.key, None)
        if old is None and not node.owners and not node.deleting:
            # Nearly every object: nothing depends on more than its being there.
            self._plain[_packed(node.key)] = self._presence_of(node)
            return set()
        touched = set(node.owner_keys())
        if old is not None:
            touched.update(old.owner_keys())
            self._unlink(old)
        if node.is_plain:
            self._plain[_packed(node.key)] = self._presence_of(node)
        else:
            self._plain.pop(_packed(node.key), None)
            self._nodes[node.key] = node
        for owner in node.owner_keys():
            self._dependents.setdefault(owner, {})[node.key] = None
        enqueued = {key for key in touched if self._holds_on(key)}
        if node.deleting or any(self._leads_nowhere(owner) for owner in node.owner_keys()):
            enqueued.add(node.key)
        if node.waits_for_dependents:
            enqueued.update(self._dependents.get(node.key, ()))
        return enqueued

    def remove(self, key: NodeKey) -> set[NodeKey]:
        """Take out a node that is gone; returns what to look at."""
        node = self._nodes.pop(key, None)
        if node is None:
            if self._plain.pop(_packed(key), None) is None:
                return set()
            return set(self._dependents.get(key, ()))
        self._unlink(node)
        enqueued = {owner for owner in node.owner_keys() if self._holds_on(owner)}
        enqueued.update(self._dependents.get(key, ()))
        return enqueued

    def _presence_of(self, node: Node) -> tuple[GroupVersionResource, Presence]:
        place = (node.target.gvr, node.target.namespace)
        return self._shared.setdefault(place, (place[0], Presence(place[1])))

    def _unlink(self, node: Node) -> None:
        for owner in node.owner_keys():
            dependents = self._dependents.get(owner)
            if dependents is not None:
                dependents.pop(node.key, None)
                if not dependents:
                    del self._dependents[owner]

    def _holds_on(self, key: NodeKey) -> bool:
        """Tell whether a node's own deletion depends on its dependents."""
        node = self._nodes.get(key)
        return node is not None and (node.waits_for_dependents or node.orphans_dependents)

    def _leads_nowhere(self, owner: NodeKey) -> bool:
        found = self.presence(owner)
        return found is None or found.waits_for_dependents


def _packed(key: NodeKey) -> bytes:
    """Return a key in little memory: sixteen bytes for a UUID, after the cluster's name."""
    cluster = f"{key.cluster}|".encode()
    try:
        raw = bytes.fromhex(key.uid.replace("-", ""))
    except ValueError:
        raw = b""
    # Other servers may form uids otherwise; those are kept as they are.
    return cluster + raw if _uuid_text(raw) == key.uid else cluster + _OTHER + key.uid.encode()


def unpacked(key: bytes) -> NodeKey:
    """Return the key *key* was packed from."""
    cluster, _, uid = key.partition(b"|")
    text = _uuid_text(uid) if len(uid) == _UUID_BYTES else ""
    return NodeKey(cluster.decode(), text or uid.removeprefix(_OTHER).decode())


def _uuid_text(raw: bytes) -> str:
    return uuid_text(raw) if len(raw) == _UUID_BYTES else ""
