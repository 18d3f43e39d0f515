"""A client that becomes somebody else while it works."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from skerry.kit.clock import SystemClock
from skerry.runtime.kubeconfig import ClientConfig, connect, identify
from skerry.server.http.message import Answer, Request, Response, Sender, Stream
from skerry.server.http.server import HttpServer
from skerry.server.security.pki import Authority, open_pki
from tests.kit.server.certificates import server_context


@dataclass
class Hub:
    """A server that says who came; ``/slow`` answers and ``/watch`` ends when it is let go."""

    port: int = 0
    configs: dict[str, ClientConfig] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: Request) -> Answer:
        certificate = request.peer.certificate
        name = next(
            (n for n, c in self.configs.items() if c.certificate and certificate in der(c)),
            "nobody",
        )
        token = request.headers.get("authorization", "")
        if request.path == "/slow":
            self.begun.set()
            await self.go_on.wait()
        if request.path == "/watch":

            async def write(sender: Sender) -> None:
                self.begun.set()
                sender.write(b"begun by ")
                await self.go_on.wait()
                sender.write(name.encode())

            return Stream(write)
        return Response(body=f"{name} {token}".encode())


def der(config: ClientConfig) -> list[bytes | None]:
    return [ssl.PEM_cert_to_DER_cert(config.certificate.decode())]


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Hub]:
    pki = open_pki(folder / "pki", ["127.0.0.1"])
    hub = Hub()
    listening = HttpServer(hub.handle)
    hub.port = await listening.start(tls=server_context(pki))
    server = f"https://127.0.0.1:{hub.port}"
    bare = ClientConfig(server=server, ca=pki.ca.certificate)
    hub.configs["token"] = ClientConfig(server=server, ca=bare.ca, token="first")
    for name in ("one", "two"):
        me = Authority(pki.ca, SystemClock()).client(name)
        hub.configs[name] = ClientConfig(
            server=server, ca=bare.ca, certificate=me.certificate, key=me.key
        )
    try:
        yield hub
    finally:
        await listening.stop(0.1)


async def test_the_next_request_comes_with_the_new_identity_alone(tmp_path: Path) -> None:
    async with serving(tmp_path) as hub:
        transport = connect(hub.configs["token"])
        assert (await transport.request("GET", "/")).body == b"nobody Bearer first"
        for name in ("one", "two", "one"):
            identify(transport, hub.configs[name])
            assert (await transport.request("GET", "/")).body.split() == [name.encode()]
        await transport.close()


@pytest.mark.parametrize("path", ["/slow", "/watch"])
async def test_what_is_under_way_ends_as_it_began(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as hub:
        transport = connect(hub.configs["one"])

        async def work() -> bytes:
            if path == "/slow":
                return (await transport.request("GET", path)).body
            async with transport.stream("GET", path) as answer:
                return b"".join([chunk async for chunk in answer])

        working = asyncio.create_task(work())
        await hub.begun.wait()
        identify(transport, hub.configs["two"])
        assert b"two" in (await transport.request("GET", "/")).body
        hub.go_on.set()
        assert b"one" in await working
        # The connection it came by is not used again.
        assert b"two" in (await transport.request("GET", "/")).body
        assert len(transport._open) == 1
        await transport.close()


async def test_a_connection_that_was_being_opened_serves_one_request_only(tmp_path: Path) -> None:
    async with serving(tmp_path) as hub:
        transport = connect(hub.configs["one"])
        early = asyncio.create_task(transport.request("GET", "/"))
        await asyncio.sleep(0)  # it has begun to connect
        identify(transport, hub.configs["two"])
        assert b"one" in (await early).body
        assert b"two" in (await transport.request("GET", "/")).body
        await transport.close()
