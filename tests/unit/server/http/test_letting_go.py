"""What is left of connections that have ended: nothing, and without a search for garbage.

A connection's TLS takes a quarter of a megabyte, and processes that run for long search seldom.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from skerry.server.http.message import Answer, Request, Sender, Stream
from skerry.server.http.settings import HttpSettings
from skerry.server.security.pki import open_pki
from tests.kit.server.certificates import client_context, server_context
from tests.kit.server.wire import GET, echo, serving, turn, until


@pytest.fixture
def unsearched() -> Iterator[None]:
    """Nobody searches for garbage meanwhile, and none of before is there."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def streaming(request: Request) -> Answer:
    """Answer like ``echo``, or with a stream that lasts as long as its reader."""
    if request.path != "/stream":
        return await echo(request)

    async def run(sender: Sender) -> None:
        sender.write(b"begun")
        await asyncio.Event().wait()

    return Stream(run)


def visit(port: int, tls: ssl.SSLContext, target: bytes, manner: str) -> None:
    """Make a connection, have an answer, and leave in a *manner*."""
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        tls.wrap_socket(plain, server_hostname="127.0.0.1") as line,
    ):
        line.sendall(GET % target)
        assert b"200 OK" in line.recv(65536)
        if manner == "goodbye":
            # What was on its way is not read any more.
            with contextlib.suppress(ssl.SSLError):
                line.unwrap()


def tls_protocols() -> int:
    return sum(type(each).__name__ == "SSLProtocol" for each in gc.get_objects())


@pytest.mark.parametrize("manner", ["goodbye", "without a word"])
@pytest.mark.parametrize("target", [b"page", b"stream"])
@pytest.mark.usefixtures("unsearched")
async def test_nothing_is_left_of_a_connection(tmp_path: Path, target: bytes, manner: str) -> None:
    pki = open_pki(tmp_path / "pki", ["127.0.0.1"])
    tls = client_context(pki.ca.certificate)
    async with serving(streaming, tls=server_context(pki)) as (server, port):
        for _ in range(5):
            await asyncio.to_thread(visit, port, tls, target, manner)
        await until(lambda: server.connections == 0, turn)
        await turn()
        assert tls_protocols() == 0


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"])
@pytest.mark.usefixtures("unsearched")
async def test_nothing_is_left_of_a_handshake_that_failed(tmp_path: Path, sent: bytes) -> None:
    pki = open_pki(tmp_path / "pki", ["127.0.0.1"])
    limits = HttpSettings(header_seconds=0.1)
    async with serving(echo, limits, server_context(pki)) as (_, port):
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        await until(lambda: tls_protocols() == 0, turn)
