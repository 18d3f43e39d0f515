"""From what a pod says of a container to what a runtime must know."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.container_spec import Surroundings, container_spec
from skerry.edge.agent.environment import ConfigurationMissing, Facts
from skerry.edge.agent.runtime import ContainerSpec, Image, Input, Mount, Sandbox, Volume
from tests.kit.agent.nodes import HeldNode, container, pod

IMAGE = Image("web:1", "web@sha256:0", ("run",), ("-v",))


class Desk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.node = HeldNode(root)
        self.image = IMAGE
        self.sandbox: Sandbox | None = None
        self.mounts = [Mount("/data", Volume(root))]

    def spec(self, spec: Object | None = None, **of_pod: Any) -> ContainerSpec:
        of_container = spec or container()
        whole = pod(of_container, **of_pod)
        context = self.node.context
        around = Surroundings(
            self.root,
            Facts(whole, context.name, context.host_ip, "10.244.1.2", {}),
            lambda spec, values: self.mounts,
            lambda: None,
            lambda: None,
            asyncio.Event(),
            lambda name: f"/proc/of/{name}" if name else "",
            self.sandbox,
        )
        place = self.root / "c" / "0"
        return container_spec(context, whole, of_container, self.image, around, {80: 1}, place)


async def test_the_command_is_the_images_unless_the_container_has_its_own(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.spec().argv == ("run", "-v")
    assert desk.spec(container(args=["-q"])).argv == ("run", "-q")
    assert desk.spec(container(command=["sh"])).argv == ("sh",)


async def test_a_container_without_any_command_says_of_which_image(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.image = Image("bare:1", "id")
    with pytest.raises(ConfigurationMissing, match='no command specified for image "bare:1"'):
        desk.spec()


async def test_variables_of_the_container_come_last_and_win(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.node.sources.proxy_url = lambda namespace: f"http://{namespace}@127.0.0.1:3128"
    desk.node.sources.reached_at = lambda service, port: ("10.96.0.7", int(port["port"]))
    metadata = {"name": "db", "namespace": "ns", "uid": "s", "resourceVersion": "1"}
    service = {"metadata": metadata, "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": 5}]}}
    desk.node.sources.services.apply("ADDED", service)
    values = desk.spec(container(env=[{"name": "HOSTNAME", "value": "own"}])).environment
    assert values["HOSTNAME"] == "own"
    assert values["DB_SERVICE_HOST"] == "10.96.0.7"
    assert values["http_proxy"] == "http://ns@127.0.0.1:3128"
    assert desk.spec().environment["HOSTNAME"] == "web"
    without = desk.spec(enableServiceLinks=False).environment
    assert "DB_SERVICE_HOST" not in without


async def test_what_a_container_says_at_its_end_is_a_file_of_its_attempt(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    *others, ended = desk.spec().mounts
    assert others == desk.mounts
    assert (ended.path, ended.source) == ("/dev/termination-log", tmp_path / "c/0/termination-log")
    assert desk.spec(container(terminationMessagePath="/end")).mounts[-1].path == "/end"


async def test_input_neighbours_and_the_sandbox_are_passed_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.sandbox = Sandbox("/proc/1/ns/user", "/proc/1/ns/net", 1)
    found = desk.spec(container(stdin=True, tty=True, targetContainerName="app"))
    assert found.input == Input(stdin=True, once=False, tty=True)
    assert found.beside == "/proc/of/app"
    assert (found.sandbox, found.ports) == (desk.sandbox, {80: 1})
    assert desk.spec().beside == ""


async def test_storage_that_is_limited_is_limited(tmp_path: Path) -> None:
    limited = container(resources={"limits": {"ephemeral-storage": "1Mi"}})
    assert Desk(tmp_path).spec(limited).confinement.storage_bytes == 1 << 20
    assert Desk(tmp_path).spec().confinement.storage_bytes == 0
