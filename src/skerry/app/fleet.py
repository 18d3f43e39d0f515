"""Reads the fleet from a hub: every edge and placement its reader may see; writes nothing.

SyncTargets come from the view of root's export, EdgePlacements from that of the provider's: two
lists, whatever the number of workspaces. Objects are cut down to rows page by page, so that ten
thousand edges fit into a few megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from skerry.api.edge import EDGE_PLACEMENTS, EXPORT, USUAL_PROVIDER
from skerry.api.errors import Forbidden, NotFound
from skerry.api.kcp.resources import API_EXPORTS, LOGICAL_CLUSTERS, SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import PATH_ANNOTATION, ClusterName
from skerry.app.edge_identity import open_hub
from skerry.app.export_views import view_path
from skerry.app.hub_settings import HubSettings
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import SystemIds
from skerry.logic.fleet.overview.overview import Overview
from skerry.runtime.client import EVERYWHERE, Client

# A page is decoded at once: large enough that few are asked for, small enough to be let go.
_PAGE = 2500
_AT_ONCE = 16
# Of a workspace whose path its reader may not know.
UNNAMED = "?"


class FleetUnreadable(Exception):
    """Why nothing can be shown, in a sentence."""


@asynccontextmanager
async def fleet(settings: HubSettings) -> AsyncIterator[Fleet]:
    """Open the hub for reading."""
    hub = open_hub(settings.paths(), settings.context)
    try:
        provider = hub.at(settings.provider or USUAL_PROVIDER)
        yield Fleet(provider, hub.at("root"), hub.client, SystemClock())
    finally:
        await hub.client.transport.close()


@dataclass(frozen=True, slots=True)
class _Part:
    """A kind that is shown: where its export is, and what takes its objects."""

    name: str
    exporter: Client
    export: str
    gvr: GroupVersionResource
    put: Callable[[Object], None]
    drop: Callable[[Object], None]

    async def take(self, objects: Iterable[Object]) -> None:
        """Take in a page; a coroutine only to be run beside the request for another."""
        for obj in objects:
            self.put(obj)

    async def view(self) -> Client:
        """Return the client for all objects there are, once they may be read."""
        path = view_path(await self.exporter.get(API_EXPORTS, self.export))
        if not path:
            raise NotFound(f"the APIExport {self.export} has no view yet")
        return self.exporter.at(path, EVERYWHERE)


class Fleet:
    """What one hub says of its edges and placements."""

    def __init__(
        self, provider: Client, root: Client, base: Client, clock: Clock, page_size: int = _PAGE
    ) -> None:
        self.clock = clock
        self._page_size = page_size
        # Parts that may not be read, and why.
        self.unreadable: dict[str, str] = {}
        self.overview = overview = Overview()
        self._parts = (
            _Part(
                "edges",
                root,
                SYNC_TARGETS.group,
                SYNC_TARGETS,
                overview.put_edge,
                overview.drop_edge,
            ),
            _Part(
                "placements",
                provider,
                EXPORT,
                EDGE_PLACEMENTS,
                overview.put_placement,
                overview.drop_placement,
            ),
        )
        self._base = base
        self._paths: dict[ClusterName, str] = {}

    def path(self, cluster: ClusterName) -> str:
        """Return the path of a workspace that rows are from."""
        return self._paths.get(cluster, UNNAMED)

    async def read(self) -> None:
        """Read everything once."""
        for part in self._parts:
            await self._readable(part, self._read(part))
        self._check()
        await self.name_workspaces()

    async def _read(self, part: _Part) -> None:
        pages = (await part.view()).pages(part.gvr, page_size=self._page_size)
        page = await anext(pages, None)
        while page is not None:
            # The request goes out first: while this page is taken in, the hub makes the next.
            page, _ = await asyncio.gather(anext(pages, None), part.take(page.items))

    async def follow(self, tasks: asyncio.TaskGroup) -> None:
        """Read everything, and go on taking in what changes for as long as *tasks* run."""
        for part in self._parts:
            await self._readable(part, self._follow(part, tasks))
        self._check()
        await self.name_workspaces()

    async def _follow(self, part: _Part, tasks: asyncio.TaskGroup) -> None:
        # Only here: a single screen is there before these are loaded.
        from skerry.runtime.informer import InformerFactory
        from skerry.runtime.metrics import RuntimeMetrics

        client = await part.view()
        # An informer goes on trying what is forbidden; here that is an answer.
        await client.list_page(part.gvr, limit=1)
        factory = InformerFactory(client, ids=SystemIds(), metrics=RuntimeMetrics())
        informer = factory.informer(part.gvr, packed=True)

        def handle(old: Object | None, new: Object | None) -> None:
            if new is not None:
                part.put(new)
            elif old is not None:
                part.drop(old)

        informer.add_handler(handle)
        tasks.create_task(factory.run())
        await informer.wait_synced()

    async def _readable(self, part: _Part, reading: Awaitable[None]) -> None:
        """Await *reading*; note what may not be read, or is not served by this hub."""
        try:
            await reading
        except (Forbidden, NotFound) as error:
            self.unreadable[part.name] = error.message

    def _check(self) -> None:
        if len(self.unreadable) == len(self._parts):
            raise FleetUnreadable("; ".join(dict.fromkeys(self.unreadable.values())))

    async def name_workspaces(self) -> None:
        """Find the paths of the workspaces that rows are from and have no path yet."""
        room = asyncio.Semaphore(_AT_ONCE)

        async def name(cluster: ClusterName) -> None:
            async with room:
                try:
                    found = await self._base.at("", cluster).get(LOGICAL_CLUSTERS, "cluster")
                except (Forbidden, NotFound):
                    self._paths[cluster] = UNNAMED
                    return
            annotations = found["metadata"].get("annotations") or {}
            self._paths[cluster] = annotations.get(PATH_ANNOTATION, UNNAMED)

        await asyncio.gather(*map(name, sorted(self.overview.clusters() - self._paths.keys())))
