"""A Job with its pods, or the pods of one that is gone; no more names than a plan may use."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.job.events import connect
from skerry.controllers.workload.job.observe import BURST, Observed, Observer
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from skerry.runtime.write_overlay import InformerOverlay
from tests.kit.caches import cache, owned, queue_of_keys
from tests.kit.sim.twin import Twin

JOBS = GroupVersionResource("batch", "v1", "jobs")
PODS = GroupVersionResource("", "v1", "pods")


async def observed(*, job: bool = True, pods: int = 1, **spec: Any) -> Observed | None:
    jobs, cached = cache(JOBS), cache(PODS)
    connect(queue_of_keys(), jobs, cached)
    if job:
        jobs.apply("ADDED", owned("j", spec=spec))
    for number in range(pods):
        cached.apply("ADDED", owned(f"j-{number}", "Job", "j"))
    observer = Observer(Client(Twin()), jobs, InformerOverlay(cached), SeededIds(0))
    return await observer.observe(Key("", "shop", "j"))


async def test_a_job_is_seen_with_its_pods_and_fresh_names() -> None:
    found = await observed(parallelism=3, pods=2)
    assert found is not None
    assert len(found.pods) == 2
    assert len(set(found.suffixes)) == 3
    hasty = await observed(parallelism=10 * BURST)
    assert hasty is not None
    assert len(hasty.suffixes) == BURST
    still = await observed(parallelism=-1)
    assert still is not None
    assert still.suffixes == ()


async def test_pods_outlive_their_job_and_then_nothing_is_left() -> None:
    found = await observed(job=False)
    assert found is not None
    assert (found.job, len(found.pods)) == (None, 1)
    assert await observed(job=False, pods=0) is None
