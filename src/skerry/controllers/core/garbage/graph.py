"""Who owns whom, as the informers tell it.

A graph of metadata, by uid within a logical cluster: an owner reference never crosses clusters.
Every change returns the keys that may have to be looked at because of it; looking at too many
costs time, looking at too few loses garbage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from skerry.api.kinds import ResourceInfo
from skerry.logic.plan import Target
from skerry.logic.resource import Object
from skerry.runtime.client import cluster_of

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
        frozenset(metadata.get("finalizers") or ()),
        metadata.get("resourceVersion", ""),
    )


class Graph:
    """Nodes and, for each owner present or not, its dependents."""

    def __init__(self) -> None:
        self._nodes: dict[NodeKey, Node] = {}
        self._dependents: dict[NodeKey, dict[NodeKey, None]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, key: NodeKey) -> Node | None:
        return self._nodes.get(key)

    def dependents(self, key: NodeKey) -> list[Node]:
        """Return the nodes that name *key* as an owner, in the order they came."""
        return [self._nodes[dependent] for dependent in self._dependents.get(key, ())]

    def put(self, node: Node) -> set[NodeKey]:
        """Take in a new or changed node; returns what to look at."""
        old = self._nodes.get(node.key)
        touched = set(node.owner_keys())
        if old is not None:
            touched.update(old.owner_keys())
            self._unlink(old)
        self._nodes[node.key] = node
        for owner in node.owner_keys():
            self._dependents.setdefault(owner, {})[node.key] = None
        wakes = {key for key in touched if self._holds_on(key)}
        if node.deleting or any(self._leads_nowhere(owner) for owner in node.owner_keys()):
            wakes.add(node.key)
        if node.waits_for_dependents:
            wakes.update(self._dependents.get(node.key, ()))
        return wakes

    def remove(self, key: NodeKey) -> set[NodeKey]:
        """Take out a node that is gone; returns what to look at."""
        node = self._nodes.pop(key, None)
        if node is None:
            return set()
        self._unlink(node)
        wakes = {owner for owner in node.owner_keys() if self._holds_on(owner)}
        wakes.update(self._dependents.get(key, ()))
        return wakes

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
        node = self._nodes.get(owner)
        return node is None or node.waits_for_dependents
