"""The server that other people's tests run against."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import kubernetes
import pytest

from skerry.testing import TestServer, api_server

# The library has no types worth the name.
library: Any = kubernetes


def connected(server: TestServer) -> Any:
    return library.config.new_client_from_config(str(server.kubeconfig))


def core(server: TestServer) -> Any:
    return library.client.CoreV1Api(connected(server))


def test_the_fixture_gives_a_server_that_client_libraries_accept(skerry_server: TestServer) -> None:
    api = core(skerry_server)
    api.create_namespaced_config_map("default", {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert api.read_namespaced_config_map("a", "default").data == {"k": "v"}


def test_two_servers_know_nothing_of_each_other() -> None:
    with api_server() as one, api_server() as other:
        core(one).create_namespace({"metadata": {"name": "mine"}})
        names = {each.metadata.name for each in core(other).list_namespace().items}
        assert "default" in names
        assert "mine" not in names


def test_pytest_loads_no_server_until_one_is_asked_for() -> None:
    code = "import skerry.testing.plugin, sys; print('skerry.app' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_server_leaves_no_thread_and_no_file() -> None:
    before = set(threading.enumerate())
    with api_server() as server:
        folder = server.kubeconfig.parent
        assert folder.exists()
    assert set(threading.enumerate()) <= before
    assert not folder.exists()


def test_a_given_directory_keeps_the_kubeconfig(tmp_path: Path) -> None:
    with api_server(directory=tmp_path / "server") as server:
        assert server.environment == {"KUBECONFIG": str(server.kubeconfig)}
    assert server.kubeconfig.is_relative_to(tmp_path)
    assert server.kubeconfig.exists()


def test_with_controllers_a_deleted_namespace_goes() -> None:
    with api_server(controllers="core") as server:
        api = core(server)
        api.create_namespace({"metadata": {"name": "gone"}})
        watched = api.list_namespace(field_selector="metadata.name=gone")
        api.delete_namespace("gone")
        stream = library.watch.Watch().stream(
            api.list_namespace,
            field_selector="metadata.name=gone",
            resource_version=watched.metadata.resource_version,
            timeout_seconds=30,
        )
        assert any(event["type"] == "DELETED" for event in stream)


def test_with_all_controllers_a_deployment_makes_its_pods() -> None:
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
    with api_server(controllers="all") as server:
        apps = library.client.AppsV1Api(connected(server))
        apps.create_namespaced_deployment("default", {"metadata": {"name": "web"}, "spec": spec})
        stream = library.watch.Watch().stream(
            core(server).list_namespaced_pod, "default", timeout_seconds=30
        )
        made = {event["object"].metadata.name for event in islice(stream, 2)}
        assert len(made) == 2
        assert all(name.startswith("web-") for name in made)


def test_with_workspaces_it_is_a_hub() -> None:
    with api_server(workspaces=True) as server:
        found = library.client.CustomObjectsApi(connected(server)).list_cluster_custom_object(
            "tenancy.kcp.io", "v1alpha1", "workspacetypes"
        )
        assert "universal" in {each["metadata"]["name"] for each in found["items"]}


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with (
        pytest.raises(RuntimeError, match="did not start") as raised,
        api_server(directory=occupied),
    ):
        pass
    assert "cannot keep data in" in str(raised.value.__cause__)


@pytest.mark.parametrize(("controllers", "tainted"), [("none", True), ("core", False)])
def test_new_nodes_are_tainted_where_somebody_may_take_the_taint_off(
    controllers: Literal["none", "core"], tainted: bool
) -> None:
    with api_server(controllers=controllers) as server:
        made = core(server).create_node({"metadata": {"name": "n"}})
    assert bool(made.spec.taints) == tainted
