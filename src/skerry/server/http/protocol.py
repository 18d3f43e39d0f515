"""One HTTP/1.1 connection: requests to the handler, answers out in order.

A connection has one task, started with the first request and waiting between requests, which
calls the handler for one request after another; so answers are in order however many requests
arrived together. A plain handler is never cancelled because its client left (a half-done write
helps nobody); a stream is.

While that task waits, a new request is begun at once, in the callback that read it, as if the
task ran: most requests never wait for anything and are answered there, which saves resuming the
task, about a fifth of a GET. A handler that waits for a future, as a write does for its commit, is
resumed by that future's callback in the same way, and the task goes on waiting for requests. Any
other wait, and the end of one by cancellation, are the task's, which carries on from that point.
Because the task and its context are entered for each part, a handler cannot tell.

Timers: a connection only notes at which tick of the server its present phase began; the server
asks ``expire`` every tick. A request sets no timer.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Coroutine
from typing import Any
from typing import Protocol as TypingProtocol

from skerry.api.errors import ApiError, ServiceUnavailable
from skerry.kit.clock import Clock
from skerry.kit.invariant import InvariantError
from skerry.kit.log import Logger
from skerry.server.http.accepting import Bodies, Strangers
from skerry.server.http.encoding import (
    Heads,
    error_response,
)
from skerry.server.http.failures import failure, where
from skerry.server.http.message import Answer, Handler, Peer, Request, Stream, Upgrade
from skerry.server.http.peers import keep_alive, peer_of
from skerry.server.http.reading import Read, RequestReader, RequestTimeout
from skerry.server.http.senders import ChunkedSender, ConnectionDuplex
from skerry.server.http.settings import HttpSettings
from skerry.server.http.steps import carried_on, note_step, timed
from skerry.server.http.writing import CLOSE, KEEP, AnswerWriter
from skerry.server.user import User

log = Logger("http")

_ANONYMOUS = "system:anonymous"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


class Host(TypingProtocol):
    """What a connection needs of the server it belongs to."""

    handler: Handler
    settings: HttpSettings
    heads: Heads
    clock: Clock
    loop: asyncio.AbstractEventLoop
    strangers: Strangers
    bodies: Bodies
    tick: float
    """The loop's time, as of the last tick."""

    def opened(self, connection: Connection) -> bool:
        """Note a new connection; False when there are too many."""

    def closed(self, connection: Connection) -> None:
        """Forget a connection; its task may still be finishing a request."""


_Serving = Coroutine[Any, Any, bool]


