"""Claims and volumes go when nobody uses them; in virtual time on the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.core.volume_protection import (
    CLAIM_FINALIZER,
    CLAIMS,
    PODS,
    VOLUME_FINALIZER,
    VOLUMES,
    Observed,
    build,
    decide,
    uses,
)
from skerry.logic.machinery.plan import Update
from skerry.runtime.client import Client, DeleteOptions
from skerry.runtime.context import ControllerContext
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@asynccontextmanager
async def running() -> AsyncIterator[Client]:
    world = EngineWorld(1, Rates(0.0, 0.0, 0.0, 0.0, 0.0))
    controller = build(ControllerContext(world.client, world.factory, world.ids))
    async with world.running(controller.run):
        await asyncio.sleep(1)
        await world.direct.create(ACCOUNTS, {"metadata": {"name": "default"}}, "default")
        yield world.direct


def pod(name: str, claim: str, node: str = "n") -> Object:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    return {"metadata": {"name": name}, "spec": {**spec, "nodeName": node} if node else spec}


@virtual
async def test_a_claim_that_a_pod_uses_goes_when_the_pod_has_gone() -> None:
    async with running() as client:
        await client.create(CLAIMS, {"metadata": {"name": "a"}, "spec": SPEC}, "default")
        await asyncio.sleep(1)
        found = await client.get(CLAIMS, "a", "default")
        assert found["metadata"]["finalizers"] == [CLAIM_FINALIZER], "it had none"
        await client.create(PODS, pod("p", "a"), "default")
        await client.create(PODS, pod("unscheduled", "a", ""), "default")
        await client.delete(CLAIMS, "a", "default")
        await asyncio.sleep(60)
        assert "deletionTimestamp" in (await client.get(CLAIMS, "a", "default"))["metadata"]
        await client.delete(PODS, "p", "default", DeleteOptions(grace_seconds=0))
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(CLAIMS, "a", "default")


@virtual
async def test_a_volume_goes_when_it_is_not_bound() -> None:
    async with running() as client:
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }
        made = await client.create(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
        made["status"] = {"phase": "Bound"}
        made["metadata"].pop("resourceVersion")
        await client.update_status(VOLUMES, made)
        await asyncio.sleep(1)
        await client.delete(VOLUMES, "v")
        await asyncio.sleep(1)
        found = await client.get(VOLUMES, "v")
        assert found["metadata"]["finalizers"] == [VOLUME_FINALIZER]
        found["status"] = {"phase": "Released"}
        await client.update_status(VOLUMES, found)
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(VOLUMES, "v")


def test_a_claim_made_for_a_pod_is_used_until_the_pod_is_shut_down() -> None:
    volume = {"name": "v", "ephemeral": {}}
    owner: Object = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"nodeName": "n", "volumes": [volume]},
    }
    claim: Object = {"metadata": {"name": "p-v", "ownerReferences": [{"uid": "u"}]}}
    assert uses(owner, claim)
    assert not uses(owner, {"metadata": {"name": "p-v"}}), "of that name, and not its own"
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    shut = {**owner, "metadata": {**owner["metadata"], **gone}}
    assert not uses(shut, claim)


def written(claim: Object, *, used: bool) -> Object | None:
    """Return a claim as it is written, if it is."""
    for action in decide(Observed(claim, CLAIMS, CLAIM_FINALIZER, used)):
        assert isinstance(action, Update)
        return action.object
    return None


def test_a_plan_that_was_carried_out_leaves_none() -> None:
    made = written({"metadata": {"name": "a", "namespace": "n"}}, used=False)
    assert made is not None
    assert written(made, used=False) is None
    goes = {"deletionTimestamp": "x", "finalizers": [CLAIM_FINALIZER, "other"]}
    claim: Object = {"metadata": {"name": "a", **goes}}
    assert written(claim, used=True) is None
    freed = written(claim, used=False)
    assert freed is not None
    assert freed["metadata"]["finalizers"] == ["other"]
