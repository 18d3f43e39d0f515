"""A CronJob is enqueued by its Jobs, by name; orphans are nobody's."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.cronjob.events import connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

CRON_JOBS = GroupVersionResource("batch", "v1", "cronjobs")
JOBS = GroupVersionResource("batch", "v1", "jobs")


async def test_a_job_enqueues_its_cron_job_also_when_it_goes() -> None:
    queue = queue_of_keys()
    cron_jobs, jobs = cache(CRON_JOBS), cache(JOBS)
    connect(queue, cron_jobs, jobs)
    cron_jobs.apply("ADDED", owned("nightly"))
    assert await drained(queue) == ["shop/nightly"]
    job = owned("nightly-1", "CronJob", "nightly")
    jobs.apply("ADDED", job)
    assert await drained(queue) == ["shop/nightly"]
    jobs.apply("DELETED", job)
    assert await drained(queue) == ["shop/nightly"]
    jobs.apply("ADDED", owned("by-hand"))
    jobs.apply("ADDED", owned("other", "Workflow", "w"))
    assert await drained(queue) == []
