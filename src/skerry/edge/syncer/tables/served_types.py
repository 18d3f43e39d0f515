"""Which types a server offers, kept up to date by what makes types come and go.

Definitions (and at a hub, bindings) are watched; a change of one is a reason to ask for discovery
again, shortly after, because servers offer a new type a moment after they accept it. Where they
may not be watched, somebody else says so (``renew``), and discovery is asked again at growing
intervals as long as a type is missed (``suspect``) or expected (``expect``).

Discovery that fails is asked again, and what was known stays known meanwhile, the types of a group
whose aggregated server is away included: that nobody answers for a type does not mean that its
objects are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from skerry.api.errors import ApiError, Forbidden
from skerry.api.kcp.resources import API_BINDINGS
from skerry.api.kinds import GroupResource, GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.signal import Signal
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client, Selection
from skerry.runtime.discovery import ServedTypes as DiscoveredTypes
from skerry.runtime.discovery import discover
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.transport import TransportError

DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")

# A definition's own status follows its acceptance; one look for both.
_SETTLE_SECONDS = 0.05
_BACKOFF = Backoff(min_seconds=0.5, max_seconds=60.0, jitter=0.5)
_METADATA = Selection(metadata_only=True)


class ServedTypes:
    """The types of one server; ``changed`` is sent when they are known or differ."""

    def __init__(self, client: Client, factory: InformerFactory, ids: IdSource) -> None:
        self._client = client
        self._factory = factory
        self._ids = ids
        self.changed = Signal[[]]()
        self._wanted = asyncio.Event()
        self._wanted.set()
        # Set when there is a reason not to wait any longer.
        self._soon = asyncio.Event()
        self._missed = 0
        # None where the server lets nobody like us watch what makes types come and go.
        self._followed: dict[GroupVersionResource, Informer | None] = {}
        self._expected: frozenset[GroupVersionResource] = frozenset()
        self._by_version: dict[GroupVersionResource, ResourceInfo] = {}
        self._preferred: dict[GroupResource, ResourceInfo] = {}
        self._log = Logger("syncer-types")
        self.known = False

    def find(self, gvr: GroupVersionResource) -> ResourceInfo | None:
        """Return what is offered under exactly this name."""
        return self._by_version.get(gvr)

    def has_status(self, gvr: GroupVersionResource, *, unknown: bool) -> bool:
        """Tell whether a type keeps its status apart; *unknown* for a type that is not offered."""
        info = self._by_version.get(gvr)
        return unknown if info is None else any(sub.name == "status" for sub in info.subresources)

    def preferred(self) -> dict[GroupResource, ResourceInfo]:
        """Return each type once, at the version the server likes best."""
        return self._preferred

    def suspect(self) -> None:
        """Ask again soon: a type is missed."""
        self._missed += 1
        self._wanted.set()

    def expect(self, types: Iterable[GroupVersionResource]) -> None:
        """Ask again until these are offered, where nothing tells of them by itself."""
        expected = frozenset(types)
        if expected - self._expected - self._by_version.keys():
            self.renew()
        self._expected = expected

    def renew(self) -> None:
        """Ask again at once: there is a reason to believe that types have come or gone."""
        self._missed = 0
        self._soon.set()
        self._wanted.set()

    async def run(self) -> None:
        """Keep the types up to date until cancelled."""
        failures = 0
        while True:
            await self._wanted.wait()
            if self._missed > 1 or failures:
                await self._pause(_BACKOFF.seconds(max(self._missed, failures), self._ids))
            await self._client.clock.sleep(_SETTLE_SECONDS)
            self._soon.clear()
            self._wanted.clear()
            try:
                await self._take(await discover(self._client))
                failures = 0
            except (ApiError, TransportError) as error:
                failures += 1
                self._log.debug("discovery failed", attempt=failures, error=error)
                self._wanted.set()

    async def _pause(self, seconds: float) -> None:
        """Wait for so long, or until there is a reason to ask at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._soon.wait()

    async def _take(self, found: DiscoveredTypes) -> None:
        by_version = {info.gvr: info for info in found.resources if "list" in info.verbs}
        await self._follow([gvr for gvr in (DEFINITIONS, API_BINDINGS) if gvr in by_version])
        if self._expected - by_version.keys() and None in self._followed.values():
            self._missed += 1
            self._wanted.set()
        if found.failed:
            # A group whose server is away has not gone: what was known of it stays.
            lost = set(found.failed)
            for gvr, info in self._by_version.items():
                if gvr.group_version in lost:
                    by_version.setdefault(gvr, info)
        if by_version == self._by_version and self.known:
            return
        self._by_version = by_version
        self._preferred = {}
        for info in by_version.values():
            self._preferred.setdefault(info.group_resource, info)
        self.known = True
        if not self._wanted.is_set():
            self._missed = 0
        self.changed.send()

    async def _follow(self, types: Sequence[GroupVersionResource]) -> None:
        for gvr in types:
            if gvr not in self._followed:
                self._followed[gvr] = await self._watched(gvr)

    async def _watched(self, gvr: GroupVersionResource) -> Informer | None:
        """Begin to watch a type; return None where that is forbidden, as to an edge at its hub."""
        try:
            await self._client.list_page(gvr, _METADATA, limit=1)
        except Forbidden:
            self._log.debug("not allowed to watch what makes types", kind=str(gvr))
            return None
        informer = self._factory.informer(gvr, _METADATA, transform=_nothing, packed=True)
        informer.add_handler(self._happened)
        return informer

    def _happened(self, old: Object | None, new: Object | None) -> None:
        self.renew()


def _nothing(obj: Object) -> Object:
    """Keep no more of a definition than that it is there, and when it changed."""
    metadata = obj["metadata"]
    kept = ("name", "uid", "resourceVersion", "generation", "annotations")
    return {"metadata": {name: metadata[name] for name in kept if name in metadata}}
