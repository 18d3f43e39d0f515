"""A Service, the pods it selects, and the endpoints it has now."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.endpointslice.events import BY_SERVICE, IN_NAMESPACE
from skerry.controllers.workload.kinds import ENDPOINTS, SERVICES
from skerry.logic.machinery.selectors import Selector
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """``endpoints`` is the Endpoints object of the same name, when there is one."""

    service: Object
    pods: tuple[Object, ...]
    slices: tuple[Object, ...]
    endpoints: Object | None = None


@dataclass(frozen=True, slots=True)
class Leftover:
    """Endpoints whose Service is gone; slices have an owner and are collected without us."""

    endpoints: Object


class Observer:
    """Reads from caches; Endpoints, which few read, live."""

    def __init__(
        self, client: Client, services: Informer, pods: Informer, slices: Informer
    ) -> None:
        self._client = client
        self._services = services
        self._pods = pods
        self._slices = slices

    async def observe(self, key: Key) -> Observed | Leftover | None:
        service = self._services.index.get(key)
        if service is None:
            return await self._leftover(key)
        # Without a selector somebody else tells where a Service leads.
        if not service["spec"].get("selector"):
            return None
        if service["spec"].get("type") == "ExternalName":
            return None
        selector = Selector.from_labels(service["spec"]["selector"])
        pods = tuple(
            pod
            for pod in self._pods.index.by(IN_NAMESPACE, (key.cluster, key.namespace))
            if selector.matches(pod["metadata"].get("labels"))
        )
        slices = tuple(self._slices.index.by(BY_SERVICE, (key.namespace, key.name)))
        return Observed(service, pods, slices, await self._live(ENDPOINTS, key))

    async def _leftover(self, key: Key) -> Leftover | None:
        """Return Endpoints that lost their Service.

        One that was made again with Endpoints of its own may not be in the cache yet; people who
        keep those by hand would not get them back.
        """
        endpoints = await self._live(ENDPOINTS, key)
        if endpoints is None or await self._live(SERVICES, key) is not None:
            return None
        return Leftover(endpoints)

    async def _live(self, kind: GroupVersionResource, key: Key) -> Object | None:
        try:
            return await self._client.for_cluster(key.cluster).get(kind, key.name, key.namespace)
        except NotFound:
            return None
