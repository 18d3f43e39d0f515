"""From a kubeconfig to an answer over mutual TLS."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
import uvloop

from skerry.kit.clock import SystemClock
from skerry.runtime.http import HttpTransport
from skerry.runtime.kubeconfig import connect, load
from skerry.runtime.transport import TransportError
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.security.pki import Authority, Pki, open_pki
from tests.kit.server.certificates import server_context


@asynccontextmanager
async def serving(pki: Pki) -> AsyncIterator[int]:
    async def handle(request: Request) -> Answer:
        known = b"known" if request.peer.certificate else b"unknown"
        return Response(body=known + b" " + request.headers.get("authorization", "").encode())

    listening = HttpServer(handle)
    port = await listening.start(tls=server_context(pki))
    yield port
    await listening.stop(0.1)


def written(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(json.dumps(document))
    return path


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_both_sides_know_each_other_by_certificate(tmp_path: Path) -> None:
    pki = open_pki(tmp_path / "pki", ["127.0.0.1", "localhost"])
    me = Authority(pki.ca, SystemClock()).client("alice")
    async with serving(pki) as port:
        cluster = {
            "server": f"https://127.0.0.1:{port}/some/prefix",
            "certificate-authority-data": encoded(pki.ca.certificate),
        }
        certificate = {
            "client-certificate-data": encoded(me.certificate),
            "client-key-data": encoded(me.key),
        }
        path = written(tmp_path / "one", cluster, certificate)
        transport = connect(load([path]))
        assert (await transport.request("GET", "/x")).body == b"known "
        await transport.close()
        path = written(tmp_path / "two", cluster, {"token": "secret"})
        transport = connect(load([path]))
        assert (await transport.request("GET", "/x")).body == b"unknown Bearer secret"
        await transport.close()


async def test_a_server_nobody_vouches_for_is_refused_unless_configured_otherwise(
    tmp_path: Path,
) -> None:
    pki = open_pki(tmp_path / "pki", ["elsewhere.example"])
    other = open_pki(tmp_path / "other", ["127.0.0.1"])
    async with serving(pki) as port:
        server = f"https://127.0.0.1:{port}"
        trusted = {"certificate-authority-data": encoded(pki.ca.certificate)}
        refused: tuple[dict[str, Any], ...] = (
            {"certificate-authority-data": encoded(other.ca.certificate)},
            trusted,  # the right authority, but a certificate for another name
        )
        for cluster in refused:
            path = written(tmp_path / "config", {"server": server, **cluster}, {})
            transport = connect(load([path]))
            with pytest.raises(TransportError, match="certificate verify failed"):
                await transport.request("GET", "/")
            await transport.close()
        accepted: tuple[dict[str, Any], ...] = (
            {"insecure-skip-tls-verify": True},
            {**trusted, "tls-server-name": "elsewhere.example"},
        )
        for cluster in accepted:
            path = written(tmp_path / "config", {"server": server, **cluster}, {})
            transport = connect(load([path]))
            assert (await transport.request("GET", "/")).status == 200
            await transport.close()


class _Handshake(ssl.SSLObject):
    """A handshake that gives its request up at the moment it succeeds."""

    given_up: ClassVar[list[asyncio.Task[Any]]] = []

    def getpeercert(self, binary_form: bool = False) -> Any:
        while self.given_up:
            self.given_up.pop().cancel()
        return super().getpeercert(binary_form)


@contextmanager
def serving_elsewhere(pki: Pki) -> Iterator[int]:
    """Serve from another thread, so that the server speaks while a client is busy."""
    stopping, ports = Future[Callable[[], object]](), Future[int]()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with serving(pki) as port:
            stopping.set_result(lambda: loop.call_soon_threadsafe(stop.set))
            ports.set_result(port)
            await stop.wait()

    thread = Thread(target=uvloop.run, args=(serve(),))
    thread.start()
    yield ports.result(10)
    stopping.result()()
    thread.join()


def test_a_request_given_up_as_the_handshake_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    complaints: list[str] = []

    async def story(port: int) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        for _ in range(20):
            transport = HttpTransport("127.0.0.1", port, trusting)
            request = asyncio.create_task(transport.request("GET", "/x"))
            _Handshake.given_up.append(request)
            with pytest.raises(asyncio.CancelledError):
                await request
            assert (await transport.request("GET", "/x")).status == 200
            await transport.close()

    pki = open_pki(tmp_path / "pki", ["127.0.0.1"])
    trusting = ssl.create_default_context(cadata=pki.ca.certificate.decode())
    trusting.sslobject_class = _Handshake
    # Over uvloop, as our processes run: a socket closed instead of dropped writes to nobody there.
    with serving_elsewhere(pki) as port:
        uvloop.run(story(port))
    assert complaints == []
