"""A hub's tables with one mailbox in them, over a store of their own; no server runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from skerry.api.edge import EXPORT, Mailbox
from skerry.api.edge_identity import EdgeName
from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.codec import encode
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.workspaces.mailboxes import Mailboxes
from skerry.server.workspaces.records import Cluster
from skerry.server.workspaces.state import HubState
from skerry.store.base import Write
from skerry.store.memory import MemoryStore

UID = "0a1b2c3d-0000-4000-8000-000000000001"
# The inventory workspace, the provider's, and the mailbox.
INVENTORY, PROVIDER, BOX, TARGET = "imw", "espw", "box", "florin"
MAILBOX = Mailbox(INVENTORY, UID)
EDGE = EdgeName(BOX, UID)
SYNC_TARGET = ObjectKey("workload.kcp.io", "synctargets:identity", INVENTORY, "", TARGET)


def workspace(name: str, path: str = "", **more: Any) -> Cluster:
    return Cluster(name, path or f"root:{name}", "", "Ready", False, **more)


def hub_state() -> HubState:
    """Return the state of a hub with an inventory, a provider of the edge API and a mailbox."""
    box = workspace(BOX, f"root:{PROVIDER}:{MAILBOX.workspace}", mailbox=MAILBOX)
    return HubState(
        clusters={
            "root": workspace("root", "root"),
            INVENTORY: workspace(INVENTORY),
            PROVIDER: workspace(PROVIDER),
            "other": workspace("other"),
            BOX: box,
        },
        children={
            "root": {each: each for each in (INVENTORY, PROVIDER, "other")},
            PROVIDER: {MAILBOX.workspace: BOX},
        },
        exports={(PROVIDER, EXPORT): {"metadata": {"name": EXPORT}}},
    )


@dataclass
class MailboxPlace:
    """The tables, what they are made from, and the mailbox that was closed last."""

    state: HubState = field(default_factory=hub_state)
    store: MemoryStore = field(default_factory=lambda: MemoryStore("test"))
    closed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mailboxes = Mailboxes(self.state)
        self.mailboxes.closed = self.closed.append
        self.dispatcher = Dispatcher(self.store)

    def change(self, cluster: str, **fields: Any) -> None:
        """Have the LogicalCluster of a workspace say something else."""
        known = self.state.clusters[cluster]
        self.state.clusters[cluster] = msgspec.structs.replace(known, **fields)

    async def put(self, key: ObjectKey, obj: Object) -> None:
        metadata = {"name": key.name, **(obj.get("metadata") or {})}
        whole = {"apiVersion": "v1", "kind": "X", **obj, "metadata": metadata}
        await self.store.commit([Write(key.path(), encode(whole))])


async def mailbox_place() -> MailboxPlace:
    """Return a place whose SyncTarget is there."""
    place = MailboxPlace()
    await place.put(SYNC_TARGET, {"metadata": {"uid": UID}})
    await place.dispatcher.start()
    await place.mailboxes.follow(place.store, place.dispatcher)
    return place
