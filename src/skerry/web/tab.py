"""One tab of a browser: what it looks at, and what it is sent.

A tab is sent states, never events: at each turn what it looks at is compared with what it was
last sent. So a tab that reads slowly is sent less and nothing waits for it but one state; when it
can take more, it is sent the difference to what is true by then. A tab that takes nothing at all is
cut by the transport.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from skerry.api.errors import ApiError, BadRequest, ServiceUnavailable, Unauthorized
from skerry.kit.clock import Clock
from skerry.kit.rate import RateLimit
from skerry.logic.fleet.console.frames import (
    MAX_SUBSCRIPTIONS,
    PROTOCOL,
    Ask,
    Frame,
    FrameError,
    Run,
    Shown,
    Size,
    Subscribe,
    TerminalFrame,
    Typed,
    Unsubscribe,
    parse_frame,
)
from skerry.server.streaming.websocket import WebSocket, WebSocketClosed
from skerry.server.user import User
from skerry.web.desk import Desk, Subscription
from skerry.web.pace import Pace
from skerry.web.sessions import Session, Sessions
from skerry.web.terminals import Audit, Terminals

# A tab whose socket still holds this much is sent nothing.
_MAX_QUEUED_BYTES = 256 * 1024
# How often the credential of an open tab is asked about; as long as tokens are remembered.
_CHECK_SECONDS = 10.0
# An edit of ten objects that reach ten thousand edges each; no page shows more.
MAX_ANSWER_BYTES = 16_000_000
# Questions of one tab that are being answered at once.
_MAX_QUESTIONS = 8
# Of who sent more frames than a person would (``sessions``).
_PAUSE_SECONDS = 0.1
# Of terminals: a page sends what is typed once for each time it draws, and notes what it has shown.
_TERMINAL_FRAMES_PER_SECOND, _TERMINAL_FRAMES_BURST = 200, 400


@dataclass(slots=True)
class _Open:
    """A subscription, for whom it was opened, and what the tab has of it."""

    frame: Subscribe
    user: User
    subscription: Subscription
    version: object = None
    sent: Mapping[str, Any] | None = None
    revision: int = 0


class Tab:
    """One WebSocket. ``run`` ends when the tab leaves or its session ends."""

    def __init__(
        self,
        socket: WebSocket,
        session: Session,
        sessions: Sessions,
        desk: Desk,
        pace: Pace,
        clock: Clock,
        audit: Audit,
    ) -> None:
        self._socket = socket
        self._session = session
        self._sessions = sessions
        self._desk = desk
        self._pace = pace
        self._clock = clock
        self._audit = audit
        self._open: dict[int, _Open] = {}
        # What it took of the loop to make what was sent since the last turn.
        self._spent = 0.0
        self._terminal_frames = RateLimit(
            per_second=_TERMINAL_FRAMES_PER_SECOND, burst=_TERMINAL_FRAMES_BURST
        )
        self._terminals = Terminals(desk, clock, audit, self._say)
        self._answers: set[asyncio.Task[None]] = set()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve the tab until it is gone."""
        self._session.closing.add(self._end)
        self._pace.tabs += 1
        hello = {"protocol": PROTOCOL, "user": self._session.user.name, **await self._desk.facts()}
        self._say({"hello": hello})
        try:
            async with asyncio.TaskGroup() as tasks:
                work = [
                    tasks.create_task(self._pushing()),
                    tasks.create_task(self._checking()),
                    tasks.create_task(self._reading(tasks)),
                ]
                reason = await self._ended
                for task in (*work, *self._answers):
                    task.cancel()
                self._terminals.end()
            if reason:
                self._say({"bye": {"reason": reason}})
            self._socket.close()
        finally:
            self._session.closing.discard(self._end)
            self._pace.tabs -= 1
            for each in self._open.values():
                each.subscription.close()

    def _end(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    async def _reading(self, tasks: asyncio.TaskGroup) -> None:
        try:
            while True:
                text = await self._socket.receive()
                try:
                    frame: Frame | None = parse_frame(text)
                except FrameError as error:
                    frame = None
                    if not self._terminals.fail(error.id, error):
                        self._refuse(error.id, error)
                of_terminal = isinstance(frame, TerminalFrame)
                rate = self._terminal_frames if of_terminal else self._sessions.rate(self._session)
                while not rate.allows(self._clock.monotonic()):
                    await self._clock.sleep(_PAUSE_SECONDS)
                if not _is_by_itself(frame):
                    self._sessions.use(self._session)
                if frame is not None:
                    await self._hear(frame, tasks)
        except (WebSocketClosed, ConnectionError):
            self._end("")

    async def _hear(self, frame: Frame, tasks: asyncio.TaskGroup) -> None:
        match frame:
            case Run(number):
                try:
                    self._terminals.run(frame, self._session.user, tasks)
                except BadRequest as error:
                    self._refuse(number, error)
            case Unsubscribe(number):
                self._close(number)
            case Subscribe():
                await self._subscribe(frame)
            case Ask(number):
                if len(self._answers) >= _MAX_QUESTIONS:
                    self._refuse(number, BadRequest("ask: wait for the answers to your questions"))
                    return
                task = tasks.create_task(self._answer(frame))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
            case _:
                self._terminals.hear(frame)

    def _close(self, number: int) -> None:
        known = self._open.pop(number, None)
        if known is not None:
            known.subscription.close()

    async def _subscribe(self, frame: Subscribe) -> None:
        before = self._open.get(frame.id)
        self._close(frame.id)
        try:
            if len(self._open) >= MAX_SUBSCRIPTIONS:
                raise BadRequest(f"sub: a tab has at most {MAX_SUBSCRIPTIONS} subscriptions")
            each = await self._opened(frame)
        except ApiError as error:
            self._audit("watch", frame.kind, self._session.user, error.code)
            self._refuse(frame.id, error)
            return
        self._open[frame.id] = each
        if before is not None and before.frame.kind == frame.kind and before.sent is not None:
            # Another filter or window: what the tab has of the one before need not be sent again.
            each.sent, each.revision = before.sent, before.revision
        # The first sight of a view is not kept waiting for the next turn.
        await self._send_changes(frame.id, each, replaced=each.sent is not None)

    async def _opened(self, frame: Subscribe) -> _Open:
        """Open a view for whom the session is of by now."""
        user = self._session.user
        subscription = await self._desk.opening(frame.kind)(user, frame.view)
        self._audit("watch", frame.kind, user, 200)
        return _Open(frame, user, subscription)

    async def _reopen(self, number: int, before: _Open) -> None:
        """Open a view anew for somebody who is in other groups by now."""
        try:
            each = await self._opened(before.frame)
        except ApiError as error:
            self._audit("watch", before.frame.kind, self._session.user, error.code)
            if self._open.get(number) is before:
                self._close(number)
                self._refuse(number, error)
            return
        if self._open.get(number) is not before:
            # Replaced or ended meanwhile.
            each.subscription.close()
            return
        before.subscription.close()
        each.sent, each.revision = before.sent, before.revision
        self._open[number] = each
        await self._send_changes(number, each)

    async def _answer(self, frame: Ask) -> None:
        user = self._session.user
        code = 200
        try:
            answer = await self._desk.question(frame.kind)(user, frame.given)
            text = _text({"id": frame.id, "set": answer})
            if len(text) > MAX_ANSWER_BYTES:
                raise BadRequest(
                    f"the answer would be of {len(text) // 1_000_000} MB, at most "
                    f"{MAX_ANSWER_BYTES // 1_000_000} are sent: ask about less at once"
                )
            self._socket.send_text(text)
        except ApiError as error:
            code = error.code
            self._refuse(frame.id, error)
        self._audit("get", frame.kind, user, code)

    async def _pushing(self) -> None:
        due, rights = 0.0, self._desk.rights()
        while True:
            await self._clock.sleep(self._pace.seconds)
            before, rights = rights, self._desk.rights()
            # Whatever it takes, nobody goes on seeing what they may no longer see.
            if self._clock.monotonic() < due and rights == before:
                continue
            if self._socket.queued_bytes <= _MAX_QUEUED_BYTES:
                await self._turn()
            spent, self._spent = self._spent, 0.0
            due = self._clock.monotonic() + self._pace.pause(spent)
            with contextlib.suppress(ConnectionError):
                await self._socket.drain()

    async def _turn(self) -> None:
        """Send what has changed of everything that is looked at."""
        for number, each in list(self._open.items()):
            if each.user != self._session.user:
                await self._reopen(number, each)
            else:
                await self._send_changes(number, each)
            # Others are served between two views.
            await asyncio.sleep(0)

    async def _send_changes(self, number: int, each: _Open, *, replaced: bool = False) -> None:
        """Send what has changed of a subscription since it was last sent.

        A view that replaced another is said to be the new one, also where they look the same.
        """
        settled = self._desk.settled
        version = await settled(each.subscription.version)
        if each.sent is not None and version == each.version and not replaced:
            return
        try:
            content = await settled(lambda: self._made(each))
        except ApiError as error:
            # Rights that went, an object that is gone: the tab is notified once, and asks again.
            if self._open.get(number) is each:
                self._close(number)
                self._refuse(number, error)
            return
        if self._open.get(number) is not each:
            # Replaced while somebody found out what it may show.
            return
        each.version = version
        if each.sent is None:
            each.revision += 1
            self._say({"id": number, "rev": each.revision, "set": content})
        elif (patch := each.subscription.patch(each.sent, content)) or replaced:
            each.revision += 1
            new = {"new": True} if replaced else {}
            self._say({"id": number, "rev": each.revision, "patch": patch, **new})
        each.sent = content

    def _made(self, each: _Open) -> Mapping[str, Any]:
        began = self._clock.monotonic()
        try:
            return each.subscription.content()
        finally:
            self._spent += self._clock.monotonic() - began

    async def _checking(self) -> None:
        """End with the session's credential, also when nobody does anything."""
        while True:
            await self._clock.sleep(_CHECK_SECONDS)
            self._terminals.end_idle()
            with contextlib.suppress(Unauthorized, ServiceUnavailable):
                self._terminals.end_others(await self._sessions.check(self._session))

    def _refuse(self, number: int | None, error: ApiError) -> None:
        self._say({"id": number, "error": error.status()})

    def _say(self, frame: Mapping[str, Any]) -> None:
        self._socket.send_text(_text(frame))


def _is_by_itself(frame: Frame | None) -> bool:
    """Tell whether a page says this without anybody there: programs print, and ask terminals."""
    return isinstance(frame, Shown | Size) or (isinstance(frame, Typed) and frame.answered)


def _text(frame: Mapping[str, Any]) -> str:
    return orjson.dumps(frame, option=orjson.OPT_NON_STR_KEYS).decode()
