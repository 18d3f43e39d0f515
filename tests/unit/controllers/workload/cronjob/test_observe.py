"""A CronJob with the Jobs that it started."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.cronjob.observe import Observer
from skerry.controllers.workload.events import OWNER_UID, by_owner
from skerry.runtime.index import Key
from tests.kit.caches import cache, owned

CRON_JOBS = GroupVersionResource("batch", "v1", "cronjobs")
JOBS = GroupVersionResource("batch", "v1", "jobs")


async def test_only_its_own_jobs_are_seen() -> None:
    jobs = cache(
        JOBS,
        owned("nightly-1", "CronJob", "nightly"),
        owned("hourly-1", "CronJob", "hourly"),
        owned("by-hand"),
        indexes={OWNER_UID: by_owner},
    )
    observer = Observer(cache(CRON_JOBS, owned("nightly")), jobs)
    found = await observer.observe(Key("", "shop", "nightly"))
    assert found is not None
    assert [each["metadata"]["name"] for each in found.jobs] == ["nightly-1"]
    assert await observer.observe(Key("", "shop", "gone")) is None
