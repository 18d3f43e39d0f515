"""A CronJob and the Jobs it started."""

from __future__ import annotations

from dataclasses import dataclass

from skerry.api.objects import Object
from skerry.controllers.workload.events import OWNER_UID
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class Observed:
    """One CronJob and its Jobs."""

    cron_job: Object
    jobs: tuple[Object, ...]


class Observer:
    """Reads from caches; a Job's name is its time, so a stale cache cannot start one twice."""

    def __init__(self, cron_jobs: Informer, jobs: Informer) -> None:
        self._cron_jobs = cron_jobs
        self._jobs = jobs

    async def observe(self, key: Key) -> Observed | None:
        found = self._cron_jobs.index.get(key)
        if found is None:
            return None
        return Observed(found, tuple(self._jobs.index.by(OWNER_UID, found["metadata"]["uid"])))
