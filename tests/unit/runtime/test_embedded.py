"""What only the in-process transport does; ``test_http`` compares it with the one over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from skerry.api.errors import Conflict
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.transport import TransportError


@dataclass
class Asked:
    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Whole:
    body: Any = b""
    status: int = 200
    content_type: str = "text/plain"
    headers: Sequence[tuple[str, str]] = ()


@dataclass
class Goes:
    """An answer that goes on."""

    run: Callable[[Any], Awaitable[None]]
    status: int = 200
    content_type: str = "text/plain"
    headers: Sequence[tuple[str, str]] = ()


@dataclass
class Handler:
    answer: Any = field(default_factory=Whole)
    asked: list[Asked] = field(default_factory=list)

    async def __call__(self, request: Asked) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def transport(self) -> EmbeddedTransport:
        return EmbeddedTransport(self, Asked)


async def test_the_handler_sees_a_decoded_path_and_lower_case_headers() -> None:
    handler = Handler()
    await handler.transport().request("PUT", "/a%20b", "x=%20", {"If-Match": "Q"}, b"body")
    assert handler.asked == [Asked("PUT", "/a b", "x=%20", {"if-match": "Q"}, b"body")]


async def test_a_body_in_parts_is_joined_and_the_type_is_a_header() -> None:
    handler = Handler(Whole([b"a", b"b"], headers=[("X-Kind", "parts")]))
    answer = await handler.transport().request("GET", "/")
    assert answer.body == b"ab"
    assert answer.headers == {"x-kind": "parts", "content-type": "text/plain"}


async def test_a_refusal_is_a_status_and_a_bug_says_nothing_of_itself() -> None:
    refused = await Handler(Conflict("changed meanwhile")).transport().request("GET", "/")
    assert (refused.status, orjson.loads(refused.body)["message"]) == (409, "changed meanwhile")
    broken = await Handler(ZeroDivisionError("secret")).transport().request("GET", "/")
    assert broken.status == 500
    assert b"secret" not in broken.body


async def test_a_stream_asked_for_as_a_request_is_read_to_its_end() -> None:
    async def run(sender: Any) -> None:
        for text in (b"a", b"b"):
            sender.write(text)
            await sender.drain()

    assert (await Handler(Goes(run)).transport().request("GET", "/")).body == b"ab"


async def test_a_stream_that_fails_breaks_off_after_what_it_wrote() -> None:
    async def run(sender: Any) -> None:
        sender.write(b"a")
        raise ZeroDivisionError

    async with Handler(Goes(run)).transport().stream("GET", "/") as stream:
        chunks = aiter(stream)
        assert await anext(chunks) == b"a"
        with pytest.raises(TransportError, match="broke off"):
            await anext(chunks)


async def test_leaving_a_stream_ends_its_writer() -> None:
    ended = asyncio.Event()

    async def run(sender: Any) -> None:
        try:
            sender.write(b"a")
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Handler(Goes(run)).transport().stream("GET", "/") as stream:
        assert await anext(aiter(stream)) == b"a"
    assert ended.is_set()


async def test_closing_the_transport_ends_its_streams_and_takes_no_request() -> None:
    async def run(sender: Any) -> None:
        await asyncio.Event().wait()

    transport = Handler(Goes(run)).transport()
    async with transport.stream("GET", "/") as stream:
        await transport.close()
        with pytest.raises(TransportError, match="the transport is closed"):
            await anext(aiter(stream))
    with pytest.raises(TransportError, match="the transport is closed"):
        await transport.request("GET", "/")


async def test_a_writer_waits_for_a_slow_reader_and_notices_when_it_left() -> None:
    written = 0
    outcome: list[str] = []

    async def run(sender: Any) -> None:
        nonlocal written
        try:
            while True:
                sender.write(bytes(60_000))
                written += 1
                await sender.drain()
        except ConnectionError:
            outcome.append("the reader left")
            raise

    async with Handler(Goes(run)).transport().stream("GET", "/") as stream:
        for _ in range(10):
            await asyncio.sleep(0)
        assert written == 2
        await anext(aiter(stream))
        for _ in range(10):
            await asyncio.sleep(0)
        assert written == 3
        stream.sender.close()  # type: ignore[attr-defined]
        for _ in range(3):
            await asyncio.sleep(0)
    assert outcome == ["the reader left"]


# -- connections that are handed over --------------------------------------------------------------


async def test_an_upgraded_connection_carries_bytes_both_ways() -> None:
    async def echo(line: Any) -> None:
        while chunk := await line.read():
            line.write(chunk.upper())
            await line.drain()

    handler = Handler(Goes(echo, status=101, headers=[("Upgrade", "echo")]))
    async with handler.transport().upgraded("echo", "/exec") as line:
        assert (line.status, line.headers["upgrade"]) == (101, "echo")
        for text in (b"one", b"two"):
            line.write(text)
            assert await line.read() == text.upper()
    assert handler.asked[0].headers == {"connection": "Upgrade", "upgrade": "echo"}


async def test_an_upgraded_connection_that_breaks_has_ended() -> None:
    async def fail(line: Any) -> None:
        raise ZeroDivisionError

    handler = Handler(Goes(fail, status=101))
    async with handler.transport().upgraded("echo", "/exec") as line:
        assert await line.read() == b""


async def nothing(_line: Any) -> None:
    """End at once."""


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (Whole(b"no such pod", status=404), 404, b"no such pod"),
        (Conflict("busy"), 409, b"busy"),
        (Goes(nothing, status=200), 200, b""),
    ],
)
async def test_an_offer_that_was_not_taken_is_a_closed_connection_with_its_reason(
    answer: Any, status: int, body: bytes
) -> None:
    async with Handler(answer).transport().upgraded("echo", "/exec") as line:
        assert (line.status, line.closed) == (status, True)
        assert body in await line.refusal()
        assert await line.read() == b""
        with pytest.raises(ConnectionError):
            await line.drain()


async def chunks_of(stream: Any) -> AsyncIterator[bytes]:
    async for chunk in stream:
        yield chunk


async def test_a_whole_answer_where_a_stream_was_asked_for_is_one_chunk_or_none() -> None:
    for body, wanted in ((b"list", [b"list"]), (b"", [])):
        async with Handler(Whole(body)).transport().stream("GET", "/") as stream:
            assert [chunk async for chunk in chunks_of(stream)] == wanted
