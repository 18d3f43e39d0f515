"""A DaemonSet, its pods and revisions, and the nodes there are."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.events import OWNER_UID, candidates
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.write_overlay import InformerOverlay


@dataclass(frozen=True, slots=True)
class Observed:
    """``suffixes`` are fresh, one for each node."""

    daemon_set: Object
    pods: tuple[Object, ...]
    revisions: tuple[Object, ...]
    nodes: tuple[Object, ...]
    suffixes: tuple[str, ...] = ()


class Observer:
    """Reads from caches."""

    def __init__(
        self,
        client: Client,
        informers: tuple[Informer, Informer, Informer],
        pods: InformerOverlay,
        ids: IdSource,
    ) -> None:
        self._client = client
        self._sets, self._revisions, self._nodes = informers
        self._pods = pods
        self._ids = ids

    async def observe(self, key: Key) -> Observed | None:
        found = self._sets.index.get(key)
        if found is None:
            return None
        await self._pods.resolve(self._client)
        pods = candidates(self._pods, found)
        revisions = self._revisions.index.by(OWNER_UID, found["metadata"]["uid"])
        nodes = tuple(self._nodes.index.objects())
        suffixes = tuple(self._ids.suffix(5) for _ in nodes)
        return Observed(found, tuple(pods), tuple(revisions), nodes, suffixes)
