"""One client's watch: what it has seen, what it gets, when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from skerry.api.errors import ApiError, Gone, ServiceUnavailable
from skerry.server.change import Change, event_line
from skerry.server.codec import dump
from skerry.server.http.message import Sender
from skerry.server.request.selection import Selection
from skerry.server.response.listing import rendered_turns
from skerry.server.response.representation import Representation
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.watch.watch_event_type import watch_event_type
from skerry.store.base import Compacted, Unavailable

# A watcher this far behind will not catch up: its stream ends, as kube-apiserver's does. It watches
# again from the last version that it has seen, and gets 410 Gone only if that was compacted.
_MAX_QUEUED_BYTES = 16 << 20
# About as often as kube-apiserver sends them, and a last one before the end.
_BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK_SECONDS = 2.0

Items = list[tuple[bytes, int]]
# The state a watch begins with, in pieces that all have its revision.
InitialState = Callable[[], AsyncIterator[tuple[int, Items]]]


class WatchStream:
    """A subscription that writes to a sender."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        prefix: str,
        selection: Selection,
        shown: Representation,
        *,
        seconds: float,
        bookmarks: bool,
        view: str = "",
    ) -> None:
        self.prefix = prefix
        self.view = view
        self._dispatcher = dispatcher
        self._selection = selection
        self._shown = shown
        self._form = shown.form(first=True)
        self._later_form = shown.form(first=False)
        self._seconds = seconds
        self._bookmarks = bookmarks
        self._lines: list[bytes] = []
        self._after = 0
        self._sender: Sender | None = None
        self._ended: asyncio.Future[None] | None = None
        self.sent = 0

    async def run(
        self, sender: Sender, after: int, initial: InitialState | None, *, mark_end: bool
    ) -> None:
        """Send what is there, if asked, then what changes, until time is up or the peer is gone."""
        loop = asyncio.get_running_loop()
        self._sender, self._ended = sender, loop.create_future()
        timers: list[asyncio.TimerHandle] = []
        try:
            self._after = (
                await self._initial_state(initial, mark_end=mark_end) if initial else after
            )
            await self._dispatcher.subscribe(self, self._after)
            timers = self._timers(loop)
            await self._ended
        except Compacted as error:
            self._send_error(Gone(f"too old resource version: {self._after} ({error.oldest})"))
        except ApiError as error:
            self._send_error(error)
        except Unavailable as error:
            self._send_error(ServiceUnavailable(str(error)))
        finally:
            self._dispatcher.unsubscribe(self)
            for timer in timers:
                timer.cancel()

    async def _initial_state(self, initial: InitialState, *, mark_end: bool) -> int:
        revision = 0
        async for revision, items in initial():  # noqa: B007 - the last one is returned
            for some in rendered_turns(items, decodes=self._shown.decodes):
                for value, item_revision in some:
                    self._lines.append(event_line("ADDED", self._form.render(value, item_revision)))
                    self._form = self._later_form
                self.flush()
                await self._require_sender().drain()
                # Draining waits only for a slow reader; others must have a turn in any case.
                await asyncio.sleep(0)
        if mark_end:
            self._lines.append(self._bookmark_line(revision, initial_events_end=True))
        self.flush()
        return revision

    def _timers(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.TimerHandle]:
        timers = [loop.call_later(self._seconds, self._end)]
        if self._bookmarks:
            last = max(0.0, self._seconds - _LAST_BOOKMARK_SECONDS)
            timers.append(loop.call_later(last, self._bookmark))
            if self._seconds > _BOOKMARK_SECONDS:
                self._next_bookmark(loop, timers)
        return timers

    def _next_bookmark(
        self, loop: asyncio.AbstractEventLoop, timers: list[asyncio.TimerHandle]
    ) -> None:
        def fire() -> None:
            self._bookmark()
            timers[-1] = loop.call_later(_BOOKMARK_SECONDS, fire)

        timers.append(loop.call_later(_BOOKMARK_SECONDS, fire))

    def offer(self, change: Change) -> bool:
        event = change.event
        if event.revision <= self._after:
            return False
        kind = watch_event_type(self._selection, change)
        if kind is None:
            return False
        self._lines.append(change.frame(self._form, kind))
        self._form = self._later_form
        return True

    def expire(self, oldest: int) -> None:
        """Tell the client that its past is gone, and end."""
        self._send_error(Gone(f"too old resource version: {self._after} ({oldest})"))
        self._end()

    def flush(self) -> None:
        if not self._lines or self._sender is None:
            return
        sender = self._sender
        self.sent += len(self._lines)
        sender.write(b"".join(self._lines))
        self._lines.clear()
        if sender.closed or sender.queued_bytes > _MAX_QUEUED_BYTES:
            self._end()

    def _bookmark(self) -> None:
        self._lines.append(self._bookmark_line(self._dispatcher.position, initial_events_end=False))
        self.flush()

    def _bookmark_line(self, revision: int, *, initial_events_end: bool) -> bytes:
        body = self._shown.bookmark(revision, initial_events_end=initial_events_end)
        return event_line("BOOKMARK", body)

    def _send_error(self, error: ApiError) -> None:
        self._lines.append(event_line("ERROR", dump(error.status())))
        self.flush()

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _require_sender(self) -> Sender:
        if self._sender is None:
            raise RuntimeError("a watch writes only while it runs")
        return self._sender
