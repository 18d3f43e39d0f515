"""A ReplicaSet and the pods it has to do with, own recent writes included."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.recent import RecentWrites
from skerry.controllers.workload.waking import candidates
from skerry.kit.ids import IdSource
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer

# Pods created in one plan; the next look creates the rest.
BURST = 500


@dataclass(frozen=True, slots=True)
class Observed:
    """One ReplicaSet, pods of its or nobody's, and fresh suffixes for names."""

    replica_set: Object
    pods: tuple[Object, ...]
    suffixes: tuple[str, ...] = ()


class Observer:
    """Reads from caches."""

    def __init__(
        self, replica_sets: Informer, pods: Informer, recent: RecentWrites, ids: IdSource
    ) -> None:
        self._replica_sets = replica_sets
        self._pods = pods
        self._recent = recent
        self._ids = ids

    async def observe(self, key: Key) -> Observed | None:
        replica_set = self._replica_sets.index.get(key)
        if replica_set is None:
            return None
        cached = candidates(self._pods, replica_set)
        pods = await self._recent.overlaid(key, cached)
        count = min(BURST, max(0, int(replica_set["spec"].get("replicas", 1))))
        suffixes = tuple(self._ids.suffix(5) for _ in range(count))
        return Observed(replica_set, tuple(pods), suffixes)
