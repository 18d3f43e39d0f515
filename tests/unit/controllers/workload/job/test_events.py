"""Pods are found by the name of their Job, which may be gone."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.job.events import BY_JOB, connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

JOBS = GroupVersionResource("batch", "v1", "jobs")
PODS = GroupVersionResource("", "v1", "pods")


async def test_pods_enqueue_their_job_and_are_found_by_its_name() -> None:
    queue = queue_of_keys()
    jobs, pods = cache(JOBS), cache(PODS)
    connect(queue, jobs, pods)
    pods.apply("ADDED", owned("j-1", "Job", "j"))
    pods.apply("ADDED", owned("web", "ReplicaSet", "web"))
    assert await drained(queue) == ["shop/j"], "though the Job itself was never seen"
    [found] = pods.index.by(BY_JOB, ("shop", "j"))
    assert found["metadata"]["name"] == "j-1"
    jobs.apply("ADDED", owned("j"))
    assert await drained(queue) == ["shop/j"]
