"""The terminals of one tab: begun, refused, audited, and ended by whatever ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from skerry.api.errors import BadRequest, Forbidden
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.console.frames import MAX_TERMINALS, End, Run, Shown, Typed
from skerry.server.user import User
from skerry.web.desk import Desk
from skerry.web.terminal import TabTerminal
from skerry.web.terminals import IDLE_SECONDS, Terminals

ALICE = User("alice")


class Place:
    """A tab's terminals, what it was sent, and what was audited."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self.audited: list[tuple[str, str, str, int]] = []
        self.ended: list[str] = []
        programs = {"echo": self.echo, "refused": self.refused}
        desk = Desk(programs=programs)
        self.terminals = Terminals(desk, LoopClock(), self.audit, self.sent.append)

    def audit(self, verb: str, kind: str, user: User, code: int) -> None:
        self.audited.append((verb, kind, user.name, code))

    async def echo(self, user: User, given: Mapping[str, Any], terminal: TabTerminal) -> int:
        """Print what is typed; Ctrl-D ends it."""
        terminal.begin(str(given["pod"]))
        try:
            async for text in terminal.typed():
                if text == b"\x04":
                    return 3
                await terminal.show(text, error=False)
        finally:
            self.ended.append(user.name)
        raise AssertionError("typing has no end")

    async def refused(self, user: User, given: Mapping[str, Any], terminal: TabTerminal) -> int:
        raise Forbidden('cannot create resource "edges/exec"')

    def sentences(self) -> list[str]:
        return [each["error"]["message"] for each in self.sent if "error" in each]


def run(number: int, kind: str = "echo") -> Run:
    return Run(number, kind, {"pod": "web"}, (80, 24))


async def played(play: Callable[[Place, asyncio.TaskGroup], Awaitable[None]]) -> Place:
    place = Place()
    async with asyncio.TaskGroup() as tasks:
        await play(place, tasks)
        place.terminals.end()
    return place


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_program_is_run_typed_into_and_its_exit_code_said() -> None:
    async def play(place: Place, tasks: asyncio.TaskGroup) -> None:
        place.terminals.run(run(1), ALICE, tasks)
        place.terminals.hear(Typed(1, b"hi"))
        place.terminals.hear(Typed(1, b"\x04"))
        await turns()

    place = await played(play)
    assert place.sent == [
        {"id": 1, "running": {"pod": "web"}},
        {"id": 1, "out": "aGk="},
        {"id": 1, "taken": 2},
        {"id": 1, "exit": 3},
    ]
    assert place.audited == [("create", "echo", "alice", 200)]


async def test_a_refusal_is_said_and_audited() -> None:
    async def play(place: Place, tasks: asyncio.TaskGroup) -> None:
        place.terminals.run(run(1, "refused"), ALICE, tasks)
        place.terminals.run(run(2, "nothing"), ALICE, tasks)
        await turns()

    place = await played(play)
    assert place.audited[0] == ("create", "refused", "alice", 403)
    assert "edges/exec" in place.sentences()[0]
    assert "no program is called 'nothing'; there are echo, refused" in place.sentences()[1]


async def test_a_tab_has_few_terminals_and_each_one_program() -> None:
    async def play(place: Place, tasks: asyncio.TaskGroup) -> None:
        for number in range(MAX_TERMINALS):
            place.terminals.run(run(number), ALICE, tasks)
        with pytest.raises(BadRequest, match="has a program already"):
            place.terminals.run(run(0), ALICE, tasks)
        with pytest.raises(BadRequest, match="at most 4 terminals"):
            place.terminals.run(run(MAX_TERMINALS), ALICE, tasks)
        await turns()
        place.terminals.hear(End(0))
        await turns()
        place.terminals.run(run(MAX_TERMINALS), ALICE, tasks)

    place = await played(play)
    assert len(place.ended) >= MAX_TERMINALS
    assert place.sentences() == []


async def test_a_page_that_breaks_the_bounds_has_its_program_ended() -> None:
    async def play(place: Place, tasks: asyncio.TaskGroup) -> None:
        place.terminals.run(run(1), ALICE, tasks)
        await turns()
        place.terminals.hear(Shown(1, 5))
        await turns()
        # What has ended hears nothing, and says nothing.
        place.terminals.hear(Typed(1, b"hi"))
        assert not place.terminals.fail(1, BadRequest("typed: no base64"))

    place = await played(play)
    assert place.sentences() == ["shown: 5 bytes, of which 0 were sent"]
    assert place.ended == ["alice"]


@pytest.mark.looptime
async def test_a_terminal_in_which_nobody_types_for_long_is_ended() -> None:
    async def play(place: Place, tasks: asyncio.TaskGroup) -> None:
        for number in (1, 2):
            place.terminals.run(run(number), ALICE, tasks)
        await asyncio.sleep(IDLE_SECONDS / 2)
        place.terminals.hear(Typed(2, b"x"))
        # A program that asks where the cursor is keeps nothing open by that.
        place.terminals.hear(Typed(1, b"\x1b[1;1R", answered=True))
        await asyncio.sleep(IDLE_SECONDS / 2)
        place.terminals.end_idle()
        await turns()
        assert place.ended == ["alice"]

    place = await played(play)
    assert place.sentences() == ["the session was ended: nothing was typed for thirty minutes"]
