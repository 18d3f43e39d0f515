"""One connection over a real pair of sockets: what is an answer, and what is a lost one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from skerry.runtime.connection import HIGH_WATER, Connection, Exchange
from skerry.runtime.transport import ConnectionLost, TransportError

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Kind: a\r\n\r\nhi"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Line:
    """A connection and the server's end of it."""

    def __init__(self, connection: Connection, peer: socket.socket, lost: list[Connection]) -> None:
        self.connection = connection
        self.peer = peer
        self.lost = lost

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.peer, data)

    async def until_lost(self) -> None:
        while not self.lost:
            await asyncio.sleep(0)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    lost: list[Connection] = []
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(lost.append), sock=ours)
    made = Line(connection, theirs, lost)
    yield made
    connection.abort()
    await made.until_lost()
    theirs.close()


def body(exchange: Exchange) -> bytes:
    return b"".join(exchange.chunks)


async def test_a_plain_answer_is_ready_when_it_is_whole(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=False)
    assert await asyncio.get_running_loop().sock_recv(line.peer, 10) == b"GET"
    await line.send(WHOLE)
    await exchange.ready
    assert (exchange.status, exchange.headers["x-kind"], body(exchange)) == (200, "a", b"hi")
    assert line.connection.reusable


async def test_a_connection_serves_one_exchange_after_another(line: Line) -> None:
    for text in (b"hi", b"ho"):
        exchange = line.connection.start(b"GET", streaming=False)
        await line.send(WHOLE.replace(b"hi", text))
        await exchange.ready
        assert body(exchange) == text
    assert line.connection.used


async def test_a_stream_is_ready_with_its_head_and_brings_chunks_as_they_come(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=True)
    await line.send(CHUNKED)
    await exchange.ready
    chunks = aiter(exchange)
    for text in (b"one", b"two"):
        await line.send(b"3\r\n" + text + b"\r\n")
        assert await anext(chunks) == text
    await line.send(b"0\r\n\r\n")
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


async def test_an_answer_without_a_length_ends_with_the_connection(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=False)
    await line.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    line.peer.shutdown(socket.SHUT_WR)
    await exchange.ready
    assert body(exchange) == b"all of it"
    assert not line.connection.reusable


@pytest.mark.parametrize("cut", [0, 20, len(WHOLE) - 1])
async def test_an_answer_that_breaks_off_is_lost_and_never_half_an_answer(
    line: Line, cut: int
) -> None:
    exchange = line.connection.start(b"GET", streaming=False)
    await line.send(WHOLE[:cut])
    line.peer.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionLost, match="before the answer was whole"):
        await exchange.ready
    # Whether anything came tells whether the server may have seen the request at all.
    assert exchange.received is (cut > 0)
    await line.until_lost()
    assert line.lost == [line.connection]


async def test_a_stream_that_breaks_off_says_so_after_what_came(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=True)
    await line.send(CHUNKED + b"3\r\none\r\n")
    line.peer.shutdown(socket.SHUT_WR)
    chunks = aiter(exchange)
    assert await anext(chunks) == b"one"
    with pytest.raises(ConnectionLost):
        await anext(chunks)


async def test_what_is_no_http_is_named_and_the_connection_dropped(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=False)
    await line.send(b"SSH-2.0-x\r\n")
    with pytest.raises(TransportError, match=r"not HTTP/1\.1"):
        await exchange.ready
    assert line.connection.closed


async def test_an_answer_larger_than_it_may_be_is_not_taken_in(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=False, limit=len(WHOLE) - 1)
    await line.send(WHOLE)
    with pytest.raises(TransportError, match="larger than it may be"):
        await exchange.ready
    assert line.connection.closed


async def test_the_limit_is_of_one_answer_and_not_of_the_connection(line: Line) -> None:
    for limit in (len(WHOLE), len(WHOLE), 0):
        exchange = line.connection.start(b"GET", streaming=False, limit=limit)
        await line.send(WHOLE)
        await exchange.ready


async def test_an_answer_nobody_asked_for_ends_the_connection(line: Line) -> None:
    await line.send(WHOLE)
    await line.until_lost()
    assert not line.connection.reusable


async def test_a_server_that_will_close_is_not_asked_again(line: Line) -> None:
    exchange = line.connection.start(b"GET", streaming=False)
    await line.send(WHOLE.replace(b"X-Kind: a", b"Connection: close"))
    await exchange.ready
    assert not line.connection.reusable


async def test_a_request_on_a_connection_that_is_gone_fails_at_once(line: Line) -> None:
    line.peer.close()
    await line.until_lost()
    exchange = line.connection.start(b"GET", streaming=False)
    with pytest.raises(TransportError, match="the connection is closed"):
        await exchange.ready


async def test_a_slow_reader_makes_the_server_wait_and_gets_everything(line: Line) -> None:
    size = 4 * HIGH_WATER
    exchange = line.connection.start(b"GET", streaming=True)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode()
    sending = asyncio.create_task(line.send(head + bytes(size)))
    await exchange.ready
    while exchange.unread <= HIGH_WATER:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not sending.done()
    assert exchange.unread < 2 * HIGH_WATER
    assert sum([len(chunk) async for chunk in exchange]) == size
    await sending
