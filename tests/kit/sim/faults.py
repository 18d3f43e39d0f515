"""A transport that misbehaves as networks do, by seed.

Requests are delayed; some never arrive, some arrive twice, some are carried out but their answer
is lost. Streams break off, in the middle of a record too. Nothing is ever changed in content:
TCP and TLS see to that.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from skerry.kit.ids import IdSource
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    Transport,
    TransportError,
)


@dataclass
class Rates:
    """How likely each fault is, per request or per chunk."""

    lost_request: float = 0.05
    lost_answer: float = 0.05
    duplicated: float = 0.03
    broken_stream: float = 0.05
    max_delay_seconds: float = 0.2


class FaultyTransport:
    """Wraps a transport; ``heal`` ends all faults, so that convergence can be checked."""

    def __init__(self, inner: Transport, ids: IdSource, rates: Rates | None = None) -> None:
        self._inner = inner
        self._ids = ids
        self.rates = rates or Rates()
        # Every request and when it was made: what a run did, to be compared with another.
        self.steps: list[str] = []
        # Resources whose watches bring nothing for now, though nothing says that they broke off.
        self._held: dict[str, asyncio.Event] = {}
        # Ends of paths of which the next answer to a write is lost.
        self._losing: set[str] = set()

    def heal(self) -> None:
        self.rates = Rates(0.0, 0.0, 0.0, 0.0, 0.0)

    @contextmanager
    def behind(self, resource: str) -> Iterator[None]:
        """Keep back what watches of *resource* would bring while inside."""
        self._held[resource] = released = asyncio.Event()
        try:
            yield
        finally:
            del self._held[resource]
            released.set()

    def lose_answer(self, path_end: str) -> None:
        """Lose the next answer to a write to a path that ends so; what it asks for is done."""
        self._losing.add(path_end)

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self._note(method, path, query, body)
        await self._delay()
        if self._happens(self.rates.lost_request):
            raise TransportError("injected: the request was lost")
        answer = await self._inner.request(method, path, query, headers, body)
        if self._happens(self.rates.duplicated):
            await self._delay()
            answer = await self._inner.request(method, path, query, headers, body)
        if self._happens(self.rates.lost_answer) or self._is_losing(method, path):
            raise TransportError("injected: the answer was lost")
        await self._delay()
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
        self._note(method, path, query, body)
        await self._delay()
        if self._happens(self.rates.lost_request):
            raise TransportError("injected: the request was lost")
        async with self._inner.stream(method, path, query, headers, body) as answer:
            yield _Breaking(answer, self, path.rpartition("/")[2])

    async def close(self) -> None:
        await self._inner.close()

    def _is_losing(self, method: str, path: str) -> bool:
        found = {each for each in self._losing if method != "GET" and path.endswith(each)}
        self._losing -= found
        return bool(found)

    def _note(self, method: str, path: str, query: str, body: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.steps.append(f"{now:.6f} {method} {path}?{query} {zlib.crc32(body):08x}")

    async def _delay(self) -> None:
        if self.rates.max_delay_seconds:
            await asyncio.sleep(self.rates.max_delay_seconds * self._ids.fraction())

    def _happens(self, rate: float) -> bool:
        return bool(rate) and self._ids.fraction() < rate

    async def chunks(self, answer: AnswerStream, resource: str) -> AsyncIterator[bytes]:
        async for chunk in answer:
            while (released := self._held.get(resource)) is not None:
                await released.wait()
            await self._delay()
            if self._happens(self.rates.broken_stream):
                yield chunk[: int(len(chunk) * self._ids.fraction())]
                raise TransportError("injected: the stream broke off")
            yield chunk


class _Breaking:
    def __init__(self, answer: AnswerStream, faults: FaultyTransport, resource: str) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._answer = answer
        self._faults = faults
        self._resource = resource

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._faults.chunks(self._answer, self._resource)
