"""A Service is enqueued by pods that it selects or selected, and by its slices."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.endpointslice.events import BY_SERVICE, SERVICE_NAME, connect
from tests.kit.caches import cache, drained, owned, queue_of_keys

SERVICES = GroupVersionResource("", "v1", "services")
PODS = GroupVersionResource("", "v1", "pods")
SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")


def pod(app: str, version: str = "1") -> Object:
    return owned("p", metadata={"labels": {"app": app}, "resourceVersion": version})


async def test_a_pod_enqueues_services_that_select_it_now_or_did() -> None:
    queue = queue_of_keys()
    services, pods, slices = cache(SERVICES), cache(PODS), cache(SLICES)
    connect(queue, services, pods, slices)
    services.apply("ADDED", owned("web", spec={"selector": {"app": "web"}}))
    services.apply("ADDED", owned("db", spec={"selector": {"app": "db"}}))
    services.apply("ADDED", owned("external", spec={}))
    services.apply("ADDED", owned("far", namespace="bank", spec={"selector": {"app": "web"}}))
    await drained(queue)
    pods.apply("ADDED", pod("web"))
    assert await drained(queue) == ["shop/web"]
    pods.apply("MODIFIED", pod("db", "2"))
    assert sorted(await drained(queue)) == ["shop/db", "shop/web"]
    pods.apply("DELETED", pod("db", "3"))
    assert await drained(queue) == ["shop/db"]


async def test_a_slice_enqueues_the_service_it_names() -> None:
    queue = queue_of_keys()
    slices = cache(SLICES)
    services = cache(SERVICES)
    connect(queue, services, cache(PODS), slices)
    named = owned("web-x", metadata={"labels": {SERVICE_NAME: "web"}})
    slices.apply("ADDED", named)
    assert await drained(queue) == [], "there is no such Service"
    services.apply("ADDED", owned("web", spec={}))
    assert await drained(queue) == ["shop/web"]
    slices.apply("ADDED", owned("web-y", metadata={"labels": {SERVICE_NAME: "web"}}))
    assert await drained(queue) == ["shop/web"]
    assert len(slices.index.by(BY_SERVICE, ("shop", "web"))) == 2
    slices.apply("ADDED", owned("by-hand"))
    assert await drained(queue) == []
