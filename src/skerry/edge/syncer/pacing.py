"""A transport that asks no more often than it was told to: a bucket of tokens, as client-go's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from skerry.kit.clock import Clock
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Transport


class PacedTransport:
    """At most *burst* requests at once and *qps* per second on average; streams are not counted."""

    def __init__(self, inner: Transport, clock: Clock, qps: float, burst: int) -> None:
        self._inner = inner
        self._clock = clock
        self._spacing = 1.0 / qps
        self._slack = self._spacing * max(0, burst - 1)
        # When the bucket would be full again if nothing more were taken.
        self._next = 0.0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        now = self._clock.monotonic()
        self._next = max(self._next, now - self._slack) + self._spacing
        wait = self._next - self._spacing - now
        if wait > 0:
            await self._clock.sleep(wait)
        return await self._inner.request(method, path, query, headers, body)

    def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AbstractAsyncContextManager[AnswerStream]:
        return self._inner.stream(method, path, query, headers, body)

    async def close(self) -> None:
        await self._inner.close()
