"""What arrives is handed on at its own size, whoever else reads into the same buffer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from skerry.kit.arriving import ArrivingProtocol
from skerry.server.security.pki import Pki, open_pki, server_names
from tests.kit.server.certificates import client_context, server_context


class Taking(ArrivingProtocol):
    """Keeps all that arrives, and tells at the end."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return open_pki(tmp_path, server_names())


async def _sent(
    contents: list[bytes], server: ssl.SSLContext | None, client: ssl.SSLContext | None
) -> list[Taking]:
    """Send each of *contents* over a connection of its own, all in turns."""
    takers: list[Taking] = []

    def made() -> Taking:
        takers.append(Taking())
        return takers[-1]

    loop = asyncio.get_running_loop()
    listening = await loop.create_server(made, "127.0.0.1", 0, ssl=server)
    port = listening.sockets[0].getsockname()[1]
    name = "127.0.0.1" if client else None
    writers = []
    for _ in contents:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client, server_hostname=name
        )
        writers.append(writer)
    for at in range(0, max(map(len, contents)), 10_000):
        for writer, content in zip(writers, contents, strict=True):
            writer.write(content[at : at + 10_000])
            await writer.drain()
    for writer in writers:
        writer.close()
    for taker in takers:
        await taker.ended.wait()
    listening.close()
    return takers


CONTENTS = [bytes([number]) * size for number, size in enumerate((1, 700_000, 0, 300_001))]


@pytest.mark.parametrize("tls", [False, True])
async def test_every_connection_gets_what_was_sent_to_it(pki: Pki, *, tls: bool) -> None:
    contexts = (server_context(pki), client_context(pki.ca.certificate)) if tls else (None, None)
    takers = await _sent(CONTENTS, *contexts)
    assert sorted(b"".join(each.pieces) for each in takers) == sorted(CONTENTS)


async def test_what_was_handed_on_stays_as_it_was(pki: Pki) -> None:
    first, second = Taking(), Taking()
    write: Callable[[Taking, bytes], None] = _arrive
    write(first, b"one")
    write(second, b"two")
    assert (first.pieces, second.pieces) == ([b"one"], [b"two"])


def _arrive(taking: Taking, data: bytes) -> None:
    buffer = taking.get_buffer(-1)
    buffer[: len(data)] = data
    taking.buffer_updated(len(data))


async def test_two_threads_do_not_share_a_buffer() -> None:
    mine = Taking().get_buffer(-1)
    other = await asyncio.to_thread(lambda: Taking().get_buffer(-1))
    assert mine.obj is not other.obj
