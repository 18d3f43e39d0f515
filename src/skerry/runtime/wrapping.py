"""Transports around transports: each adds one thing and passes on the rest.

``WrappedTransport`` passes everything on. Whoever wraps overrides ``before`` (to wait), ``seen``
(to look at what came back) or ``request`` (to send something else).
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from skerry.kit.clock import Clock
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Transport


class WrappedTransport:
    """Another transport, with something before and after each request."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def before(self) -> None:
        """Do what must be done before a plain request goes out."""

    def seen(self, headers: Mapping[str, str]) -> None:
        """Look at the head of an answer before anyone reads its content."""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        await self.before()
        answer = await self._inner.request(method, path, query, headers, body)
        self.seen(answer.headers)
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
        async with self._inner.stream(method, path, query, headers, body) as answer:
            self.seen(answer.headers)
            yield answer

    async def close(self) -> None:
        await self._inner.close()


class PacedTransport(WrappedTransport):
    """Asks no more often than its rate allows: a bucket of tokens, as client-go's.

    At most *burst* requests at once and *qps* per second on average; streams are not counted.
    """

    def __init__(self, inner: Transport, clock: Clock, qps: float, burst: int) -> None:
        super().__init__(inner)
        self._clock = clock
        self._spacing = 1.0 / qps
        self._slack = self._spacing * max(0, burst - 1)
        # When the bucket would be full again if nothing more were taken.
        self._next = -math.inf

    async def before(self) -> None:
        now = self._clock.monotonic()
        self._next = max(self._next, now - self._slack) + self._spacing
        wait = self._next - self._spacing - now
        if wait > 0:
            await self._clock.sleep(wait)
