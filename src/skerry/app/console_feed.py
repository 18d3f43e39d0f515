"""Feeds the console from the hub that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from skerry.api.edge import EXPORT
from skerry.api.kcp.resources import API_EXPORTS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.export_views import view_path
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.runtime.client import EVERYWHERE, Client
from skerry.runtime.informer import InformerFactory, Transform
from skerry.runtime.transport import Transport
from skerry.server.user import User
from skerry.web.feed import Feed

_USER = User("system:console", groups=("system:masters", "system:authenticated"))
# Which export offers which of the kinds that the console follows; the rest are the edge API's.
_EXPORTS: Final[Mapping[GroupVersionResource, str]] = {
    SYNC_TARGETS: SYNC_TARGETS.group,
    LOCATIONS: LOCATIONS.group,
    WORKSPACES: WORKSPACES.group,
}
# What is kept of an object, where that is not the whole.
_LEAN: Final[Mapping[GroupVersionResource, Transform]] = {WORKSPACES: lean_workspace}


def feeding(transport_for: Callable[[User], Transport], clock: Clock) -> Client:
    """Return the client that reads for everybody."""
    return Client(transport_for(_USER), user_agent="skerry/console", clock=clock)


async def run_feed(feed: Feed, client: Client, ids: IdSource) -> None:
    """Follow what the console shows, from when somebody first looks until cancelled.

    A kind is followed in the view of the export that offers it, as soon as there is one.
    """
    await feed.wanted.wait()
    exports = InformerFactory(client.for_cluster(EVERYWHERE), ids=ids)
    appeared = asyncio.Event()
    views: dict[str, str] = {}

    def handle(_: Object | None, new: Object | None) -> None:
        if new is not None and (path := view_path(new)):
            views.setdefault(new["metadata"]["name"], path)
            appeared.set()

    exports.informer(API_EXPORTS, packed=True).add_handler(handle)
    waiting = set(feed.kinds)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(exports.run())
        while waiting:
            await appeared.wait()
            appeared.clear()
            for gvr in [each for each in waiting if _EXPORTS.get(each, EXPORT) in views]:
                waiting.discard(gvr)
                path = views[_EXPORTS.get(gvr, EXPORT)]
                factory = InformerFactory(client.at(path, EVERYWHERE), ids=ids)
                feed.follow(gvr, factory.informer(gvr, packed=True, transform=_LEAN.get(gvr)))
                tasks.create_task(factory.run())
