"""What stands between a syncer and its hub: without a credential the hub accepts, nobody asks.

An edge may wait for days until somebody approves it, or be shut out for good. Requests wait here
meanwhile, as they would for a line that is slow, instead of asking the hub every few seconds what
it refuses every time; at the edge everything goes on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from skerry.api.edge import HEARTBEAT_LEASE
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    ConnectionLost,
    Transport,
    TransportError,
)
from skerry.runtime.wrapping import WrappedTransport

_UNAUTHORIZED, _FORBIDDEN = 401, 403
# What an edge may always do while its certificate is good. The hub knows who comes with a lapsed
# one, so it does not say 401; and the edge's own clock may think that there is time left.
_EVERYDAY = ("/extensions", "/extensions/v1/watch", "/extensions/v1/batch", f"/{HEARTBEAT_LEASE}")


class Suspicion:
    """What speaks against the credential.

    ``suspected`` is set when the hub seems not to accept it, which may be chance; ``distrusted``
    besides when nobody we know vouches for what answers in the hub's place.
    """

    def __init__(self) -> None:
        self.suspected = asyncio.Event()
        self.distrusted = False

    def suspect(self) -> None:
        self.suspected.set()

    def distrust(self) -> None:
        self.distrusted = True
        self.suspected.set()


class CredentialGate(WrappedTransport):
    """A transport that is open or closed, and notes in ``suspicion`` what answers give away."""

    def __init__(self, inner: Transport, suspicion: Suspicion | None = None) -> None:
        super().__init__(inner)
        self._open = asyncio.Event()
        self.suspicion = suspicion or Suspicion()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    async def opened(self) -> None:
        """Wait until the gate is open."""
        await self._open.wait()

    def open(self) -> None:
        """Let everybody through who waits, and who comes."""
        self._open.set()

    def shut(self) -> None:
        """Let everybody wait who comes; requests and watches under way go on."""
        self._open.clear()

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        await self.opened()
        with self._judging_errors():
            answer = await super().request(method, path, query, headers, body)
        self._judge(path, answer.status)
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
        await self.opened()
        with self._judging_errors():
            async with super().stream(method, path, query, headers, body) as answer:
                self._judge(path, answer.status)
                yield answer

    @contextmanager
    def _judging_errors(self) -> Iterator[None]:
        try:
            yield
        except TransportError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                self.suspicion.distrust()
            elif isinstance(error, ConnectionLost):
                self.suspicion.suspect()
            raise

    def _judge(self, path: str, status: int) -> None:
        """Take an answer for a sign that the certificate is not accepted, if it is one.

        A 403 elsewhere may be a missing rule, of an edge that is known well.
        """
        if status == _UNAUTHORIZED or (status == _FORBIDDEN and path.endswith(_EVERYDAY)):
            self.suspicion.suspect()
