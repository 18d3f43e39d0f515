"""A workspace answers GitOps tools as a kube-apiserver does.

The shapes compared with were recorded from kube-apiserver 1.32 by ``tests.kit.gitops.record``.
"""

from __future__ import annotations

from typing import Any

from tests.kit.e2e.hubs import Hub
from tests.kit.gitops.argo import (
    PAGE,
    Kind,
    cache_sync,
    client_side_apply,
    discovered,
    server_side_apply,
)
from tests.kit.gitops.asking import Server
from tests.kit.gitops.objects import DEPLOYMENTS, NAMESPACES, config_map, deployment
from tests.kit.gitops.objects import namespace as shop
from tests.kit.gitops.record import flux_apply
from tests.kit.gitops.workspaces import (
    BINDINGS,
    EXPORTS,
    OFFERED,
    SCHEMAS,
    at,
    bind,
    create,
    make_workspace,
    offer,
)


def test_argo_cd_syncs_its_cache_of_a_workspace_full_of_kinds(workspace: Server, kube: Any) -> None:
    found = cache_sync(workspace)
    recorded = kube["cache sync"]
    assert found.shapes == recorded["shapes"]
    assert found.alike == recorded["alike"]
    groups = [name.partition(".")[2] for name in found.kinds]
    assert groups.count("offered.example") == len(OFFERED)
    assert groups.count("defined.example") == 50
    assert {"deployments.apps", "configmaps.", "edgeplacements.edge.kcp.io"} <= found.kinds.keys()
    both = found.kinds.keys() & recorded["kinds"].keys()
    assert {name: found.kinds[name] for name in both} == {
        name: recorded["kinds"][name] for name in both
    }


def test_lists_come_in_pages_and_a_watch_begins_where_they_end(workspace: Server) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "many"}}
    create(workspace, NAMESPACES, space)
    here = "/api/v1/namespaces/many/configmaps"
    for number in range(PAGE + 1):
        made = config_map(f"page-{number}")
        create(workspace, here, {**made, "metadata": {"name": f"page-{number}"}})
    first = workspace.ask("GET", f"{here}?limit={PAGE}").body
    assert len(first["items"]) == PAGE
    rest = workspace.ask("GET", f"{here}?limit={PAGE}&continue={first['metadata']['continue']}")
    names = {each["metadata"]["name"] for each in [*first["items"], *rest.body["items"]]}
    assert len(names) >= PAGE + 1
    assert "continue" not in rest.body["metadata"]
    version = rest.body["metadata"]["resourceVersion"]
    create(workspace, here, {**config_map("late"), "metadata": {"name": "late"}})
    event = workspace.first_event(f"{here}?watch=true&resourceVersion={version}")
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "late")


def test_flux_applies_compares_and_prunes(workspace: Server, kube: Any) -> None:
    found = flux_apply(workspace)
    assert found["outcomes"] == kube["flux"]["outcomes"]
    assert found["shapes"].keys() == kube["flux"]["shapes"].keys()
    for asked, shape in found["shapes"].items():
        assert shape == kube["flux"]["shapes"][asked], asked


def test_argo_cd_applies_by_patch_and_on_the_server(workspace: Server, kube: Any) -> None:
    workspace.ask("POST", NAMESPACES, shop())
    applied = {
        "client-side apply": client_side_apply(workspace, DEPLOYMENTS, deployment("csa")),
        "server-side apply": server_side_apply(workspace, DEPLOYMENTS, deployment("ssa")),
    }
    for way, shapes in applied.items():
        for asked, shape in shapes.items():
            assert shape == kube[way][asked], f"{way}: {asked}"


def test_a_broken_export_fails_no_discovery_and_no_list_of_other_kinds(hub: Hub) -> None:
    provider = make_workspace(hub, "broken-provider")
    offer(provider, "broken.example", ["breakings", "lastings"])
    bound, other = make_workspace(hub, "bound-to-it"), make_workspace(hub, "beside-it")
    bind(bound, "broken", "root:broken-provider", "broken.example")
    breaking = Kind("broken.example", "v1", "breakings")
    assert breaking in set(discovered(bound))
    for path in (f"{SCHEMAS}/v1.breakings.broken.example", f"{EXPORTS}/broken.example"):
        assert provider.ask("DELETE", path).status == 200
    bind_again = make_workspace(hub, "bound-too-late")
    late = bind_again.ask(
        "POST",
        BINDINGS,
        {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {"name": "broken"},
            "spec": {
                "reference": {"export": {"path": "root:broken-provider", "name": "broken.example"}}
            },
        },
    )
    assert late.status in (201, 403), late.raw
    for server in (bound, other, bind_again, at(hub, "root:broken-provider")):
        kinds = cache_sync(server)
        assert "configmaps." in kinds.kinds
        assert kinds.alike["list"] == [
            {"status": 200, "contentType": "application/json", "list": ["resourceVersion"]}
        ]
