"""A Job and its pods; or the pods alone, when their Job is gone."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.events import candidates
from skerry.controllers.workload.job.events import BY_JOB
from skerry.kit.ids import IdSource
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.write_overlay import InformerOverlay

# Pods created in one plan; the next look creates the rest.
BURST = 500


@dataclass(frozen=True, slots=True)
class Observed:
    """``job`` is None when only pods of a Job that is gone are left."""

    key: Key
    job: Object | None
    pods: tuple[Object, ...]
    suffixes: tuple[str, ...] = ()


class Observer:
    """Reads from caches."""

    def __init__(
        self, client: Client, jobs: Informer, pods: InformerOverlay, ids: IdSource
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._pods = pods
        self._ids = ids

    async def observe(self, key: Key) -> Observed | None:
        await self._pods.resolve(self._client)
        job = self._jobs.index.get(key)
        if job is None:
            orphans = self._pods.by(BY_JOB, (key.namespace, key.name))
            return Observed(key, None, tuple(orphans)) if orphans else None
        pods = candidates(self._pods, job)
        count = min(BURST, max(0, int(job["spec"].get("parallelism", 1))))
        suffixes = tuple(self._ids.suffix(5) for _ in range(count))
        return Observed(key, job, tuple(pods), suffixes)
