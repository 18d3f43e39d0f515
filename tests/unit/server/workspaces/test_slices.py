"""Endpoint slices say where an export's view is, for as long as there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.hub import (
    EXPORTS,
    Hub,
    HubPlace,
    export,
    in_hub,
    provider,
)

SLICES = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices"
PARTITIONS = "/apis/topology.kcp.io/v1alpha1/partitions"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def endpoints(name: str, path: str, of: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIExportEndpointSlice",
        "metadata": {"name": name},
        "spec": {"export": {"path": path, "name": of}, **spec},
    }


def faults(obj: dict[str, Any]) -> dict[str, str]:
    return {
        c["type"]: c.get("message", "")
        for c in obj["status"]["conditions"]
        if c["status"] == "False"
    }


@in_hub
async def test_a_slice_follows_its_export(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    user = await hub.workspace("root", "user")
    made = await hub.create(user, SLICES, endpoints("s", "root:shop", "widgets"))
    url = f"{hub.running.url}/services/apiexport/{shop}/widgets"
    assert made["status"]["endpoints"] == [{"url": url}]
    assert faults(made) == {}
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{EXPORTS}/widgets")
    gone = await hub.until(user, f"{SLICES}/s", "status", "endpoints", [])
    assert faults(gone) == {
        "APIExportValid": "Error getting APIExport root:shop|widgets",
        "EndpointURLsReady": "",
    }
    # Of a Partition nothing is said where there never was an export.
    lost = await hub.create(shop, SLICES, endpoints("lost", "", "nothing", partition="p"))
    assert [c["type"] for c in lost["status"]["conditions"]] == [
        "APIExportValid",
        "EndpointURLsReady",
    ]
    await hub.create(shop, EXPORTS, export("widgets", "v1.widgets.example.io"))
    back = await hub.until(user, f"{SLICES}/s", "status", "endpoints", [{"url": url}])
    assert faults(back) == {}


@in_hub
async def test_only_who_may_bind_an_export_learns_where_it_is(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    mine = await hub.workspace("root", "mine", admin="alice")
    refusals = []
    for name in ("widgets", "nothing"):
        obj = endpoints("s", "root:shop", name)
        reply = await hub.ask("alice", "POST", f"/clusters/{mine}{SLICES}", obj)
        assert reply.status == 403
        refusals.append(reply.body["message"].replace(name, "…"))
    why = "unable to create APIExportEndpointSlice: no permission to bind to export root:shop:…"
    assert refusals[0] == refusals[1]
    assert refusals[0].endswith(why)


@in_hub
async def test_a_partition_says_whether_the_shard_is_meant(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    wanted = endpoints("s", "", "widgets", partition="p")
    made = await hub.create(shop, SLICES, wanted)
    assert faults(made)["PartitionValid"] == 'partitions.topology.kcp.io "p" not found'
    for name, selector, count in (("all", {}, 1), ("none", {"matchLabels": {"a": "b"}}, 0)):
        partition = {
            "apiVersion": "topology.kcp.io/v1alpha1",
            "kind": "Partition",
            "metadata": {"name": name},
            "spec": {"selector": selector},
        }
        await hub.create(shop, PARTITIONS, partition)
        made = await hub.create(shop, SLICES, endpoints(name, "", "widgets", partition=name))
        assert len(made["status"]["endpoints"]) == count
        assert faults(made) == {}


@in_hub
async def test_the_export_of_a_slice_does_not_change(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    await hub.create(shop, SLICES, endpoints("s", "", "widgets"))
    other = {"spec": {"export": {"name": "other"}}}
    reply = await hub.ask("kcp-admin", "PATCH", f"/clusters/{shop}{SLICES}/s", other, **MERGE)
    assert reply.status == 422
    assert "APIExport reference must not be changed" in reply.body["message"]


@in_hub
async def test_a_slice_follows_the_partition_it_names_and_the_shard(hub: Hub) -> None:
    shop = await hub.workspace("root", "shop")
    await provider(hub, shop)
    made = await hub.create(shop, SLICES, endpoints("s", "", "widgets", partition="p"))
    other = await hub.create(shop, SLICES, endpoints("t", "", "widgets", partition="q"))
    url = f"{hub.running.url}/services/apiexport/{shop}/widgets"
    assert set(faults(made)) == {"PartitionValid", "EndpointURLsReady"}
    partition: dict[str, Any] = {
        "apiVersion": "topology.kcp.io/v1alpha1",
        "kind": "Partition",
        "metadata": {"name": "p"},
        "spec": {"selector": {"matchExpressions": [{"key": "region", "operator": "DoesNotExist"}]}},
    }
    await hub.create(shop, PARTITIONS, partition)
    found = await hub.until(shop, f"{SLICES}/s", "status", "endpoints", [{"url": url}])
    assert faults(found) == {}
    change = {"spec": {"selector": {"matchExpressions": None, "matchLabels": {"region": "eu"}}}}
    await hub.ask("kcp-admin", "PATCH", f"/clusters/{shop}{PARTITIONS}/p", change, **MERGE)
    found = await hub.until(shop, f"{SLICES}/s", "status", "endpoints", [])
    assert faults(found) == {}
    labels = {"metadata": {"labels": {"region": "eu"}}}
    shard = "/clusters/root/apis/core.kcp.io/v1alpha1/shards/root"
    assert (await hub.ask("kcp-admin", "PATCH", shard, labels, **MERGE)).status == 200
    await hub.until(shop, f"{SLICES}/s", "status", "endpoints", [{"url": url}])
    await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{PARTITIONS}/p")
    found = await hub.until(shop, f"{SLICES}/s", "status", "endpoints", [])
    assert faults(found)["PartitionValid"] == 'partitions.topology.kcp.io "p" not found'
    unchanged = await hub.get(shop, f"{SLICES}/t")
    # A Shard that somebody makes has a view too, where it says.
    made_up = {
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "Shard",
        "metadata": {"name": "other", "labels": {"region": "eu"}},
        "spec": {"baseURL": "https://other.example.org"},
    }
    await hub.create("root", "/apis/core.kcp.io/v1alpha1/shards", made_up)
    await hub.create(shop, PARTITIONS, {**partition, **change})
    elsewhere = f"https://other.example.org/services/apiexport/{shop}/widgets"
    both = sorted([{"url": url}, {"url": elsewhere}], key=str)
    await hub.until(shop, f"{SLICES}/s", "status", "endpoints", both)
    assert unchanged["metadata"]["resourceVersion"] == other["metadata"]["resourceVersion"]
