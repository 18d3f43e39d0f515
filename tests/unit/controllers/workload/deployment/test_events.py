"""A Deployment is enqueued by its ReplicaSets, and by the last pod of one that goes."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.deployment.events import connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
SETS = GroupVersionResource("apps", "v1", "replicasets")
PODS = GroupVersionResource("", "v1", "pods")


async def test_only_the_last_pod_of_a_replica_set_matters() -> None:
    queue = queue_of_keys()
    deployments, sets, pods = cache(DEPLOYMENTS), cache(SETS), cache(PODS)
    connect(queue, deployments, sets, pods)
    deployments.apply("ADDED", owned("web"))
    sets.apply("ADDED", owned("web-1", "Deployment", "web"))
    assert await drained(queue) == ["shop/web"]
    first, last = owned("a", "ReplicaSet", "web-1"), owned("b", "ReplicaSet", "web-1")
    pods.apply("ADDED", first)
    pods.apply("ADDED", last)
    pods.apply("DELETED", first)
    assert await drained(queue) == []
    pods.apply("DELETED", last)
    assert await drained(queue) == ["shop/web"]


async def test_pods_of_others_enqueue_nobody() -> None:
    queue = queue_of_keys()
    sets, pods = cache(SETS), cache(PODS)
    connect(queue, cache(DEPLOYMENTS), sets, pods)
    for pod in (owned("lone"), owned("job", "Job", "j"), owned("x", "ReplicaSet", "gone")):
        pods.apply("ADDED", pod)
        pods.apply("DELETED", pod)
    sets.apply("ADDED", owned("bare"))
    bare = owned("c", "ReplicaSet", "bare")
    pods.apply("ADDED", bare)
    pods.apply("DELETED", bare)
    assert await drained(queue) == []
