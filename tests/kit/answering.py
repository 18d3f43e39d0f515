"""A transport that only answers requests, for tests of what needs no streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from skerry.runtime.transport import NO_HEADERS, AnswerStream


class AnsweringTransport:
    """Streams nothing and holds nothing; whoever derives from it says how requests are answered."""

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        raise NotImplementedError(path)
        yield  # makes this a generator

    async def close(self) -> None:
        """Nothing is held."""
