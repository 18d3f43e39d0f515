"""Claims and volumes enqueue each other; a new class or volume gives pending claims a chance."""

from __future__ import annotations

from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.volume.events import connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

CLAIMS = GroupVersionResource("", "v1", "persistentvolumeclaims")
VOLUMES = GroupVersionResource("", "v1", "persistentvolumes")
CLASSES = GroupVersionResource("storage.k8s.io", "v1", "storageclasses")


def volume(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name, "uid": name}, "spec": spec}


async def test_claims_and_volumes_that_name_each_other_are_enqueued_together() -> None:
    queue = queue_of_keys()
    claims, volumes = cache(CLAIMS), cache(VOLUMES)
    connect(queue, claims, volumes, cache(CLASSES))
    claims.apply("ADDED", owned("data", spec={"volumeName": "pv"}, status={"phase": "Bound"}))
    assert await drained(queue) == ["shop/data", "pv"]
    volumes.apply("ADDED", volume("pv", claimRef={"namespace": "shop", "name": "data"}))
    assert await drained(queue) == ["pv", "shop/data"]


async def test_what_may_serve_anybody_enqueues_claims_that_wait() -> None:
    queue = queue_of_keys()
    claims, volumes, classes = cache(CLAIMS), cache(VOLUMES), cache(CLASSES)
    connect(queue, claims, volumes, classes)
    claims.apply("ADDED", owned("bound", status={"phase": "Bound"}))
    claims.apply("ADDED", owned("pending"))
    await drained(queue)
    volumes.apply("ADDED", volume("free"))
    assert await drained(queue) == ["free", "shop/pending"]
    classes.apply("ADDED", volume("fast"))
    assert await drained(queue) == ["shop/pending"]
