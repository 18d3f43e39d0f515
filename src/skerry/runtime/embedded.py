"""The in-process transport: straight into a server's handler, no socket between.

``runtime`` does not know ``server``; the shapes below are the handler's seam as far as a client
needs it, and ``app`` hands in the handler and the maker of its request objects. Meaning is the
same as over a socket: failures arrive as Status answers, a stream applies back-pressure and ends
when its reader leaves, and the body the handler sees is a copy nobody else holds. A connection
that is handed over to another protocol is two such streams, one each way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol
from urllib.parse import unquote

import orjson

from skerry.api.errors import ApiError, InternalError
from skerry.kit.log import Logger
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    TransportError,
    UpgradedLine,
)

# As much as a socket and the loop's write buffer would hold before a writer has to wait.
_LOW_WATER = 64 * 1024
_SWITCHING = 101

_log = Logger("embedded-transport")


class HandlerAnswer(Protocol):
    """What a whole answer and a stream have in common; one has ``body``, the other ``run``."""

    @property
    def status(self) -> int: ...

    @property
    def content_type(self) -> str: ...

    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...


class MakeRequest(Protocol):
    """Builds the handler's request object; *path* is percent-decoded, header names lower case."""

    def __call__(
        self, *, method: str, path: str, query_string: str, headers: Mapping[str, str], body: bytes
    ) -> Any: ...


Handler = Callable[[Any], Awaitable[Any]]


