"""Attaching to containers: input, output as it comes, terminals, and ephemeral containers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.attach import Attached, Listener, attached
from skerry.edge.agent.container import ContainerLife
from skerry.edge.agent.runtime import CannotStart
from tests.kit.agent.fixtures import log
from tests.kit.agent.harness import PODS, Edge, container, first, phase, ready
from tests.kit.agent.harness import why_no_namespaces as refused


@pytest.fixture(params=["processes", "namespaces"])
async def edge(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Edge]:
    namespaces = request.param == "namespaces"
    if namespaces and refused():
        pytest.skip(f"pods cannot have namespaces here: {refused()}")
    world = Edge(tmp_path, namespaces=namespaces)
    async with world.up(), world.agents():
        yield world


async def running(edge: Edge, name: str, **wishes: Any) -> ContainerLife:
    """Run a pod that says what it is given, and return its container."""
    said = container("busybox", "sh", "-c", "while read line; do echo got $line; done", **wishes)
    await edge.run_pod(name, said, restartPolicy="Never")
    pod = await edge.pod(name, ready)
    life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
    assert life is not None
    assert life.run_spec is not None
    return life


def place(life: ContainerLife) -> Path:
    assert life.run_spec is not None
    return life.run_spec.directory


async def until(conversation: Attached, wanted: bytes) -> bytes:
    """Read what is written until *wanted* is among it."""
    found = b""
    async with asyncio.timeout(60):
        async for chunk in conversation.output():
            found += chunk
            if wanted in found:
                break
    return found


async def test_input_is_given_and_ends_with_the_first_who_gave_it(edge: Edge) -> None:
    life = await running(edge, "asking", stdin=True, stdinOnce=True)
    async with attached(place(life)) as conversation:
        await conversation.write(b"one\n")
        assert await until(conversation, b"got one") == b"got one\n"
        conversation.end_input()
        pod = await edge.pod("asking", phase("Succeeded"))
    assert await log(edge, pod) == "got one\n"


async def test_input_stays_open_for_others_unless_it_is_for_one(edge: Edge) -> None:
    life = await running(edge, "lasting", stdin=True)
    for word in ("one", "two"):
        async with attached(place(life)) as conversation:
            await conversation.write(f"{word}\n".encode())
            assert await until(conversation, word.encode()) == f"got {word}\n".encode()


async def test_a_terminal_echoes_and_has_a_size(edge: Edge) -> None:
    asked = container("bash", "bash", "-c", "read x; stty size; read x", stdin=True, tty=True)
    await edge.run_pod("seen", asked, restartPolicy="Never")
    pod = await edge.pod("seen", ready)
    life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
    assert life is not None
    async with attached(place(life)) as conversation:
        conversation.resize(132, 43)
        await conversation.write(b"x\r")
        assert b"43 132" in await until(conversation, b"43 132")


async def test_without_input_only_what_is_written_from_now_on_is_heard(edge: Edge) -> None:
    script = "echo early; while [ ! -e /go/now ]; do sleep 0.05; done; echo late"
    mount = {"name": "go", "mountPath": "/go"}
    await edge.run_pod(
        "quiet",
        container("busybox", "sh", "-c", script, volumeMounts=[mount]),
        volumes=[{"name": "go", "hostPath": {"path": str(edge.root)}}],
        restartPolicy="Never",
    )
    pod = await edge.pod("quiet", ready)
    life = edge.by_name["node-0"].life(pod["metadata"]["uid"], "c")
    assert life is not None
    path = life.log_path()
    assert path is not None
    while b"early" not in path.read_bytes():
        await asyncio.sleep(0.02)  # nothing announces a line
    with pytest.raises(CannotStart):
        async with attached(place(life)):
            pass
    heard = Listener(path).output()
    waiting = asyncio.ensure_future(anext(heard))
    await asyncio.sleep(0)
    (edge.root / "now").touch()
    async with asyncio.timeout(60):
        assert await waiting == b"late\n"


async def test_an_ephemeral_container_is_run_once_beside_the_others(edge: Edge) -> None:
    await edge.run_pod("looked-at", container("busybox", "sleep", "100"))
    await edge.pod("looked-at", ready)
    looking = {"name": "look", "image": "busybox", "command": ["sh", "-c", "echo seen; exit 5"]}
    looking["targetContainerName"] = "c"
    patch = {"spec": {"ephemeralContainers": [looking]}}
    await edge.direct.patch(
        PODS, "looked-at", patch, "default", kind="strategic", subresource="ephemeralcontainers"
    )

    def over(pod: Object) -> bool:
        added = (pod.get("status") or {}).get("ephemeralContainerStatuses") or [{}]
        return "terminated" in (added[0].get("state") or {})

    pod = await edge.pod("looked-at", over)
    assert pod["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 5
    assert first(pod)["state"].keys() == {"running"}
    assert ready(pod)
