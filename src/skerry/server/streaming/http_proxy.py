"""A request passed on to a port of a pod, for the proxies of pods and services.

It goes as HTTP/1.0: the answer then ends where its length says, or with the connection, and nothing
has to be taken apart. Who asked was authenticated here; the pod is not shown by what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from skerry.api.errors import ServiceUnavailable
from skerry.kit.text import whole_number
from skerry.logic.machinery.aggregation import forwarded, returned
from skerry.server.http.message import Answer, Request, Response, Sender, Stream
from skerry.wire.http1 import parsed_response

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Streams]]

# What may stand in a path as it is.
_PATH: Final = "/:@!$&'()*+,;=~-._"
_PIECE_BYTES: Final = 64 << 10
_SECONDS: Final = 30.0
_BODILESS: Final = frozenset((204, 304))


async def proxied(request: Request, path: str, dial: Dial) -> Answer:
    """Return what is answered to *request* at *path* of wherever *dial* leads."""
    if not path and request.method in ("GET", "HEAD") and not request.path.endswith("/"):
        # So that what a page refers to is looked for below it.
        query = f"?{request.query_string}" if request.query_string else ""
        where = quote(request.path, safe=_PATH) + "/" + query
        return Response(301, b"", "text/html; charset=utf-8", (("Location", where),))
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await dial()
            try:
                writer.write(_head(request, path) + request.body)
                status, headers = parsed_response(await reader.readuntil(b"\r\n\r\n"))
            except BaseException:
                writer.transport.abort()
                raise
    except (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        why = str(error) or "no answer in time"
        raise ServiceUnavailable(f"error trying to reach service: {why}") from error
    media, kept = headers.get("content-type", ""), returned(headers)
    if request.method == "HEAD" or status in _BODILESS:
        writer.close()
        return Response(status, b"", media, kept)

    async def run(sender: Sender) -> None:
        try:
            await _carried(reader, sender, headers.get("content-length", ""))
        finally:
            writer.close()

    return Stream(run, status, media, kept)


async def _carried(reader: asyncio.StreamReader, sender: Sender, length: str) -> None:
    known = whole_number(length)
    left = -1 if known is None else known
    while left:
        wanted = _PIECE_BYTES if left < 0 else min(left, _PIECE_BYTES)
        piece = await reader.read(wanted)
        if not piece:
            return
        left -= len(piece) if left > 0 else 0
        sender.write(piece)
        await sender.drain()


def _head(request: Request, path: str) -> bytes:
    target = "/" + quote(path, safe=_PATH)
    if request.query_string:
        target = f"{target}?{request.query_string}"
    fields = {
        **forwarded(request.headers),
        "host": request.headers.get("host", ""),
        "x-forwarded-uri": quote(request.path, safe=_PATH),
    }
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        fields["content-length"] = str(len(request.body))
    lines = (f"{name}: {value}" for name, value in fields.items() if "\n" not in value)
    return "\r\n".join((f"{request.method} {target} HTTP/1.0", *lines, "", "")).encode("latin-1")
