from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.e2e.hubs import Hub
from tests.kit.gitops.asking import Server
from tests.kit.gitops.objects import DEFINITIONS, definition

BINDINGS = "/apis/apis.kcp.io/v1alpha1/apibindings"
EXPORTS = "/apis/apis.kcp.io/v1alpha1/apiexports"
SCHEMAS = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
OFFERED = [f"offered{number:02}s" for number in range(30)]


@pytest.fixture(scope="session")
def kube() -> Any:
    """The shapes of a kube-apiserver's answers, as they were recorded."""
    return json.loads((Path(__file__).parent / "kube-apiserver-1.32.json").read_text())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("hub"), "--init").start()
    yield hub
    assert hub.stop() == 0, hub.log


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


@pytest.fixture(scope="module")
def workspace(hub: Hub) -> Server:
    """A workspace with some forty bound kinds and fifty definitions of its own."""
    offer(make_workspace(hub, "provider"), "offered.example", OFFERED)
    server = make_workspace(hub, "shop")
    bind(server, "kubernetes", "root:compute", "kubernetes")
    bind(server, "edge", "root:espw", "edge.kcp.io")
    bind(server, "offered", "root:provider", "offered.example")
    for number in range(50):
        create(server, DEFINITIONS, definition("defined.example", f"defined{number:02}s"))
    return server
