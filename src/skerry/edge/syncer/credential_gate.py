"""What stands between a syncer and its hub: without a credential the hub accepts, nobody asks.

An edge may wait for days until somebody approves it, or be shut out for good. Requests wait here
meanwhile, as they would for a line that is slow, instead of asking the hub every few seconds what
it refuses every time; at the edge everything goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Transport
from skerry.runtime.wrapping import WrappedTransport

_UNAUTHORIZED = 401


class CredentialGate(WrappedTransport):
    """A transport that is open or closed; ``refused`` is called when the hub says 401."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._open = asyncio.Event()
        self.refused: Callable[[], None] = lambda: None

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    def open(self) -> None:
        """Let everybody through who waits, and who comes."""
        self._open.set()

    def shut(self) -> None:
        """Let everybody wait who comes; requests under way go on."""
        self._open.clear()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        await self._open.wait()
        answer = await super().request(method, path, query, headers, body)
        self._judge(answer.status)
        return answer

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        await self._open.wait()
        async with super().stream(method, path, query, headers, body) as answer:
            self._judge(answer.status)
            yield answer

    def _judge(self, status: int) -> None:
        if status == _UNAUTHORIZED:
            self.refused()
