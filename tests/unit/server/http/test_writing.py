"""The writing half of a connection: what goes out, and what waits while the peer takes nothing."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import pytest

from skerry.api.errors import ApiError
from skerry.server.http.encoding import Heads
from skerry.server.http.message import Request, Response
from skerry.server.http.settings import HttpSettings
from skerry.server.http.writing import AnswerWriter

Read = tuple[Request, bool, bool, ApiError | None]


class Transport(asyncio.Transport):
    """Takes what is written, and says when it has had enough."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.writes = 0
        self.closing = False
        self.paused_after: int | None = None
        self.writer: AnswerWriter | None = None

    def write(self, data: Any) -> None:
        self.sent += data
        self.writes += 1
        if self.paused_after is not None and len(self.sent) >= self.paused_after:
            self.paused_after = None
            assert self.writer is not None
            self.writer.pause_writing()

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return len(self.sent)


class Host:
    """What a writer needs of its server."""

    def __init__(self) -> None:
        self.settings = HttpSettings(gzip_bytes=100)
        self.heads = Heads(())
        self.loop = asyncio.get_running_loop()
        self.tick = 7.0


def writer() -> tuple[AnswerWriter, Transport]:
    made, transport = AnswerWriter(Host()), Transport()
    made._transport, transport.writer = transport, made
    return made, transport


def read(method: str = "GET", *, modern: bool = True, **headers: str) -> Read:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, "/", headers=sent), True, modern, None


def parts(transport: Transport) -> tuple[str, bytes]:
    head, _, body = transport.sent.partition(b"\r\n\r\n")
    return head.decode(), body


async def test_a_small_answer_is_one_head_and_its_body() -> None:
    made, transport = writer()
    made._send(read(), Response(200, b""), b"hello", last=False)
    head, body = parts(transport)
    assert head.startswith("HTTP/1.1 200")
    assert "Content-Length: 5" in head
    assert "Connection" not in head
    assert body == b"hello"


@pytest.mark.parametrize(
    ("modern", "last", "wanted"),
    [(True, True, "close"), (False, True, "close"), (False, False, "keep-alive")],
)
async def test_an_answer_says_what_becomes_of_the_connection(
    modern: bool, last: bool, wanted: str
) -> None:
    for large in (False, True):
        made, transport = writer()
        if large:
            await made._send_large(read(modern=modern), Response(200, b"x"), last)
        else:
            made._send(read(modern=modern), Response(200, b"x"), b"x", last)
        assert f"Connection: {wanted}" in parts(transport)[0]


async def test_head_and_answers_without_a_body_have_none() -> None:
    made, transport = writer()
    made._send(read("HEAD"), Response(200), b"hello", last=False)
    head, body = parts(transport)
    assert ("Content-Length: 5" in head, body) == (True, b"")
    made, transport = writer()
    made._send(read(), Response(204), b"hello", last=False)
    head, body = parts(transport)
    assert ("Content-Length" in head, body) == (False, b"")
    made, transport = writer()
    await made._send_large(read("HEAD"), Response(200, b"x" * 1000), last=False)
    assert parts(transport)[1] == b""


async def test_a_large_answer_is_compressed_for_those_who_take_it() -> None:
    whole = b"abc" * 1000
    made, transport = writer()
    await made._send_large(
        read(accept_encoding="gzip"), Response(200, [whole[:9], whole[9:]]), False
    )
    head, body = parts(transport)
    assert "Content-Encoding: gzip" in head
    assert f"Content-Length: {len(body)}" in head
    assert zlib.decompress(body, 31) == whole
    made, transport = writer()
    await made._send_large(read(), Response(200, whole), False)
    head, body = parts(transport)
    assert "Content-Encoding" not in head
    # A cache between must keep both apart.
    assert "Vary: Accept-Encoding" in head
    assert body == whole


async def test_what_is_encoded_already_is_not_encoded_again() -> None:
    made, transport = writer()
    encoded = Response(200, b"x" * 1000, headers=(("content-encoding", "br"),))
    await made._send_large(read(accept_encoding="gzip"), encoded, last=False)
    assert parts(transport)[1] == b"x" * 1000


async def test_a_body_waits_for_a_peer_that_takes_nothing_and_goes_on_when_it_does() -> None:
    made, transport = writer()
    transport.paused_after = 1
    whole = [b"x" * 100_000] * 3
    sending = asyncio.ensure_future(made._write_parts(whole))
    await asyncio.sleep(0)
    assert 0 < len(transport.sent) < 300_000
    assert made._stalled_at == 7.0
    made.resume_writing()
    await sending
    assert transport.sent == b"x" * 300_000


async def test_whoever_waits_for_a_peer_that_went_learns_so() -> None:
    made, _ = writer()
    made.pause_writing()
    waiting = asyncio.ensure_future(made.drain())
    await asyncio.sleep(0)
    made._lost = True
    made.resume_writing()
    with pytest.raises(ConnectionResetError):
        await waiting
    assert made.closed


async def test_whoever_writes_on_to_what_is_closing_learns_so_before_the_loop_turns() -> None:
    made, transport = writer()
    await made.drain()
    transport.closing = True
    with pytest.raises(ConnectionResetError):
        await made.drain()


async def test_nothing_is_written_to_what_is_closing_or_gone() -> None:
    made, transport = writer()
    transport.closing = True
    made.write(b"late")
    transport.closing = False
    made._lost = True
    made.write(b"late")
    assert transport.sent == b""


async def test_the_head_of_a_stream_goes_with_the_first_it_writes() -> None:
    made, transport = writer()
    made._begin_stream(b"head ")
    assert transport.writes == 0
    made.write(b"one ")
    assert (transport.sent, transport.writes) == (b"head one ", 1)
    await asyncio.sleep(0)
    made.write(b"two")
    assert (transport.sent, transport.writes) == (b"head one two", 2)


async def test_the_head_of_a_stream_that_writes_nothing_yet_waits_for_a_turn_of_the_loop() -> None:
    made, transport = writer()
    made._begin_stream(b"head ")
    await asyncio.sleep(0)
    assert transport.sent == b"head "
    made.write(b"one")
    assert transport.sent == b"head one"


async def test_the_head_of_a_stream_whose_peer_left_is_dropped() -> None:
    made, transport = writer()
    made._begin_stream(b"head ")
    made._transport = None
    await asyncio.sleep(0)
    assert transport.sent == b""
