"""A PartitionSet makes Partitions of the hub's Shards, and they follow it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import DEFINITIONS, Hub, HubPlace, in_hub

SETS = "/apis/topology.kcp.io/v1alpha1/partitionsets"
PARTITIONS = "/apis/topology.kcp.io/v1alpha1/partitions"
SHARD = "/clusters/root/apis/core.kcp.io/v1alpha1/shards/root"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def partition_set(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "topology.kcp.io/v1alpha1",
        "kind": "PartitionSet",
        "metadata": {"name": name},
        "spec": spec,
    }


async def label(hub: Hub, **labels: str | None) -> None:
    reply = await hub.ask("kcp-admin", "PATCH", SHARD, {"metadata": {"labels": labels}}, **MERGE)
    assert reply.status == 200


async def partitions(hub: Hub, cluster: str) -> list[dict[str, Any]]:
    return list((await hub.get(cluster, PARTITIONS))["items"])


@in_hub
async def test_a_set_makes_a_partition_of_the_shard_and_follows_its_labels(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await label(hub, region="West")
    made = await hub.create(shop, SETS, partition_set("regions", dimensions=["region"]))
    await hub.until(shop, f"{SETS}/regions", "status", "count", 1)
    [found] = await partitions(hub, shop)
    assert found["metadata"]["name"].startswith("regions-west-")
    assert found["spec"] == {"selector": {"matchLabels": {"region": "West"}}}
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)

    # One that somebody deletes comes back.
    path = f"/clusters/{shop}{PARTITIONS}"
    await hub.ask("kcp-admin", "DELETE", f"{path}/{found['metadata']['name']}")
    await hub.gone(shop, f"{PARTITIONS}/{found['metadata']['name']}")
    async with asyncio.timeout(60):
        while not (found_again := await partitions(hub, shop)):
            await hub.settled()
    [again] = found_again
    assert again["spec"] == found["spec"]

    # The Shard moves: the old one goes, another comes.
    await label(hub, region="East")
    await hub.gone(shop, f"{PARTITIONS}/{again['metadata']['name']}")
    [moved] = await partitions(hub, shop)
    assert moved["metadata"]["name"].startswith("regions-east-")
    await label(hub, region=None)
    await hub.until(shop, f"{SETS}/regions", "status", "count", 0)
    assert await partitions(hub, shop) == []


@in_hub
async def test_a_partition_that_somebody_holds_is_marked_and_waited_for(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await label(hub, region="West")
    await hub.create(shop, SETS, partition_set("regions", dimensions=["region"]))
    await hub.until(shop, f"{SETS}/regions", "status", "count", 1)
    [found] = await partitions(hub, shop)
    path = f"{PARTITIONS}/{found['metadata']['name']}"
    held = {"metadata": {"finalizers": ["x.io/y"]}}
    reply = await hub.ask("kcp-admin", "PATCH", f"/clusters/{shop}{path}", held, **MERGE)
    assert reply.status == 200, reply.body
    await label(hub, region="East")
    while len(there := await partitions(hub, shop)) < 2:
        await hub.settled()
    marked = [each for each in there if "deletionTimestamp" in each["metadata"]]
    assert [each["metadata"]["name"] for each in marked] == [found["metadata"]["name"]]
    free = {"metadata": {"finalizers": None}}
    reply = await hub.ask("kcp-admin", "PATCH", f"/clusters/{shop}{path}", free, **MERGE)
    assert reply.status == 200, reply.body
    await hub.gone(shop, path)


@in_hub
async def test_a_type_that_only_has_the_name_makes_nothing(hub: Hub) -> None:
    await label(hub, region="West")
    names = {"plural": "partitionsets", "singular": "partitionset", "kind": "PartitionSet"}
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "partitionsets.topology.kcp.io"},
        "spec": {
            "group": "topology.kcp.io",
            "scope": "Cluster",
            "names": {**names, "listKind": "PartitionSetList"},
            "versions": [version],
        },
    }
    bare = await hub.workspace("root", "bare")
    for binding in (await hub.get(bare, "/apis/apis.kcp.io/v1alpha1/apibindings"))["items"]:
        if binding["spec"]["reference"]["export"]["name"] == "topology.kcp.io":
            path = f"/apis/apis.kcp.io/v1alpha1/apibindings/{binding['metadata']['name']}"
            await hub.ask("kcp-admin", "DELETE", f"/clusters/{bare}{path}")
            await hub.gone(bare, path)
    await hub.create(bare, DEFINITIONS, definition)
    await hub.create(bare, SETS, partition_set("mine", dimensions=["region"]))
    shop = await hub.workspace("root", "shop")
    await hub.create(shop, SETS, partition_set("real", dimensions=["region"]))
    await hub.until(shop, f"{SETS}/real", "status", "count", 1)
    assert "status" not in await hub.get(bare, f"{SETS}/mine")
