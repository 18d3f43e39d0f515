"""Documents that a server answers at a path, the same for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.server.codec import dump
from skerry.server.engine import PathHandler
from skerry.server.http.message import Answer, Request, Response


def fixed(document: dict[str, str]) -> PathHandler:
    """Return what answers *document*, which never changes."""
    body = dump(document, pretty=True)

    async def answer(_: Request, __: str) -> Answer:
        return Response(body=body)

    return answer


def made(make: Callable[[], dict[str, Any]]) -> PathHandler:
    """Return what answers with the document as it is at the time."""

    async def answer(_: Request, __: str) -> Answer:
        return Response(body=dump(make()))

    return answer
