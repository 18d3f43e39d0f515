"""PodSecurity in workspaces: judged where it takes effect, never on copies passing through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.server.edges import EdgeHub, in_edge_hub
from tests.kit.server.hub import BINDINGS, Hub, HubPlace, binding, in_hub

NAMESPACES = "/api/v1/namespaces"
LABEL = "pod-security.kubernetes.io/enforce"
PROJECTED = {"edge.kcp.io/projected": "yes"}
UPSYNCED = {"edge.kcp.io/upsynced": "true"}


@pytest.fixture
def hub_place(tmp_path: Path) -> HubPlace:
    return HubPlace(tmp_path)


def namespace(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def deployment(name: str, **labels: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x"}
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [container], "hostPID": True},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
    }


@in_hub
async def test_a_workspace_warns_by_the_labels_of_its_own_namespaces(hub: Hub) -> None:
    first, second = await hub.workspace("root", "first"), await hub.workspace("root", "second")
    for cluster, labels in ((first, {LABEL: "baseline"}), (second, {})):
        await hub.create(cluster, BINDINGS, binding("kube", "root:compute", "kubernetes"))
        await hub.create(cluster, NAMESPACES, namespace("web", **labels))
    path = "/apis/apps/v1/namespaces/web/deployments"
    for cluster, warned in ((first, True), (second, False)):
        where = f"/clusters/{cluster}{path}"
        made = await hub.ask("kcp-admin", "POST", where, deployment("d"))
        assert made.status == 201, made.body
        assert any("would violate PodSecurity" in text for text in made.warnings) is warned
    wrong = namespace("odd", **{LABEL: "most"})
    refused = await hub.ask("kcp-admin", "POST", f"/clusters/{first}{NAMESPACES}", wrong)
    assert refused.status == 422
    assert f"metadata.labels[{LABEL}]" in refused.body["message"]


@in_edge_hub
async def test_copies_on_their_way_to_an_edge_are_not_judged(hub: EdgeHub) -> None:
    cluster = (await hub.edge()).mailbox
    await hub.create(cluster, BINDINGS, binding("kube", "root:compute", "kubernetes"))
    await hub.create(cluster, NAMESPACES, namespace("web", **{LABEL: "restricted"}))
    path = f"/clusters/{cluster}/apis/apps/v1/namespaces/web/deployments"
    copied = await hub.ask("kcp-admin", "POST", path, deployment("copy", **PROJECTED))
    assert (copied.status, copied.warnings) == (201, [])
    odd = namespace("odd", **PROJECTED, **{LABEL: "most"})
    await hub.create(cluster, NAMESPACES, odd)
    path = f"/clusters/{cluster}/apis/apps/v1/namespaces/odd/deployments"
    made = await hub.ask("kcp-admin", "POST", path, deployment("own"))
    assert (made.status, made.warnings) == (201, [])


@in_edge_hub
async def test_nobody_calls_a_pod_a_copy_to_have_it_let_through(hub: EdgeHub) -> None:
    """Where there are no copies, the mark of one is a label like any other."""
    cluster = await hub.workspace("root", "tenant", admin="alice")
    await hub.create(cluster, BINDINGS, binding("kube", "root:compute", "kubernetes"))
    await hub.create(cluster, NAMESPACES, namespace("web", **{LABEL: "restricted"}))
    await hub.create(cluster, NAMESPACES, namespace("own", **PROJECTED, **{LABEL: "restricted"}))
    marks: tuple[dict[str, Any], ...] = (
        {},
        {"labels": PROJECTED},
        {"annotations": UPSYNCED},
        {"labels": PROJECTED, "annotations": UPSYNCED},
    )
    template = deployment("d")["spec"]["template"]["spec"]
    for name in ("web", "own"):
        path = f"/clusters/{cluster}/api/v1/namespaces/{name}/pods"
        for mark in marks:
            pod = {"metadata": {"name": "p", **mark}, "spec": template}
            reply = await hub.ask("alice", "POST", path, pod)
            assert reply.status == 403, (name, mark, reply.body)
            assert "violates PodSecurity" in reply.body["message"]
    path = f"/clusters/{cluster}/apis/apps/v1/namespaces/web/deployments"
    made = await hub.ask("alice", "POST", path, deployment("d", **PROJECTED))
    assert any("would violate PodSecurity" in text for text in made.warnings)
