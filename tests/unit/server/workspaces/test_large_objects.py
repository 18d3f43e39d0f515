"""A hub hands large objects, definitions and documents to workers that know its types."""

from __future__ import annotations

from pathlib import Path

from skerry.api.kcp import edge
from skerry.api.refs import CLUSTER_ANNOTATION
from tests.kit.server.hub import Hub, running_hub

MAPS = "/api/v1/namespaces/default/configmaps"
SCHEMAS = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"


def schema(pattern: str, fields: int) -> dict[str, object]:
    properties = {f"f{i}": {"type": "string", "pattern": f"{pattern}{i}"} for i in range(fields)}
    return {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": "v1.things.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {
                "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"type": "object", "properties": properties},
                }
            ],
        },
    }  # fmt: skip


async def _team(hub: Hub) -> None:
    workspace = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "team"},
    }
    await hub.create("root", "/apis/tenancy.kcp.io/v1alpha1/workspaces", workspace)


async def test_workers_of_a_hub_know_its_types_and_its_mark(tmp_path: Path) -> None:
    async with running_hub(tmp_path, workers=1) as hub:
        await _team(hub)
        large = {"metadata": {"name": "large"}, "data": {f"k{i}": "v" for i in range(2000)}}
        made = await hub.create("root:team", MAPS, large)
        assert len(made["data"]) == 2000
        assert made["metadata"]["annotations"][CLUSTER_ANNOTATION]
        patched = await hub.ask(
            "kcp-admin",
            "PATCH",
            f"/clusters/root:team{MAPS}/large",
            {"data": {"k0": "w"}},
            **{"content-type": "application/merge-patch+json"},
        )
        assert (patched.status, patched.body["data"]["k0"]) == (200, "w")

        where = f"/clusters/root:team{SCHEMAS}"
        refused = await hub.ask("kcp-admin", "POST", where, schema("(", 1))
        assert refused.status == 403
        assert "must be a valid regular expression" in refused.body["message"]
        many = await hub.ask("kcp-admin", "POST", where, schema(r"\pL{1,9}", 3))
        assert many.status == 403
        assert "want at most 20000" in many.body["message"]
        await hub.create("root:team", SCHEMAS, schema("^[a-z]+$", 20))

        document = await hub.get("root:team", "/openapi/v2")
        assert "io.k8s.api.core.v1.ConfigMap" in document["definitions"]


async def test_workers_of_a_hub_know_the_rules_that_no_schema_says(tmp_path: Path) -> None:
    definition = next(
        d for d in edge.definitions() if d["spec"]["names"]["kind"] == "LocationGrant"
    )
    grant = {
        "apiVersion": "edge.kcp.io/v1alpha1",
        "kind": "LocationGrant",
        "metadata": {"name": "g", "annotations": {f"k{i}": "v" for i in range(3000)}},
        "spec": {
            "workspaces": {"paths": ["root:shop"]},
            "locations": {"selector": {"matchLabels": {"-": "c"}}},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"]}],
        },
    }
    async with running_hub(tmp_path, workers=1) as hub:
        await _team(hub)
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await hub.create("root:team", definitions, definition)
        where = "/clusters/root:team/apis/edge.kcp.io/v1alpha1/locationgrants"
        refused = await hub.ask("kcp-admin", "POST", where, grant)
        assert refused.status == 422
        assert "spec.locations.selector" in refused.body["message"]
