"""gRPC probes against a small health service that speaks the frames of HTTP/2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.edge.agent.grpc_health import RpcFailed, frame, request, status_of
from skerry.edge.agent.network import Backend, Network
from skerry.edge.agent.probes import Reach, Result, attempt

_DATA, _HEADERS, _RESET, _SETTINGS, _PING = 0, 1, 3, 4, 6
_PREFACE = 24


def frames(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Return kind, flags, stream and content of each frame."""
    found = []
    while data:
        size = int.from_bytes(data[:3], "big")
        stream = int.from_bytes(data[5:9], "big")
        found.append((data[3], data[4], stream, data[9 : 9 + size]))
        data = data[9 + size :]
    return found


def message(status: int) -> bytes:
    body = bytes([0x08, status]) if status else b""
    return b"\0" + len(body).to_bytes(4, "big") + body


@asynccontextmanager
async def service(*answer: bytes) -> AsyncIterator[Reach]:
    """Serve one prepared answer to every question."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(_PREFACE)
        writer.write(b"".join(answer))
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    place: Backend = server.sockets[0].getsockname()

    async def nothing(*_: object) -> tuple[int, str]:
        return 0, ""

    async with server:
        yield Reach(lambda port: place, nothing, {}, Network().connect)


async def asked(*answer: bytes) -> Result:
    async with service(*answer) as reach:
        return await attempt({"grpc": {"port": 50051, "service": "shop"}}, reach, 5)


async def test_a_service_that_serves_passes() -> None:
    settings, ping = frame(_SETTINGS, 0, 0), frame(_PING, 0, 0, b"12345678")
    headers = frame(_HEADERS, 4, 1, b"\x88")
    data, trailers = frame(_DATA, 0, 1, message(1)), frame(_HEADERS, 5, 1, b"")
    assert await asked(settings, ping, headers, data, trailers) == Result(True)


async def test_one_that_does_not_serve_says_so() -> None:
    found = await asked(frame(_DATA, 1, 1, message(2)))
    assert found == Result(False, 'service unhealthy (responded with "NOT_SERVING")')


@pytest.mark.parametrize("answer", [frame(_RESET, 0, 1, b"\0" * 4), frame(_HEADERS, 5, 1, b"")])
async def test_a_refused_question_fails(answer: bytes) -> None:
    found = await asked(answer)
    assert not found.success
    assert found.message.startswith("error: health rpc probe failed: ")


async def test_nobody_there_fails() -> None:
    async with service() as reach:
        pass
    found = await attempt({"grpc": {"port": 50051}}, reach, 5)
    assert found.message.startswith('error: failed to connect service ":50051"')


def test_the_question_names_the_service() -> None:
    sent = frames(request("shop", "localhost:1")[_PREFACE:])
    assert [kind for kind, *_ in sent] == [_SETTINGS, _HEADERS, _DATA]
    assert sent[2][3] == b"\0\0\0\0\x06\x0a\x04shop"
    assert b"/grpc.health.v1.Health/Check" in sent[1][3]


@given(st.binary(max_size=20))
def test_whatever_is_answered_is_a_status_or_a_failure(data: bytes) -> None:
    try:
        found = status_of(data)
    except RpcFailed:
        return
    assert found in ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
