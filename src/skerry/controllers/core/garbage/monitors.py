"""Which types are followed: all that can be collected, as discovery tells, again on each change.

A type that discovery no longer names is dropped only when discovery was complete: a group whose
server is away is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupResource, GroupVersion, GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.controllers.core.garbage.graph import Graph, NodeKey, node_of
from skerry.controllers.core.garbage.keys import DEFINITIONS, Feed
from skerry.kit.log import Logger
from skerry.runtime.client import Client, Selection
from skerry.runtime.discovery import ServedTypes, discover
from skerry.runtime.informer import InformerFactory
from skerry.runtime.reflector import Reflector
from skerry.runtime.transport import TransportError

METADATA = Selection(metadata_only=True)

# New types mostly come with a CustomResourceDefinition, which is an event; others by this time.
_REDISCOVER_SECONDS = 30.0
# A definition becomes served a moment after it is written, and they come in bundles.
_SETTLE_SECONDS = 0.2
_FILL_SECONDS = 30.0
# Others are looked at again by time alone.
_MAX_EXPECTING = 10_000
# Nobody owns Events and nobody is owned by them; they are most of a cluster's traffic.
_IGNORED = frozenset((GroupResource("", "events"), GroupResource("events.k8s.io", "events")))
_NEEDED_VERBS = frozenset(("list", "watch", "delete"))

_log = Logger("garbage-collector-controller")


@dataclass(frozen=True, slots=True)
class _Monitor:
    info: ResourceInfo
    feed: Feed
    task: asyncio.Task[None]


class Monitors:
    """The reflectors that feed the graph."""

    def __init__(
        self,
        client: Client,
        factory: InformerFactory,
        graph: Graph,
        add: Callable[[NodeKey], None],
        selection: Selection = METADATA,
        defining: Sequence[GroupVersionResource] = (DEFINITIONS,),
    ) -> None:
        self._selection = selection
        self._defining = defining
        self._client = client
        self._factory = factory
        self._graph = graph
        self._add = add
        self._followed: dict[GroupResource, _Monitor] = {}
        self._changed = asyncio.Event()
        self._discovered = asyncio.Event()
        self.types = ServedTypes(())
        # Nodes with an owner of a kind that discovery did not name.
        self._expecting: set[NodeKey] = set()

    def expect_owner(self, key: NodeKey) -> None:
        """Have *key* looked at again as soon as discovery names further types."""
        if len(self._expecting) < _MAX_EXPECTING:
            self._expecting.add(key)

    @property
    def synced(self) -> bool:
        """Whether everything there is of every type followed is in the graph."""
        return bool(self._followed) and all(
            monitor.feed.synced.is_set() for monitor in self._followed.values()
        )

    async def wait_filled(self) -> None:
        """Wait until the graph holds what there is; but not for ever on a type that fails.

        Beginning earlier would be safe but slow: every owner not seen yet is looked up live.
        """
        await self._discovered.wait()
        try:
            async with asyncio.timeout(_FILL_SECONDS):
                for monitor in list(self._followed.values()):
                    await monitor.feed.synced.wait()
        except TimeoutError:
            _log.warning("beginning without every type", known=len(self._followed))

    async def run(self) -> None:
        """Follow what the server serves until cancelled."""
        for gvr in self._defining:
            self._factory.informer(gvr, METADATA).add_handler(self._on_definition)
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    await self._refresh(tasks)
                except (ApiError, TransportError) as error:
                    _log.warning("discovery failed", error=error)
                await self._next_occasion()

    async def _next_occasion(self) -> None:
        try:
            async with asyncio.timeout(_REDISCOVER_SECONDS):
                await self._changed.wait()
            await self._client.clock.sleep(_SETTLE_SECONDS)
        except TimeoutError:
            pass
        self._changed.clear()

    async def _refresh(self, tasks: asyncio.TaskGroup) -> None:
        """Ask what is served now; follow what is new, leave what has gone."""
        types = await discover(self._client)
        self.types = types
        wanted = {
            resource: info
            for resource, info in types.preferred().items()
            if resource not in _IGNORED and set(info.verbs) >= _NEEDED_VERBS
        }
        for resource in [known for known in self._followed if known not in wanted]:
            if not _may_be_away(resource, types.failed):
                await self._leave(resource)
        new = wanted.keys() - self._followed.keys()
        for resource, info in wanted.items():
            known = self._followed.get(resource)
            if known is not None and known.info.gvr != info.gvr:
                await self._leave(resource)
            if resource not in self._followed:
                self._follow(info, tasks)
        self._discovered.set()
        if new:
            expecting, self._expecting = self._expecting, set()
            for key in expecting:
                self._add(key)

    def _follow(self, info: ResourceInfo, tasks: asyncio.TaskGroup) -> None:
        feed = Feed(self._graph, info.gvr, self._add)
        reflector = Reflector(
            self._client,
            info.gvr,
            feed,
            partial(node_of, info),
            ids=self._factory.ids,
            selection=self._selection,
            metrics=self._factory.metrics,
            source=self._factory.source,
        )
        self._followed[info.group_resource] = _Monitor(
            info, feed, tasks.create_task(reflector.run())
        )

    async def _leave(self, resource: GroupResource) -> None:
        """Forget a type: its objects went with it, or are followed at another version."""
        monitor = self._followed.pop(resource)
        monitor.task.cancel()
        await monitor.feed.clear()

    def _on_definition(self, _: Object | None, __: Object | None) -> None:
        self._changed.set()


def _may_be_away(resource: GroupResource, failed: tuple[GroupVersion, ...]) -> bool:
    return any(version.group == resource.group for version in failed)
