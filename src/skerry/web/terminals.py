"""The programs that a tab has terminals of: a few at once, each a session of its own.

A terminal ends with its program, its tab or its login, and when nobody types for half an hour;
it does not come back by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from skerry.api.errors import ApiError, BadRequest, Gone
from skerry.kit.clock import Clock
from skerry.logic.fleet.console.frames import MAX_TERMINALS, End, Run, TerminalFrame, Typed
from skerry.server.user import User
from skerry.web.desk import Desk
from skerry.web.terminal import Say, TabTerminal

# As long as a login may be idle: typing in one tab keeps that up, not the terminals of others.
IDLE_SECONDS: Final = 30 * 60.0

# (verb, kind, who, the code of the answer): each view and question is audited like a request.
Audit = Callable[[str, str, User, int], None]


class _Running:
    """A terminal, whose it is, the task that runs its program, and when somebody last typed."""

    def __init__(self, terminal: TabTerminal, user: User, now: float) -> None:
        self.terminal = terminal
        self.user = user
        self.task: asyncio.Task[None] | None = None
        self.used = now
        # Why it was ended from here; nothing where the page itself ended it.
        self.reason: ApiError | None = None

    def end(self, reason: ApiError | None = None) -> None:
        self.reason = self.reason or reason
        if self.task is not None:
            self.task.cancel()


class Terminals:
    """The terminals of one tab."""

    def __init__(self, desk: Desk, clock: Clock, audit: Audit, say: Say) -> None:
        self._desk = desk
        self._clock = clock
        self._audit = audit
        self._say = say
        self._running: dict[int, _Running] = {}

    def end(self) -> None:
        """End all of them, with the tab."""
        for each in self._running.values():
            each.end()

    def end_idle(self) -> None:
        """End those in which nobody typed for long; somebody calls this now and then."""
        now = self._clock.monotonic()
        for each in self._running.values():
            if now - each.used >= IDLE_SECONDS:
                each.end(Gone("the session was ended: nothing was typed for thirty minutes"))

    def end_others(self, user: User) -> None:
        """End those that were begun with other groups than *user* is in by now."""
        for each in self._running.values():
            if each.user.groups != user.groups:
                each.end(Gone("the session was ended: you are in other groups by now"))

    def run(self, frame: Run, user: User, tasks: asyncio.TaskGroup) -> None:
        """Begin a program of *user*'s; it ends with *tasks*."""
        number = frame.id
        if number in self._running:
            raise BadRequest("run: this terminal has a program already")
        if len(self._running) >= MAX_TERMINALS:
            raise BadRequest(f"run: a tab has at most {MAX_TERMINALS} terminals: close one")
        begun = [False]

        def begin() -> None:
            begun[0] = True
            self._audit("create", frame.kind, user, 200)

        terminal = TabTerminal(number, frame.size, self._say, begin)
        running = _Running(terminal, user, self._clock.monotonic())

        async def run() -> None:
            try:
                code = await self._desk.program(frame.kind)(user, frame.given, terminal)
                self._say({"id": number, "exit": code})
            except ApiError as error:
                if not begun[0]:
                    self._audit("create", frame.kind, user, error.code)
                self._refuse(number, error)
            finally:
                del self._running[number]
                if running.reason is not None:
                    self._refuse(number, running.reason)

        self._running[number] = running
        running.task = tasks.create_task(run())

    def hear(self, frame: TerminalFrame) -> None:
        """Take what the page says of a terminal; one that has ended hears nothing."""
        running = self._running.get(frame.id)
        if running is None:
            return
        if isinstance(frame, End):
            running.end()
            return
        if isinstance(frame, Typed) and not frame.answered:
            running.used = self._clock.monotonic()
        try:
            running.terminal.hear(frame)
        except BadRequest as error:
            self.fail(frame.id, error)

    def fail(self, number: int | None, error: ApiError) -> bool:
        """End a terminal whose page says what cannot be understood; tell whether there is one."""
        running = None if number is None else self._running.get(number)
        if running is not None:
            running.end(error)
        return running is not None

    def _refuse(self, number: int, error: ApiError) -> None:
        self._say({"id": number, "error": error.status()})
