"""Objects of kcp's kinds that say nothing are refused, or mean nothing; the hub goes on.

The server remembers these kinds and reads every one of them as it is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skerry.api.keys import ObjectKey
from skerry.server.codec import encode
from skerry.store.base import Write
from tests.kit.server.hub import BINDINGS, Hub, HubPlace, running_hub

KINDS = {
    "tenancy.kcp.io": {"Workspace": "workspaces", "WorkspaceType": "workspacetypes"},
    "apis.kcp.io": {
        "APIBinding": "apibindings",
        "APIConversion": "apiconversions",
        "APIExport": "apiexports",
        "APIExportEndpointSlice": "apiexportendpointslices",
        "APIResourceSchema": "apiresourceschemas",
    },
    "core.kcp.io": {"LogicalCluster": "logicalclusters", "Shard": "shards"},
    "topology.kcp.io": {"Partition": "partitions", "PartitionSet": "partitionsets"},
    "scheduling.kcp.io": {"Location": "locations", "Placement": "placements"},
    "workload.kcp.io": {"SyncTarget": "synctargets"},
}
HOLLOW: dict[str, dict[str, Any]] = {
    "nothing": {},
    "null": {"spec": None},
    "empty": {"spec": {}},
    "empty, with a status": {"spec": {}, "status": {}},
    "null, with a status": {"spec": None, "status": None},
}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


async def alive(hub: Hub, cluster: str) -> None:
    """Whether the hub still reads what is written: a new type of objects is known at once."""
    made = await hub.workspace("root", f"alive-{cluster}")
    assert (await hub.get(made, BINDINGS))["items"]


@pytest.mark.parametrize("group", KINDS)
async def test_an_object_that_says_nothing_harms_nobody(group: str, tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        shop = await hub.workspace("root", "shop")
        for kind, plural in KINDS[group].items():
            for number, what in enumerate(HOLLOW):
                for user, where in (("kcp-admin", shop), ("shard-admin", "root")):
                    name = f"hollow-{number}"
                    obj = {"apiVersion": f"{group}/v1alpha1", "kind": kind, **HOLLOW[what]}
                    obj["metadata"] = {"name": name}
                    path = f"/clusters/{where}/apis/{group}/v1alpha1/{plural}"
                    reply = await hub.ask(user, "POST", path, obj)
                    assert reply.status in {201, 403, 404, 422}, (kind, what, reply.body)
        await alive(hub, shop)


async def test_a_binding_that_was_kept_without_a_spec_means_nothing(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        shop = await hub.workspace("root", "shop")
        key = ObjectKey("apis.kcp.io", "apibindings", shop, "", "hollow")
        obj = {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {"name": "hollow", "uid": "u", "finalizers": []},
        }
        await hub.running.api.store.commit([Write(key.path(), encode(obj))])
        await alive(hub, shop)
        reply = await hub.ask("kcp-admin", "DELETE", f"/clusters/{shop}{BINDINGS}/hollow")
        assert reply.status == 200
