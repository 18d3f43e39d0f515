"""Requests passed on to a real server that stands for a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skerry.api.errors import ServiceUnavailable
from skerry.server.http.message import Answer, Request, Response, Stream
from skerry.server.streaming.http_proxy import Dial, proxied

PATH = "/api/v1/namespaces/d/pods/p/proxy/a b"


class Sent:
    """Keeps what a stream sends."""

    closed, queued_bytes = False, 0

    def __init__(self) -> None:
        self.data = b""

    def write(self, chunk: bytes) -> None:
        self.data += chunk

    async def drain(self) -> None:
        """Everything is taken at once."""


@asynccontextmanager
async def pod(answer: bytes) -> AsyncIterator[tuple[Dial, list[bytes]]]:
    """Yield the way to a server that answers so, and what it was sent."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0] or b"0")
        asked.append(head + await reader.readexactly(size))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield lambda: asyncio.open_connection("127.0.0.1", port), asked
    finally:
        server.close()


async def body_of(answer: Answer) -> bytes:
    assert isinstance(answer, Stream)
    sent = Sent()
    await answer.run(sent)
    return sent.data


async def test_method_query_body_and_headers_arrive_but_no_credentials() -> None:
    headers = {"host": "x", "authorization": "Bearer t", "accept": "a/b", "connection": "close"}
    request = Request("POST", PATH, "q=1", headers, b"body")
    async with pod(b"HTTP/1.0 201 Made\r\nContent-Type: a/b\r\nX-Own: 1\r\n\r\nhello") as (
        to,
        asked,
    ):
        answer = await proxied(request, "a b", to)
        assert (answer.status, answer.content_type) == (201, "a/b")
        assert ("x-own", "1") in [(name.lower(), value) for name, value in answer.headers]
        assert await body_of(answer) == b"hello"
    (sent,) = asked
    assert sent.startswith(b"POST /a%20b?q=1 HTTP/1.0\r\n")
    assert sent.endswith(b"\r\n\r\nbody")
    assert b"accept: a/b" in sent
    assert b"Bearer" not in sent


async def test_an_answer_ends_where_its_length_says() -> None:
    async with pod(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef") as (to, _):
        assert await body_of(await proxied(Request("GET", PATH), "a", to)) == b"abc"


async def test_an_answer_without_a_body_has_none() -> None:
    async with pod(b"HTTP/1.1 204 None\r\n\r\n") as (to, _):
        answer = await proxied(Request("GET", PATH), "a", to)
    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (204, b"")


async def test_the_root_is_asked_for_with_a_slash() -> None:
    async def nowhere() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise AssertionError

    request = Request("GET", "/api/v1/namespaces/d/pods/p/proxy", "q=1")
    answer = await proxied(request, "", nowhere)
    where = "/api/v1/namespaces/d/pods/p/proxy/?q=1"
    assert (answer.status, list(answer.headers)) == (301, [("Location", where)])


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nhalf"])
async def test_what_is_no_answer_is_a_service_that_is_not_to_be_had(answer: bytes) -> None:
    async with pod(answer) as (to, _):
        with pytest.raises(ServiceUnavailable, match="error trying to reach service"):
            await proxied(Request("GET", PATH), "a", to)
