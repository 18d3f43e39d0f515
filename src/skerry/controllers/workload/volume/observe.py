"""A claim with every volume and class; or a volume with the claim it is for."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """A claim and what could be bound to it; ``root`` is where local volumes are made."""

    claim: Object
    volumes: tuple[Object, ...]
    classes: tuple[Object, ...]
    root: str


@dataclass(frozen=True, slots=True)
class ObservedVolume:
    """A volume that names a claim, and that claim as it is now; None when it is gone."""

    volume: Object
    claim: Object | None
    root: str


Observed = ObservedClaim | ObservedVolume


class Observer:
    """Reads from caches; whether a claim is gone it asks the server itself."""

    def __init__(
        self,
        client: Client,
        claims: Informer,
        volumes: Informer,
        classes: Informer,
        root: str,
    ) -> None:
        self._client = client
        self._claims = claims
        self._volumes = volumes
        self._classes = classes
        self._root = root

    async def observe(self, key: Key) -> Observed | None:
        if not key.namespace:
            return await self._volume(key)
        claim = self._claims.index.get(key)
        if claim is None:
            return None
        volumes = tuple(self._volumes.index.objects())
        classes = tuple(self._classes.index.objects())
        return ObservedClaim(claim, volumes, classes, self._root)

    async def _volume(self, key: Key) -> Observed | None:
        volume = self._volumes.index.get(key)
        if volume is None:
            return None
        reference = volume["spec"].get("claimRef")
        if not reference:
            return ObservedVolume(volume, None, self._root)
        place = Key(key.cluster, reference.get("namespace", ""), reference["name"])
        claim = self._claims.index.get(place)
        if claim is None:
            try:
                client = self._client.for_cluster(key.cluster)
                claim = await client.get(self._claims.gvr, place.name, place.namespace)
            except NotFound:
                claim = None
        return ObservedVolume(volume, claim, self._root)
