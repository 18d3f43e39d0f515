"""Rollouts with every edge controller real, on a hub without sockets; only syncers are played."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from skerry.api.edge import (
    APPLIED,
    HEARTBEAT_LEASE,
    HEARTBEAT_NAMESPACE,
    PLACEMENT_REVISIONS,
    PROJECTED,
    REVISION_CONTENTS,
    ROLLOUTS,
    SYNC_ERROR,
    mailbox_named,
)
from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339_micro
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.logic.fleet.syncing.delivery import content_mark
from skerry.runtime.client import Client, Selection
from tests.kit.chain.edge_scheduler_hub import PROVIDER
from tests.kit.chain.rollout_hub import INVENTORY, RolloutHub
from tests.kit.chain.written import writes

CHAIN = ("mailbox", "edge-scheduler", "placement-translator", "summarizer")
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_COPIED = (NAMESPACES.resource, CONFIG_MAPS.resource)
_LEASE_SECONDS = 60
# As syncers do: often enough that a lost one is no matter.
_RENEW_SECONDS = 15


class ChainHub(RolloutHub):
    """A hub whose edges run what arrives in their mailboxes: one ConfigMap ``page``."""

    every_seconds = 1.0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # What each edge has run, in order; edges that are cut off; texts that edges refuse.
        self.ran: dict[str, list[str]] = {}
        # When an edge first ran a text, by a clock that does not jump.
        self.began: dict[tuple[str, str], float] = {}
        self.offline: set[str] = set()
        self.bad: set[str] = set()
        self.mailboxes: dict[str, Client] = {}
        self._renewed: dict[str, float] = {}

    async def write(self, text: str) -> None:
        """Have the workspace's ConfigMap say *text*."""
        labels = {"goes": "out"}
        with suppress(AlreadyExists):
            await self.shop.create(NAMESPACES, {"metadata": {"name": "s", "labels": labels}})
        body = {"metadata": {"name": "page"}, "data": {"text": text}}
        try:
            await self.shop.create(CONFIG_MAPS, body, "s")
        except AlreadyExists:
            await self.shop.patch(CONFIG_MAPS, "page", {"data": {"text": text}}, "s")

    async def holding(self) -> set[str]:
        """Return the edges whose mailbox has the page."""
        selection = Selection(namespace="s", labels=f"{PROJECTED}=yes")
        return {
            edge
            for edge, client in self.mailboxes.items()
            if (await client.list(CONFIG_MAPS, selection)).items
        }

    async def adopted(self) -> str:
        """Return the text of the revision that the Rollout began with: nobody waits for its soak.

        It is what the workspace said when the first revision was cut, which may be an edit.
        """
        contents: dict[str, Object] = {}
        pages: dict[int, Object] = {}
        for _, kind, _, _, name, obj in await writes(
            self.store, REVISION_CONTENTS, PLACEMENT_REVISIONS, ROLLOUTS
        ):
            if obj is None:
                continue
            if kind == REVISION_CONTENTS.group_resource:
                contents[name] = obj["content"]
            elif kind == PLACEMENT_REVISIONS.group_resource:
                pages[obj["spec"]["number"]] = obj
            elif number := (obj.get("status") or {}).get("stable"):
                return next(
                    str(contents[each["digest"]]["data"]["text"])
                    for each in pages[number]["spec"]["items"]
                    if each["resource"] == CONFIG_MAPS.resource
                )
        raise AssertionError("the Rollout never began")

    @asynccontextmanager
    async def synced(self) -> AsyncIterator[None]:
        """Play the syncers while inside."""
        task = asyncio.create_task(self._sync())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _sync(self) -> None:
        """Look at what was written since the last look: at all of it would be most of a run."""
        seen = 0
        # Logical clusters whose copies may have changed since an edge took them.
        changed: set[str] = set()
        while True:
            events = await self.store.history("", after=seen, limit=1_000_000)
            seen = events[-1].revision if events else seen
            # Group, resource with the hash of its export, cluster, namespace, name.
            written = [key for each in events if len(key := each.key.split("/")) > 4]
            changed |= {key[3] for key in written if key[2] in _COPIED}
            if any(key[2].startswith(f"{WORKSPACES.resource}:") for key in written):
                await self._find()
            for edge, client in sorted(self.mailboxes.items()):
                if edge not in self.offline:
                    with suppress(ApiError):
                        await self._renew(edge, client)
                        if client.cluster in changed:
                            await self._sync_one(edge, client)
                            changed.discard(client.cluster)
            await asyncio.sleep(self.every_seconds)

    async def _find(self) -> None:
        targets = (await self.at(INVENTORY).list(SYNC_TARGETS)).items
        names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in targets}
        for each in (await self.at(PROVIDER).list(WORKSPACES)).items:
            mailbox = mailbox_named(each["metadata"]["name"])
            cluster = (each.get("spec") or {}).get("cluster", "")
            if mailbox is not None and cluster and mailbox.uid in names:
                self.mailboxes[names[mailbox.uid]] = self.client.for_cluster(cluster)

    async def _sync_one(self, edge: str, client: Client) -> None:
        copies = f"{PROJECTED}=yes"
        for each in (await client.list(NAMESPACES, Selection(labels=copies))).items:
            if "deletionTimestamp" in each["metadata"]:
                # What the namespace controller of a whole hub does.
                await client.update(NAMESPACES, {**each, "spec": {}}, subresource="finalize")
            else:
                await self._mark(client, NAMESPACES, each, None)
        selection = Selection(namespace="s", labels=copies)
        for each in (await client.list(CONFIG_MAPS, selection)).items:
            await self._apply(edge, client, each)

    async def _renew(self, edge: str, client: Client) -> None:
        """Say that an edge is there, if it has not of late."""
        now = self.clock.monotonic()
        if now - self._renewed.get(edge, -_RENEW_SECONDS) < _RENEW_SECONDS:
            return
        spec = {
            "leaseDurationSeconds": _LEASE_SECONDS,
            "renewTime": rfc3339_micro(self.clock.now()),
        }
        lease = {"metadata": {"name": HEARTBEAT_LEASE}, "spec": spec}
        try:
            await client.patch(LEASES, HEARTBEAT_LEASE, lease, HEARTBEAT_NAMESPACE)
        except NotFound:
            await client.create(LEASES, lease, HEARTBEAT_NAMESPACE)
        self._renewed[edge] = now

    async def _apply(self, edge: str, client: Client, copy: Object) -> None:
        text = (copy.get("data") or {}).get("text", "")
        ran = self.ran.setdefault(edge, [])
        if not ran or ran[-1] != text:
            ran.append(text)
            self.began.setdefault((edge, text), self.clock.monotonic())
        refused = "Rejected: no such page" if text in self.bad else None
        await self._mark(client, CONFIG_MAPS, copy, refused)

    async def _mark(
        self, client: Client, gvr: GroupVersionResource, copy: Object, refused: str | None
    ) -> None:
        wanted = {SYNC_ERROR: refused, APPLIED: content_mark(copy) if refused is None else None}
        known = copy["metadata"].get("annotations") or {}
        if any(known.get(key) != value for key, value in wanted.items()):
            patch = {"metadata": {"annotations": wanted}}
            metadata = copy["metadata"]
            await client.patch(gvr, metadata["name"], patch, metadata.get("namespace", ""))