class EmbeddedTransport:
    """A transport into a handler of this process."""

    def __init__(self, handler: Handler, make_request: MakeRequest) -> None:
        self._handler = handler
        self._make_request = make_request
        self._senders: set[_Sender] = set()
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        answer = await self._answer(method, path, query, headers, body)
        if isinstance(answer, Answer):
            return answer
        if not hasattr(answer, "run"):
            return Answer(answer.status, _headers(answer), _joined(answer.body))
        async with self._running(answer) as stream:
            text = b"".join([chunk async for chunk in stream])
        return Answer(stream.status, stream.headers, text)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        answer = await self._answer(method, path, query, headers, body)
        if isinstance(answer, Answer):
            yield _Whole(*answer)
        elif not hasattr(answer, "run"):
            yield _Whole(answer.status, _headers(answer), _joined(answer.body))
        else:
            async with self._running(answer) as stream:
                yield stream

    @asynccontextmanager
    async def upgraded(
        self,
        protocol: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        method: str = "GET",
    ) -> AsyncIterator[UpgradedLine]:
        """Offer to speak *protocol* from now on; yields the connection with what was answered."""
        fields = {**headers, "connection": "Upgrade", "upgrade": protocol}
        answer = await self._answer(method, path, query, fields, b"")
        if isinstance(answer, Answer):
            yield _refused(*answer)
        elif answer.status != _SWITCHING:
            body = b"" if hasattr(answer, "run") else _joined(answer.body)
            yield _refused(answer.status, _headers(answer), body)
        else:
            typed = _Sender()
            async with self._running(answer, typed) as stream:
                yield _End(typed, stream.sender, stream.status, stream.headers)

    async def close(self) -> None:
        self._closed = True
        for sender in list(self._senders):
            sender.close()

    async def _answer(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Any:
        if self._closed:
            raise TransportError("the transport is closed")
        request = self._make_request(
            method=method,
            path=unquote(path),
            query_string=query,
            headers={name.lower(): value for name, value in headers.items()},
            body=body,
        )
        try:
            return await self._handler(request)
        except ApiError as error:
            return _failure(error)
        except Exception as error:  # noqa: BLE001 - this is the HTTP boundary of an embedded server
            _log.error("handler failed", method=method, path=path, error=error)
            return _failure(
                InternalError("Internal error occurred: the request could not be served")
            )

    @asynccontextmanager
    async def _running(self, answer: Any, typed: _Sender | None = None) -> AsyncIterator[_Running]:
        """Run a stream while its reader is inside; *typed* is what that sends, if it can."""
        sender = _Sender()
        self._senders.add(sender)
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(_run(answer, sender, typed))
                try:
                    yield _Running(answer, sender)
                except Exception as error:  # noqa: BLE001 - raised again below
                    failure = error  # so that it does not leave wrapped in a group
                finally:
                    for each in (sender, *((typed,) if typed is not None else ())):
                        each.close()
                    task.cancel()
        finally:
            self._senders.discard(sender)
        if failure is not None:
            raise failure


async def _run(answer: Any, sender: _Sender, typed: _Sender | None) -> None:
    """Let the stream write until it returns; a failure ends it as a broken connection would."""
    try:
        await answer.run(sender if typed is None else _End(sender, typed))
    except ConnectionError:
        pass
    except Exception as error:  # noqa: BLE001 - this is the HTTP boundary of an embedded server
        _log.error("stream failed", error=error)
        sender.fail(TransportError("the stream broke off"))
        return
    sender.end()


class _Sender:
    """The queue between a stream and its reader, with a socket's manners."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._queued = 0
        self._reader_gone = False
        self._ended = False
        self._error: TransportError | None = None
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def closed(self) -> bool:
        return self._reader_gone

    @property
    def queued_bytes(self) -> int:
        return self._queued

    def write(self, chunk: bytes) -> None:
        if self._reader_gone or not chunk:
            return
        self._chunks.append(bytes(chunk))
        self._queued += len(chunk)
        self._arrived.set()

    async def drain(self) -> None:
        while self._queued > _LOW_WATER and not self._reader_gone:
            self._room.clear()
            await self._room.wait()
        if self._reader_gone:
            raise ConnectionResetError("the reader has left")

    def close(self) -> None:
        """Say that nobody reads any more."""
        self._reader_gone = True
        self._room.set()
        self._arrived.set()

    def end(self) -> None:
        """Say that nothing more will be written."""
        self._ended = True
        self._arrived.set()

    def fail(self, error: TransportError) -> None:
        self._error = error
        self.end()

    async def taken(self) -> bytes:
        """Return the next chunk, waiting for it; empty at the end."""
        while True:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._queued -= len(chunk)
                if self._queued <= _LOW_WATER:
                    self._room.set()
                return chunk
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            if self._reader_gone:
                raise TransportError("the transport is closed")
            self._arrived.clear()
            await self._arrived.wait()

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self.taken():
            yield chunk


class _End:
    """One end of a connection that was taken over; or of one that was not, and why."""

    def __init__(
        self,
        outgoing: _Sender,
        incoming: _Sender,
        status: int = _SWITCHING,
        headers: Mapping[str, str] = NO_HEADERS,
        refused: bytes = b"",
    ) -> None:
        self.status = status
        self.headers = headers
        self._outgoing = outgoing
        self._incoming = incoming
        self._refused = refused

    def write(self, chunk: bytes) -> None:
        self._outgoing.write(chunk)

    async def drain(self) -> None:
        await self._outgoing.drain()

    @property
    def closed(self) -> bool:
        return self._outgoing.closed

    @property
    def queued_bytes(self) -> int:
        return self._outgoing.queued_bytes

    async def read(self) -> bytes:
        try:
            return await self._incoming.taken()
        except TransportError:
            # A connection that broke is one that has ended.
            return b""

    async def refusal(self) -> bytes:
        return self._refused


def _refused(status: int, headers: Mapping[str, str], body: bytes) -> _End:
    nobody = _Sender()
    nobody.close()
    return _End(nobody, nobody, status, headers, body)


class _Running:
    def __init__(self, answer: Any, sender: _Sender) -> None:
        self.status: int = answer.status
        self.headers: Mapping[str, str] = _headers(answer)
        self.sender = sender

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self.sender.chunks()


class _Whole:
    """A whole answer where a stream was asked for: an error, or a short list."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body


def _headers(answer: HandlerAnswer) -> dict[str, str]:
    headers = {name.lower(): value for name, value in answer.headers}
    headers.setdefault("content-type", answer.content_type)
    return headers


def _joined(body: bytes | Iterable[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join(body)


def _failure(error: ApiError) -> Answer:
    headers = {name.lower(): value for name, value in error.headers.items()}
    headers["content-type"] = "application/json"
    return Answer(error.code, headers, orjson.dumps(error.status()))
