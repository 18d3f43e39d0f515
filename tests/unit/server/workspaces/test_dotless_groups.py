"""Groups of Kubernetes without a dot, which workspaces do not serve and may define."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.harness import serving
from tests.kit.server.hub import DEFINITIONS, running_hub

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "deployments.apps"},
    "spec": {
        "group": "apps",
        "names": {"plural": "deployments", "singular": "deployment", "kind": "Deployment"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.mark.parametrize("workers", [0, 1])
async def test_a_workspace_may_define_a_kind_of_kubernetes_and_patch_it_like_one(
    tmp_path: Path, workers: int
) -> None:
    containers = [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]
    spec = {"template": {"spec": {"containers": containers}}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    async with running_hub(tmp_path, workers=workers) as hub:
        await hub.workspace("root", "one", "universal")
        await hub.create("root:one", DEFINITIONS, DEFINITION)
        await hub.create("root:one", DEPLOYMENTS, {**deployment, "spec": spec})
        changed = [{"name": "b", "image": "three"}]
        patch = {"spec": {"template": {"spec": {"containers": changed}}}}
        reply = await hub.ask(
            "kcp-admin",
            "PATCH",
            f"/clusters/root:one{DEPLOYMENTS}/d",
            patch,
            content_type="application/strategic-merge-patch+json",
        )
        assert reply.status == 200, reply.body
        found = reply.body["spec"]["template"]["spec"]["containers"]
        assert sorted(each["image"] for each in found) == ["one", "three"]


async def test_a_plain_server_refuses_such_a_group() -> None:
    async with serving() as server:
        refused = await server.create(DEFINITIONS, DEFINITION)
        assert refused.status == 422
        assert "should be a domain with at least one dot" in refused.body["message"]
