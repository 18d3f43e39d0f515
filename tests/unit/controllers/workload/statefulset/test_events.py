"""A StatefulSet is enqueued by itself, its pods and its revisions."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.workload.statefulset.events import connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

SETS = GroupVersionResource("apps", "v1", "statefulsets")
PODS = GroupVersionResource("", "v1", "pods")
REVISIONS = GroupVersionResource("apps", "v1", "controllerrevisions")


async def test_what_belongs_to_a_set_enqueues_it() -> None:
    queue = queue_of_keys()
    sets, pods, revisions = cache(SETS), cache(PODS), cache(REVISIONS)
    connect(queue, sets, pods, revisions)
    sets.apply("ADDED", owned("db"))
    assert await drained(queue) == ["shop/db"]
    pods.apply("ADDED", owned("db-0", "StatefulSet", "db"))
    assert await drained(queue) == ["shop/db"]
    revisions.apply("ADDED", owned("db-r1", "StatefulSet", "db"))
    assert await drained(queue) == ["shop/db"]
    pods.apply("ADDED", owned("web", "ReplicaSet", "web"))
    assert await drained(queue) == []
