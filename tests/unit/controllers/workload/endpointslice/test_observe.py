"""A Service with the pods it selects; what somebody else leads is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload.endpointslice.decide import decide
from skerry.controllers.workload.endpointslice.events import connect
from skerry.controllers.workload.endpointslice.observe import Leftover, Observed, Observer
from skerry.logic.machinery.plan import Delete
from skerry.runtime.client import Client
from skerry.runtime.index import Key
from tests.kit.caches import cache, owned, queue_of_keys
from tests.kit.sim.twin import TYPES, Twin, served

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
SERVICES = GroupVersionResource("", "v1", "services")
PODS = GroupVersionResource("", "v1", "pods")
ENDPOINTS = GroupVersionResource("", "v1", "endpoints")
SLICES = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")


async def observed(*, endpoints: bool = False, **spec: Any) -> Observed | None:
    client = Client(Twin(types=[*TYPES, served("", "v1", "endpoints", "Endpoints")]))
    services, pods, slices = cache(SERVICES), cache(PODS), cache(SLICES)
    connect(queue_of_keys(), services, pods, slices)
    services.apply("ADDED", owned("web", spec=spec))
    pods.apply("ADDED", pod("a", "shop", app="web"))
    pods.apply("ADDED", pod("b", "shop", app="db"))
    pods.apply("ADDED", pod("c", "bank", app="web"))
    if endpoints:
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await client.create(ENDPOINTS, {"metadata": {"name": "web", "namespace": "shop"}})
    found = await Observer(client, services, pods, slices).observe(Key("", "shop", "web"))
    assert not isinstance(found, Leftover)
    return found


def pod(name: str, namespace: str, **labels: str) -> Object:
    return owned(name, namespace=namespace, metadata={"labels": labels})


@pytest.mark.parametrize("endpoints", [False, True])
async def test_pods_that_match_in_the_same_namespace_are_seen(endpoints: bool) -> None:
    found = await observed(selector={"app": "web"}, endpoints=endpoints)
    assert found is not None
    assert [each["metadata"]["name"] for each in found.pods] == ["a"]
    assert (found.endpoints is not None) is endpoints


async def test_a_service_that_others_lead_is_left_alone() -> None:
    assert await observed() is None
    assert await observed(selector={"app": "web"}, type="ExternalName") is None


async def test_endpoints_of_a_service_that_is_gone_are_left_over() -> None:
    client = Client(Twin(types=[*TYPES, served("", "v1", "endpoints", "Endpoints")]))
    services, pods, slices = cache(SERVICES), cache(PODS), cache(SLICES)
    connect(queue_of_keys(), services, pods, slices)
    observer = Observer(client, services, pods, slices)
    assert await observer.observe(Key("", "shop", "web")) is None
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await client.create(ENDPOINTS, {"metadata": {"name": "web", "namespace": "shop"}})
    found = await observer.observe(Key("", "shop", "web"))
    assert isinstance(found, Leftover)
    (action,) = decide(found)
    assert isinstance(action, Delete)
    assert (action.target.gvr, action.target.name) == (ENDPOINTS, "web")


async def test_endpoints_of_a_service_that_was_made_again_are_left_alone() -> None:
    kinds = [served("", "v1", "endpoints", "Endpoints"), served("", "v1", "services", "Service")]
    client = Client(Twin(types=[*TYPES, *kinds]))
    services, pods, slices = cache(SERVICES), cache(PODS), cache(SLICES)
    connect(queue_of_keys(), services, pods, slices)
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    for kind in (SERVICES, ENDPOINTS):
        await client.create(kind, {"metadata": {"name": "web", "namespace": "shop"}})
    found = await Observer(client, services, pods, slices).observe(Key("", "shop", "web"))
    assert found is None, "the cache is behind"
