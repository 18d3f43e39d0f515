"""A client that sends exactly the bytes it is given."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import orjson

from skerry.server.http.message import Answer, Handler, Request, Response
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings

GET = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n"
PATIENCE_SECONDS = 60


async def echo(request: Request) -> Answer:
    """Answer with what was asked."""
    echoed = {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": dict(request.headers),
        "body": request.body.decode("latin-1"),
    }
    return Response(200, orjson.dumps(echoed))


@asynccontextmanager
async def serving(
    handler: Handler = echo,
    settings: HttpSettings | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[HttpServer, int]]:
    server = HttpServer(handler, settings or HttpSettings(linger_seconds=0.05))
    port = await server.start(tls=tls)
    try:
        yield server, port
    finally:
        await server.stop(0.5)


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, head_only: bool = False) -> Got:
        """Read one answer."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            status, headers = await self.head()
            body = b"" if head_only or status in {100, 204, 304} else await self._body(headers)
            return Got(status, headers, body)

    async def head(self) -> tuple[int, dict[str, str]]:
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = raw.split("\r\n")[:-2]
        pairs = (line.split(": ", 1) for line in lines)
        return int(first.split(" ")[1]), {name.lower(): value for name, value in pairs}

    async def chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size)
        assert await self.reader.readexactly(2) == b"\r\n"
        return data

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            chunks = []
            while chunk := await self.chunk():
                chunks.append(chunk)
            return b"".join(chunks)
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        return await self.reader.read()

    async def rest(self) -> bytes:
        """Read until the server hangs up."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def exchange(port: int, data: bytes) -> bytes:
    """Send *data*, say that no more comes, and return all that comes back."""
    async with connected(port) as client:
        client.send(data)
        with suppress(OSError):
            client.writer.write_eof()
        return await client.rest()


async def until(condition: Callable[[], object], step: Callable[[], Awaitable[None]]) -> None:
    """Let the loop turn until *condition* holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await step()


async def turn() -> None:
    await asyncio.sleep(0)
