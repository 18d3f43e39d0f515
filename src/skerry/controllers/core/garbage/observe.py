"""One node, read live, with what became of each of its owners.

Owners the graph holds are taken from it. Others are looked up live at the place the reference
names: in the dependent's own namespace when their kind is namespaced. There the uid decides: a
namesake is not the owner. What cannot be looked up is ``unknown``, never absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersion, GroupVersionKind
from skerry.api.objects import Object
from skerry.controllers.core.garbage.graph import Graph, Node, NodeKey, OwnerRef, Presence
from skerry.controllers.core.garbage.monitors import Monitors
from skerry.runtime.client import Client

State = Literal["solid", "waiting", "absent", "unknown", "misplaced"]


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner reference and what became of the owner.

    ``waiting``: it is in foreground deletion. ``misplaced``: its kind lives in namespaces and the
    dependent does not, so it can never be found.
    """

    ref: OwnerRef
    state: State
    elsewhere: str = ""  # the namespace an owner of this uid is in, when it is another one


@dataclass(frozen=True, slots=True)
class Observed:
    """A node as it is now (``live``), its owners and those that depend on it."""

    node: Node
    live: Object
    owners: tuple[Owner, ...]
    dependents: tuple[Node, ...]
    complete: bool  # whether every type's objects are known, so that no dependent is missing


class Observer:
    def __init__(self, client: Client, graph: Graph, monitors: Monitors) -> None:
        self._client = client
        self._graph = graph
        self._monitors = monitors

    async def observe(self, key: NodeKey) -> Observed | None:
        node = self._graph.get(key)
        if node is None or not self._needs_attention(node):
            return None
        live = await self._read(node)
        if live is None:
            return None
        owners = [await self._owner(node, ref) for ref in _refs(live)]
        if any(owner.state == "unknown" for owner in owners):
            self._monitors.expect_owner(key)
        return Observed(
            node,
            live,
            tuple(owners),
            tuple(self._graph.dependents(key)),
            self._monitors.synced,
        )

    def _needs_attention(self, node: Node) -> bool:
        """Tell from the graph alone whether anything may have to be done."""
        if node.deleting:
            return node.waits_for_dependents or node.orphans_dependents
        return any(
            owner is None or owner.waits_for_dependents or not _same_place(node, owner)
            for owner in map(self._graph.presence, node.owner_keys())
        )

    async def _read(self, node: Node) -> Object | None:
        """Return the object as the server has it; None when it is gone or another."""
        target = node.target
        client = self._client.for_cluster(target.cluster)
        try:
            live = await client.get(target.gvr, target.name, target.namespace, metadata_only=True)
        except NotFound:
            return None
        return live if live["metadata"]["uid"] == node.key.uid else None

    async def _owner(self, node: Node, ref: OwnerRef) -> Owner:
        known = self._graph.presence(NodeKey(node.key.cluster, ref.uid))
        if known is not None and _same_place(node, known):
            return Owner(ref, "waiting" if known.waits_for_dependents else "solid")
        elsewhere = known.namespace if known is not None else ""
        group, version = GroupVersion.parse(ref.api_version)
        types = self._monitors.types
        info = types.for_kind(GroupVersionKind(group, version, ref.kind)) or types.for_group_kind(
            group, ref.kind
        )
        if info is None:
            return Owner(ref, "unknown")
        namespace = node.target.namespace if info.namespaced else ""
        if info.namespaced and not namespace:
            return Owner(ref, "misplaced", elsewhere)
        client = self._client.for_cluster(node.key.cluster)
        try:
            found = await client.get(info.gvr, ref.name, namespace, metadata_only=True)
        except NotFound as error:
            # A type that has just gone answers 404 too; only an object's own absence counts.
            absent = error.details.get("name") == ref.name
            return Owner(ref, "absent" if absent else "unknown", elsewhere)
        metadata = found["metadata"]
        if metadata["uid"] != ref.uid:
            return Owner(ref, "absent", elsewhere)
        waits = metadata.get("deletionTimestamp") and "foregroundDeletion" in (
            metadata.get("finalizers") or ()
        )
        return Owner(ref, "waiting" if waits else "solid")


def _refs(live: Object) -> list[OwnerRef]:
    return [OwnerRef.of(raw) for raw in live["metadata"].get("ownerReferences") or ()]


def _same_place(dependent: Node, owner: Presence) -> bool:
    """Tell whether *owner* is where a reference from *dependent* can point."""
    return owner.namespace in ("", dependent.target.namespace)
