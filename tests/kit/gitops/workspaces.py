"""Workspaces of a hub with kinds bound from exports and kinds of their own."""

from __future__ import annotations

from typing import Any

from tests.kit.e2e.hubs import Hub
from tests.kit.gitops.asking import Server
from tests.kit.gitops.objects import definition

BINDINGS = "/apis/apis.kcp.io/v1alpha1/apibindings"
EXPORTS = "/apis/apis.kcp.io/v1alpha1/apiexports"
SCHEMAS = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
OFFERED = [f"offered{number:02}s" for number in range(30)]


def at(hub: Hub, path: str) -> Server:
    return Server(hub.kubeconfig, f"/clusters/{path}")


def create(server: Server, collection: str, obj: dict[str, Any]) -> None:
    answer = server.ask("POST", collection, obj)
    assert answer.status == 201, answer.raw.decode()


def make_workspace(hub: Hub, name: str) -> Server:
    """Make a workspace below root, ready for use when this returns."""
    body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
    create(at(hub, "root"), WORKSPACES, {**body, "metadata": {"name": name}})
    return at(hub, f"root:{name}")


def bind(server: Server, name: str, path: str, export: str) -> None:
    reference = {"export": {"path": path, "name": export}}
    body = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIBinding"}
    create(server, BINDINGS, {**body, "metadata": {"name": name}, "spec": {"reference": reference}})


def offer(server: Server, group: str, plurals: list[str]) -> None:
    """Have a workspace export kinds."""
    names = []
    for plural in plurals:
        made = definition(group, plural)["spec"]
        version = made["versions"][0]
        schema = version["schema"]["openAPIV3Schema"]
        names.append(f"v1.{plural}.{group}")
        create(
            server,
            SCHEMAS,
            {
                "apiVersion": "apis.kcp.io/v1alpha1",
                "kind": "APIResourceSchema",
                "metadata": {"name": names[-1]},
                "spec": {**made, "versions": [{**version, "schema": schema}]},
            },
        )
    body = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport"}
    create(
        server,
        EXPORTS,
        {**body, "metadata": {"name": group}, "spec": {"latestResourceSchemas": names}},
    )