class Connection(AnswerWriter):
    """The protocol of one connection, and the ``Sender`` of its unframed streams."""

    __slots__ = (
        "_begun",
        "_context",
        "_idle",
        "_queue",
        "_reader",
        "_stranger",
        "_streaming",
        "_task",
        "_upgraded",
        "reading_paused",
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._host: Host = host
        self._reader = RequestReader(host, self._received, self._invite_body)
        self._context = contextvars.copy_context()
        self._queue: deque[Read] = deque()
        self._task: asyncio.Task[None] | None = None
        # What the task waits for between requests; None while it is busy.
        self._idle: asyncio.Future[None] | None = None
        # A request begun in the reading callback that now waits, for what, and what its task does.
        self._begun: tuple[_Serving, Any, Request, asyncio.Future[None]] | None = None
        self._streaming = self.reading_paused = False
        # Whether nobody has shown valid credentials here yet.
        self._stranger = False
        # Set once another protocol has taken the connection over.
        self._upgraded: ConnectionDuplex | None = None

    # The transport calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # TCP and TLS transports are
        self._reader.peer = peer = peer_of(transport)
        self._reader.sender = peer.address
        self._stranger = True
        if peer.certificate is not None:
            self._recognize("")
        keep_alive(transport.get_extra_info("socket"))
        if not self._host.opened(self):
            self._reader.refuse(ServiceUnavailable("the server has too many connections"))

    def data_received(self, data: bytes) -> None:
        if self._upgraded is not None:
            self._upgraded.feed(data)
        else:
            self._reader.feed(data)

    def eof_received(self) -> bool:
        """Keep the way back open while an answer is due; a stream's reader has gone."""
        self._reader.ended = True
        if self._streaming and self._task is not None:
            self._lost = True
            self._task.cancel()
            return False
        return self._busy

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._reader.ended = True
        # With its TLS it is large, and this object is part of circles that are found late.
        self._transport = None
        for read in self._queue:
            self._give_back(read[0])
        self._queue.clear()
        self._reader.give_body_back()
        if self._stranger:
            self._stranger = False
            self._host.strangers.leave(self._reader.peer.address)
        self._host.closed(self)
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if self._task is not None and (self._streaming or self._idle is not None):
            self._task.cancel()

    # From the reader to the task.

    @property
    def _busy(self) -> bool:
        """Whether an answer is still owed to the peer."""
        return bool(self._queue) or (self._task is not None and self._idle is None)

    @property
    def peer(self) -> Peer:
        """The other end of this connection."""
        return self._reader.peer

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task serving this connection, when it has one."""
        return self._task

    def _received(self, read: Read) -> None:
        if self._lost:
            return
        idle = self._idle
        if idle is not None and not idle.done():
            self._idle = None
            if read[3] is not None:
                self._queue.append(read)
                idle.set_result(None)
            elif asyncio.current_task(self._host.loop) is not None:
                # The transport reads on behalf of another task. Ours takes its turn.
                self._queue.append(read)
                idle.set_result(None)
            else:
                read[0].step = read[0].received
                self._context.run(self._step, self._serve_one(read), read[0], idle)
            return
        self._queue.append(read)
        if self._task is None:
            self._task = self._host.loop.create_task(self._serve(), context=self._context)
        if len(self._queue) >= self._host.settings.pipelined and not self.reading_paused:
            self.pause_reading()

    def _step(self, serving: _Serving, request: Request, idle: asyncio.Future[None]) -> None:
        """Run a request up to its next wait, in place of the task, which waits for *idle*."""
        loop, task = self._host.loop, self._task
        if task is None:
            raise InvariantError("a connection without a task waits for nothing")
        asyncio.tasks._enter_task(loop, task)
        try:
            awaited = serving.send(None)
        except StopIteration as done:
            if done.value:
                self._answered(idle)
            else:
                task.cancel()
            return
        except (ConnectionError, asyncio.CancelledError):
            task.cancel()
            return
        finally:
            asyncio.tasks._leave_task(loop, task)
        note_step(request, self._host.clock.monotonic)
        self._begun = (serving, awaited, request, idle)
        if idle.done():
            return  # The task was cancelled meanwhile, and comes to find this.
        if getattr(awaited, "_asyncio_future_blocking", False):
            awaited._asyncio_future_blocking = False
            awaited.add_done_callback(self._resume, context=self._context)
        else:
            idle.set_result(None)

    def _resume(self, _: asyncio.Future[Any]) -> None:
        """Go on with the request that waited for a future, unless its task was cancelled."""
        if self._begun is not None and not self._begun[3].done():
            (serving, _, request, idle), self._begun = self._begun, None
            request.step = self._host.clock.monotonic()
            self._step(serving, request, idle)

    def _answered(self, idle: asyncio.Future[None]) -> None:
        """Wait for requests again; where there is anything else to do, the task does it."""
        reader = self._reader
        if self._queue or self._draining or reader.ended or reader.awaits_continue:
            if not idle.done():
                idle.set_result(None)
        else:
            self._idle = idle

    def _invite_body(self) -> None:
        """Say 100 Continue, unless answers to earlier requests must go out first."""
        if not self._busy:
            self._reader.awaits_continue = False
            self._write(_CONTINUE)

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self.reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.reading_paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # The task.

    async def _serve(self) -> None:
        """Answer request after request until the connection has no more of them."""
        try:
            while not self._lost and await self._next():
                pass
        except asyncio.CancelledError:
            # Cancelled by ourselves, the peer being gone or the server stopping.
            pass
        except ConnectionError:
            log.debug("peer left during an answer", peer=self._reader.peer.address)
        finally:
            self._idle = None
            self._task = None
            self._close()

    async def _next(self) -> bool:
        """Answer the next request, waiting for one; False when the connection ends with it."""
        if not self._queue:
            return await self._wait()
        read = self._queue.popleft()
        if self.reading_paused and not self._queue:
            self.resume_reading()
        if read[3] is not None:
            return await self._refuse(read, read[3])
        return await timed(self._serve_one(read), read[0], self._host.clock.monotonic)

    async def _wait(self) -> bool:
        """Wait for a request, and carry on with it when it was begun already."""
        if self._draining or (self._reader.ended and not self._reader.in_body):
            return False
        self._idle = idle = self._host.loop.create_future()
        if self._reader.awaits_continue:
            self._invite_body()
        stopped: asyncio.CancelledError | None = None
        try:
            await idle
        except asyncio.CancelledError as error:
            if self._begun is None:
                raise
            stopped = error
        if self._begun is None:
            return True
        (serving, awaited, request, _), self._begun = self._begun, None
        if stopped is not None and awaited is not None:
            stopped = self._end_wait(awaited, stopped)
        now = self._host.clock.monotonic
        return await carried_on(serving, awaited, stopped, request, now)

    def _end_wait(
        self, awaited: asyncio.Future[Any], stopped: asyncio.CancelledError
    ) -> asyncio.CancelledError | None:
        """Cancel what a request waits for, as its task would; None when that takes a while."""
        awaited.remove_done_callback(self._resume)
        if not awaited.cancel():
            return stopped
        awaited._asyncio_future_blocking = True
        return None

    async def _serve_one(self, read: Read) -> bool:
        """Answer one request; False when the connection ends with it.

        Calling the handler here is the boundary no exception crosses.
        """
        answer: Answer
        try:
            answer = await self._host.handler(read[0])
        except ApiError as error:
            answer = error_response(error)
        except Exception as error:  # noqa: BLE001 - the HTTP boundary: a bug costs one request
            answer = failure(read[0], error)
        finally:
            if read[0].held is not None:
                self._give_back(read[0])
        if self._stranger:
            self._look_at(read[0].user)
        if self._lost:
            return False
        keep = read[1] and not self._draining
        if isinstance(answer, Stream):
            return await self._run_stream(read, answer, keep)
        body = answer.body
        if isinstance(body, bytes) and len(body) <= self._host.settings.gzip_bytes:
            self._send(read, answer, body, not keep)
        else:
            await self._send_large(read, answer, not keep)
        if self._paused:
            await self.drain()
        return keep

    def _give_back(self, request: Request) -> None:
        """Account for the body of *request* no longer."""
        if request.held is not None:
            self._host.bodies.give_back(*request.held)
            request.held = None

    def _look_at(self, user: User | None) -> None:
        """See whether somebody has shown who they are."""
        if user is not None and user.name != _ANONYMOUS:
            self._recognize(user.principal)

    def _recognize(self, principal: str) -> None:
        """Count the connection as one of somebody known from now on."""
        if self._stranger:
            self._stranger = False
            self._host.strangers.leave(self._reader.peer.address)
        if principal:
            self._reader.sender = principal

    async def _refuse(self, read: Read, refusal: ApiError) -> bool:
        """Say why a request is not served; one that could not be read ends the connection."""
        answer = error_response(refusal)
        keep = read[1] and not self._draining
        await self._send_large(read, answer, not keep)
        if not read[1]:
            await self._linger()
        return keep

    # Streams.

    async def _run_stream(self, read: Read, stream: Stream, keep: bool) -> bool:
        if isinstance(stream, Upgrade):
            return await self._run_upgrade(stream)
        request, _, chunked, _ = read
        keep = keep and chunked
        head = self._host.heads.head(stream.status, stream.content_type, stream.headers, None)
        if chunked:
            head += _CHUNKED
        head += KEEP if keep else CLOSE
        if request.method == "HEAD":
            self._write(head)
            return keep
        self._begin_stream(head)
        finished = await self._finished(stream, ChunkedSender(self) if chunked else self)
        if not finished:
            # The peer must not take a broken stream for a complete one.
            if self._transport is not None:
                self._transport.abort()
            return False
        # Unframed there is nothing more to say, but for the head where nothing was said.
        self._write(_LAST_CHUNK if chunked else b"")
        return keep and not self._draining

    async def _run_upgrade(self, upgrade: Upgrade) -> bool:
        """Hand the connection over to another protocol, until that has ended."""
        headers = (("Connection", "Upgrade"), ("Upgrade", upgrade.protocol), *upgrade.headers)
        self._upgraded = ConnectionDuplex(self)
        self._write(self._host.heads.head(101, "", headers, None) + KEEP)
        await self._finished(upgrade, self._upgraded)
        return False

    async def _finished(
        self, stream: Stream, sender: Connection | ChunkedSender | ConnectionDuplex
    ) -> bool:
        """Run the stream; True when it ended as it should, by itself or by the server's wish."""
        self._streaming = True
        try:
            await stream.run(sender)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._lost or not self._draining or task is None:
                raise
            task.uncancel()
        except ConnectionError:
            return False
        except Exception as error:  # noqa: BLE001 - the HTTP boundary: a bug costs one stream
            log.error("stream failed", error=error, at=where(error))
            return False
        finally:
            self._streaming = False
        return True

    # Ending.

    async def _linger(self) -> None:
        """Read on a moment after a refusal; closing on unread input would reset the connection
        and could take the answer with it."""
        if self.reading_paused:
            self.resume_reading()
        self._streaming = True  # What ends a stream (the peer leaving, draining) ends the wait.
        try:
            async with asyncio.timeout(self._host.settings.linger_seconds):
                await self._host.loop.create_future()
        except TimeoutError:
            pass
        finally:
            self._streaming = False

    def _close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def drain_and_close(self) -> None:
        """Finish what is being answered, end streams, then close. Reads nothing more."""
        self._draining = self._reader.ended = True
        if self._task is None:
            self._close()
        elif self._streaming or self._idle is not None:
            self._task.cancel()

    def abort(self) -> None:
        """Cut the connection, whatever is going on."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    def expire(self, now: float) -> None:
        """End the connection when its present phase has lasted too long."""
        settings = self._host.settings
        reader = self._reader
        if self._paused:
            self._expire_stalled(now)
        elif reader.in_head or reader.in_body:
            allowed = settings.header_seconds if reader.in_head else settings.body_seconds
            if now - reader.since > allowed:
                reader.refuse(RequestTimeout("the request did not arrive in time"))
        elif not self._busy:
            allowed = settings.idle_seconds
            if self._stranger:
                allowed = min(allowed, settings.stranger_seconds)
            if now - reader.since > allowed:
                self.drain_and_close()

    def _expire_stalled(self, now: float) -> None:
        """Cut a peer that takes nothing; one that takes a little, however slowly, is kept."""
        size = self.queued_bytes
        if size < self._stalled_size:
            self._stalled_size, self._stalled_at = size, now
        elif now - self._stalled_at > self._host.settings.stalled_seconds:
            log.info("peer takes nothing; connection cut", v=2, peer=self._reader.peer.address)
            self.abort()
