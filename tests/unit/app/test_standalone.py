"""A server from its first moment on: who comes while it starts is answered when it has."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from skerry.app.settings import ServerSettings, StoreSettings
from skerry.app.standalone import (
    PLAIN_SERVER,
    ServerAssembly,
    ServerDeps,
    StartError,
    plain_assembly,
    serving,
)
from skerry.runtime.http import HttpTransport


def _settings(data: Path, port: int = 0) -> ServerSettings:
    return ServerSettings(
        data_dir=data, port=port, store=StoreSettings(kind="memory"), controllers="none"
    )


def _trusting() -> ssl.SSLContext:
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


async def test_who_comes_while_a_server_starts_is_answered_when_it_has(tmp_path: Path) -> None:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    go_on = asyncio.Event()

    async def assembly(deps: ServerDeps) -> ServerAssembly:
        port.set_result(int(deps.url.rpartition(":")[2]))
        await go_on.wait()
        return await plain_assembly(deps)

    async def asked() -> tuple[int, str]:
        transport = HttpTransport("127.0.0.1", await port, _trusting())
        try:
            asking = asyncio.create_task(transport.request("GET", "/version"))
            # Both ends are on this loop: a refusal would be here within some ten turns of it.
            for _ in range(300):
                await asyncio.sleep(0)
            go_on.set()
            answer = await asking
        finally:
            await transport.close()
        return answer.status, json.loads(answer.body)["major"]

    async with asyncio.TaskGroup() as tasks:
        answered = tasks.create_task(asked())
        async with serving(_settings(tmp_path), replace(PLAIN_SERVER, assembly=assembly)):
            assert await answered == (200, "1")


async def test_a_server_that_cannot_start_leaves_its_port(tmp_path: Path) -> None:
    ports: list[int] = []

    async def assembly(deps: ServerDeps) -> ServerAssembly:
        ports.append(int(deps.url.rpartition(":")[2]))
        raise StartError("not today")

    with pytest.raises(StartError, match="not today"):
        async with serving(_settings(tmp_path), replace(PLAIN_SERVER, assembly=assembly)):
            pass
    with socket.create_server(("127.0.0.1", ports[0])):
        pass
