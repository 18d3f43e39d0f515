"""Which types a server offers, kept up to date by what makes types come and go.

Definitions (and at a hub, bindings) are watched; a change of one is a reason to ask for discovery
again, shortly after, because servers offer a new type a moment after they accept it. Where they
may not be watched, ``suspect`` asks again, at growing intervals, as long as a type is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupResource, GroupVersionResource, ResourceInfo
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.resource import Object
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client, Selection
from skerry.runtime.discovery import ServedTypes, discover
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.transport import TransportError

DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
BINDINGS = GroupVersionResource("apis.kcp.io", "v1alpha1", "apibindings")

# A definition's own status follows its acceptance; one look for both.
_SETTLE_SECONDS = 0.05
_BACKOFF = Backoff(shortest_seconds=0.5, longest_seconds=60.0, jitter=0.5)
_METADATA = Selection(metadata_only=True)


class Served:
    """The types of one server; ``changed`` is called when they are known or differ."""

    def __init__(
        self, client: Client, factory: InformerFactory, ids: IdSource, changed: Callable[[], None]
    ) -> None:
        self._client = client
        self._factory = factory
        self._ids = ids
        self._changed = changed
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._missed = 0
        self._followed: dict[GroupVersionResource, Informer] = {}
        self._by_version: dict[GroupVersionResource, ResourceInfo] = {}
        self._preferred: dict[GroupResource, ResourceInfo] = {}
        self._log = Logger("syncer-types")
        self.known = False

    def find(self, gvr: GroupVersionResource) -> ResourceInfo | None:
        """Return what is offered under exactly this name."""
        return self._by_version.get(gvr)

    def preferred(self) -> dict[GroupResource, ResourceInfo]:
        """Return each type once, at the version the server likes best."""
        return self._preferred

    def suspect(self) -> None:
        """Ask again soon: a type is missed."""
        self._missed += 1
        self._wanted.set()

    async def run(self) -> None:
        """Keep the types up to date until cancelled."""
        failures = 0
        while True:
            await self._wanted.wait()
            delay = _SETTLE_SECONDS
            if self._missed > 1 or failures:
                delay = _BACKOFF.seconds(max(self._missed, failures), self._ids)
            await self._client.clock.sleep(delay)
            self._wanted.clear()
            try:
                self._take(await discover(self._client))
                failures = 0
            except (ApiError, TransportError) as error:
                failures += 1
                self._log.debug("discovery failed", attempt=failures, error=error)
                self._wanted.set()

    def _take(self, found: ServedTypes) -> None:
        by_version = {info.gvr: info for info in found.resources if "list" in info.verbs}
        self._follow([gvr for gvr in (DEFINITIONS, BINDINGS) if gvr in by_version])
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
        self._missed = 0
        self._changed()

    def _follow(self, types: Sequence[GroupVersionResource]) -> None:
        for gvr in types:
            if gvr not in self._followed:
                informer = self._factory.informer(gvr, _METADATA, transform=_nothing, packed=True)
                informer.add_handler(self._happened)
                self._followed[gvr] = informer

    def _happened(self, old: Object | None, new: Object | None) -> None:
        self._missed = 0
        self._wanted.set()


def _nothing(obj: Object) -> Object:
    """Keep no more of a definition than that it is there, and when it changed."""
    metadata = obj["metadata"]
    kept = ("name", "uid", "resourceVersion", "generation", "annotations")
    return {"metadata": {name: metadata[name] for name in kept if name in metadata}}
