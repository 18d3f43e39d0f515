"""A watch of objects that a webhook must convert before they can be shown.

The dispatcher hands changes out in one turn and waits for nobody; a webhook is waited for. So what
is offered is kept in order, and shown one after the other as conversions come. A watch whose
webhook cannot follow ends, and its client lists again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from skerry.api.errors import ApiError
from skerry.server.change import Change, EventType
from skerry.server.conversion import completed, continued, forget, prefetch
from skerry.server.http.message import Sender
from skerry.server.request.call import Call
from skerry.server.request.selection import Selection
from skerry.server.response.representation import Representation
from skerry.server.watch.dispatcher import Dispatcher
from skerry.server.watch.stream import InitialState, Items, WatchStream
from skerry.server.watch.watch_event_type import watch_event_type

# Changes that wait for their conversion.
_MAX_WAITING: Final = 1000


class ConvertingWatch(WatchStream):
    """A watch stream that shows what it is offered later, in the same order."""

    def __init__(
        self,
        call: Call,
        dispatcher: Dispatcher,
        prefix: str,
        selection: Selection,
        shown: Representation,
        *,
        seconds: float,
        bookmarks: bool,
        view: str,
    ) -> None:
        super().__init__(
            dispatcher,
            prefix,
            selection,
            shown,
            seconds=seconds,
            bookmarks=bookmarks,
            view=view,
        )
        self._call = call
        self._within = continued()
        self._waiting: deque[tuple[Change, EventType]] = deque()
        self._offered = asyncio.Event()

    async def run(
        self, sender: Sender, after: int, initial: InitialState | None, *, mark_end: bool
    ) -> None:
        state = None if initial is None else self._converted(initial)

        async def follow() -> None:
            async with asyncio.TaskGroup() as tasks:
                pump = tasks.create_task(self._pump())
                try:
                    await super(ConvertingWatch, self).run(sender, after, state, mark_end=mark_end)
                finally:
                    pump.cancel()

        await self._within(follow)

    def _converted(self, initial: InitialState) -> InitialState:
        async def state() -> AsyncIterator[tuple[int, Items]]:
            async for revision, items in initial():
                await prefetch(self._call, items)
                yield revision, items

        return state

    def offer(self, change: Change) -> bool:
        if change.event.revision <= self._after:
            return False
        kind = watch_event_type(self._selection, change)
        if kind is not None:
            self._waiting.append((change, kind))
            self._offered.set()
            if len(self._waiting) > _MAX_WAITING:
                self.expire(change.event.revision)
        # Nothing to send yet.
        return False

    async def _pump(self) -> None:
        while True:
            await self._offered.wait()
            self._offered.clear()
            while self._waiting:
                change, kind = self._waiting.popleft()
                try:
                    await completed(partial(self._show, change, kind))
                except ApiError as error:
                    self._send_error(error)
                    self._end()
                    return
                forget()
                self.flush()

    async def _show(self, change: Change, kind: EventType) -> None:
        self._lines.append(change.frame(self._form, kind))
        self._form = self._later_form
