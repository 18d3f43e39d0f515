"""Feeds the console from the hub that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from skerry.api.edge import EXPORT, USUAL_PROVIDER
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import API_EXPORTS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName
from skerry.app.export_views import view_path
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.runtime.client import EVERYWHERE, Client, cluster_of
from skerry.runtime.informer import InformerFactory, Transform
from skerry.runtime.transport import Transport, TransportError
from skerry.server.user import User
from skerry.web.feed import Feed

_USER = User("system:console", groups=("system:masters", "system:authenticated"))
# Which export offers which of the kinds that the console follows; the rest are the edge API's.
_EXPORTS: Final[Mapping[GroupVersionResource, str]] = {
    SYNC_TARGETS: SYNC_TARGETS.group,
    LOCATIONS: LOCATIONS.group,
    WORKSPACES: WORKSPACES.group,
}
# Where the hub itself exports those.
_ROOT: Final = "root"
# What is kept of an object, where that is not the whole.
_LEAN: Final[Mapping[GroupVersionResource, Transform]] = {WORKSPACES: lean_workspace}


def feeding(transport_for: Callable[[User], Transport], clock: Clock) -> Client:
    """Return the client that reads for everybody."""
    return Client(transport_for(_USER), user_agent="skerry/console", clock=clock)


class ExportViews:
    """Where the exports are that the console reads through.

    Anybody may export something by any name in a workspace of their own, so a name says nothing:
    the kinds of inventories are the root's, and the edge API is that of the usual provider. A hub
    whose provider is elsewhere has the console follow the export that was there first.
    """

    def __init__(self) -> None:
        self._found: dict[str, dict[ClusterName, tuple[str, str]]] = {}

    def put(self, export: Object) -> None:
        """Take an APIExport, new or changed."""
        path, metadata = view_path(export), export["metadata"]
        if path and (metadata["name"] == EXPORT or metadata["name"] in _EXPORTS.values()):
            here = (str(metadata.get("creationTimestamp", "")), path)
            self._found.setdefault(metadata["name"], {})[cluster_of(export)] = here

    def path(self, name: str, provider: ClusterName) -> str:
        """Return where the view of *name* is, empty while nowhere; *provider* is the usual one."""
        found = self._found.get(name, {})
        trusted = provider if name == EXPORT else _ROOT
        if trusted in found:
            return found[trusted][1]
        return min(found.values())[1] if name == EXPORT and found else ""


async def _usual_provider(client: Client) -> ClusterName:
    """Return the cluster of the usual provider of the edge API; empty where it exports none."""
    try:
        return cluster_of(await client.at("", USUAL_PROVIDER).get(API_EXPORTS, EXPORT))
    except (ApiError, TransportError):
        return ""


async def run_feed(feed: Feed, client: Client, ids: IdSource) -> None:
    """Follow what the console shows, from when somebody first looks until cancelled.

    A kind is followed in the view of the export that offers it, as soon as there is one.
    """
    await feed.wanted.wait()
    exports = InformerFactory(client.for_cluster(EVERYWHERE), ids=ids)
    appeared = asyncio.Event()
    views = ExportViews()

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None:
            views.put(new)
            appeared.set()

    followed = exports.informer(API_EXPORTS, packed=True)
    followed.add_handler(handle)
    waiting = set(feed.kinds)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(exports.run())
        # Which export is meant is known only among all that there are.
        await followed.wait_synced()
        while waiting:
            await appeared.wait()
            appeared.clear()
            provider = await _usual_provider(client)
            for gvr in sorted(waiting):
                path = views.path(_EXPORTS.get(gvr, EXPORT), provider)
                if not path:
                    continue
                waiting.discard(gvr)
                factory = InformerFactory(client.at(path, EVERYWHERE), ids=ids)
                feed.follow(gvr, factory.informer(gvr, packed=True, transform=_LEAN.get(gvr)))
                tasks.create_task(factory.run())
