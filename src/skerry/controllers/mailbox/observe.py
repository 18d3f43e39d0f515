"""A SyncTarget, its mailbox workspace and the binding in it.

Caches answer, with two exceptions, each for a reason of its own. Before a mailbox goes for want of
its SyncTarget the server is asked for that, because a view may lag or not show a workspace at all,
and absence from a cache is no evidence. And a binding that refers to another export is in nobody's
view, so one that the cache lacks may be there nevertheless.
"""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.edge import MAILBOX_BINDING, SYNC_TARGET_NAME, Mailbox
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import API_BINDINGS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.controllers.mailbox.events import BY_UID, content_of
from skerry.logic.fleet.placement.records import is_being_deleted
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Provider:
    """The workspace mailboxes are children of, by path, and by name as objects tell it."""

    path: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Observed:
    """One mailbox. A SyncTarget that is being deleted counts as absent."""

    mailbox: Mailbox
    provider: Provider
    sync_target: str | None
    workspace: Object | None
    binding: Object | None = None


class Observer:
    """Looks at one mailbox at a time."""

    def __init__(
        self,
        provider: Provider,
        client: Client,
        sync_targets: Informer,
        workspaces: Informer,
        bindings: Informer,
    ) -> None:
        self._provider = provider
        self._client = client
        self._sync_targets = sync_targets
        self._workspaces = workspaces
        self._bindings = bindings

    async def observe(self, mailbox: Mailbox) -> Observed:
        """Return what there is; the binding only where it can be there and is wanted."""
        key = Key(self._provider.cluster, "", mailbox.workspace)
        workspace = self._workspaces.index.get(key)
        name = self._sync_target(mailbox)
        if name is None and workspace is not None and not is_being_deleted(workspace):
            name = await self._still_there(mailbox, workspace)
        binding = None
        if name is not None and workspace is not None and content_of(workspace):
            binding = await self._binding(content_of(workspace))
        return Observed(mailbox, self._provider, name, workspace, binding)

    def _sync_target(self, mailbox: Mailbox) -> str | None:
        for obj in self._sync_targets.index.by(BY_UID, mailbox):
            if not is_being_deleted(obj):
                return str(obj["metadata"]["name"])
        return None

    async def _still_there(self, mailbox: Mailbox, workspace: Object) -> str | None:
        """Ask the server for a SyncTarget that no cache has, before its mailbox goes for it.

        Any other failure is raised: no answer is no absence, and the key is tried again. One of
        the same name and another UID is another edge, which has a mailbox of its own.
        """
        annotations = workspace["metadata"].get("annotations") or {}
        name = annotations.get(SYNC_TARGET_NAME)
        client = self._client.for_cluster(mailbox.cluster)
        try:
            if name:
                found = [await client.get(SYNC_TARGETS, name)]
            else:  # somebody took our mark off
                found = (await client.list(SYNC_TARGETS)).items
        except (NotFound, Forbidden):
            return None  # gone, or its whole workspace is, which nobody may enter then
        for target in found:
            if target["metadata"]["uid"] == mailbox.uid and not is_being_deleted(target):
                return str(target["metadata"]["name"])
        return None

    async def _binding(self, cluster: str) -> Object | None:
        """Return the binding; one the cache lacks may be bound elsewhere, or not be there."""
        cached = self._bindings.index.get(Key(cluster, "", MAILBOX_BINDING))
        if cached is not None:
            return cached
        try:
            return await self._client.for_cluster(cluster).get(API_BINDINGS, MAILBOX_BINDING)
        except NotFound:
            return None
