"""A tab is sent states: what it looks at, when it changes, and never more than it can take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, TextMessage

from skerry.api.errors import Forbidden, NotFound
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.server.streaming.websocket import WebSocket
from skerry.server.user import User
from skerry.web.desk import Desk, Subscription, members_patch
from skerry.web.pace import Pace
from skerry.web.sessions import Sessions
from skerry.web.tab import MAX_ANSWER_BYTES, Tab
from skerry.web.terminal import TabTerminal

ALICE = User("alice")


@dataclass
class Line:
    """A browser's end of a connection, in memory; *queued_bytes* is what it has not taken."""

    queued_bytes: int = 0
    closed: bool = False
    _framing: Connection = field(default_factory=lambda: Connection(ConnectionType.CLIENT))
    frames: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    _sent: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)

    def write(self, chunk: bytes) -> None:
        self._framing.receive_data(chunk)
        for event in self._framing.events():
            if isinstance(event, TextMessage):
                self.frames.put_nowait(orjson.loads(event.data))
            elif isinstance(event, CloseConnection):
                self.frames.put_nowait(None)

    async def drain(self) -> None:
        return

    async def read(self) -> bytes:
        return await self._sent.get()

    def say(self, frame: Any) -> None:
        self._sent.put_nowait(self._framing.send(TextMessage(orjson.dumps(frame).decode())))

    def leave(self) -> None:
        self._sent.put_nowait(self._framing.send(CloseConnection(1001)))


@dataclass
class Holds:
    whom: User = ALICE

    async def user(self) -> User:
        return self.whom

    def packed(self) -> bytes:
        return b""


@dataclass
class Counter:
    """Something to look at."""

    value: int = 0
    gone: bool = False
    closed: bool = False
    looked: int = 0
    cost: Callable[[], None] = lambda: None

    def version(self) -> object:
        return self.value, self.gone

    def content(self) -> Mapping[str, Any]:
        self.looked += 1
        self.cost()
        if self.gone:
            raise NotFound("it is gone")
        return {"value": self.value, "same": "always"}

    def patch(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Mapping[str, Any]:
        return members_patch(before, after)

    def close(self) -> None:
        self.closed = True


@dataclass
class Place:
    counter: Counter = field(default_factory=Counter)
    line: Line = field(default_factory=Line)
    audited: list[tuple[str, str, str, int]] = field(default_factory=list)
    holds: Holds = field(default_factory=Holds)
    clock: LoopClock = field(default_factory=LoopClock)
    rights: int = 0

    async def opened(self, _: User, __: Mapping[str, Any]) -> Subscription:
        return self.counter

    async def grouped(self, user: User, _: Mapping[str, Any]) -> Subscription:
        """Show somebody how many groups they are in; who is in none may not look."""
        if not user.groups:
            raise Forbidden("you may not look")
        return Counter(len(user.groups))

    async def typing(self, _: User, __: Mapping[str, Any], terminal: TabTerminal) -> int:
        terminal.begin("web")
        async for _typed in terminal.typed():
            pass
        return 0

    async def doubled(self, _: User, given: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"doubled": given["n"] * 2}

    def audit(self, verb: str, kind: str, user: User, code: int) -> None:
        self.audited.append((verb, kind, user.name, code))

    def tab(self) -> Tab:
        clock = self.clock
        sessions = Sessions(clock, SeededIds(1), lambda *_: None)
        self.sessions, (_, self.session) = sessions, sessions.begin(ALICE, self.holds, "")
        desk = Desk(
            {"counter": self.opened, "groups": self.grouped},
            {"double": self.doubled},
            {"typing": self.typing},
            rights=lambda: self.rights,
        )
        socket = WebSocket(self.line)
        return Tab(socket, self.session, sessions, desk, Pace(clock), clock, self.audit)


async def run(place: Place, play: Any) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(place.tab().run())
        assert (await place.line.frames.get())["hello"]["user"] == "alice"
        await play()
        place.line.leave()
        await running


@pytest.mark.looptime
async def test_a_view_is_sent_whole_and_then_as_differences() -> None:
    place = Place()

    async def play() -> None:
        place.line.say({"id": 1, "sub": "counter", "view": {}})
        whole = {"value": 0, "same": "always"}
        assert await place.line.frames.get() == {"id": 1, "rev": 1, "set": whole}
        place.counter.value = 5
        assert await place.line.frames.get() == {"id": 1, "rev": 2, "patch": {"value": 5}}
        looked = place.counter.looked
        await asyncio.sleep(60)
        assert place.counter.looked == looked
        assert place.line.frames.empty()
        place.line.say({"id": 1, "unsub": True})

    await run(place, play)
    assert place.counter.closed
    assert place.audited == [("watch", "counter", "alice", 200)]


@pytest.mark.looptime
async def test_a_view_that_replaces_another_is_sent_as_their_difference() -> None:
    place = Place()

    async def play() -> None:
        place.line.say({"id": 1, "sub": "counter", "view": {}})
        await place.line.frames.get()
        place.line.say({"id": 1, "sub": "counter", "view": {"q": "same to see"}})
        same = {"id": 1, "rev": 2, "patch": {}, "new": True}
        assert await place.line.frames.get() == same
        place.counter.value = 3
        place.line.say({"id": 1, "sub": "counter", "view": {"q": "other"}})
        other = {"id": 1, "rev": 3, "patch": {"value": 3}, "new": True}
        assert await place.line.frames.get() == other
        place.counter.gone = True
        assert "error" in await place.line.frames.get()
        place.counter.gone = False
        place.line.say({"id": 1, "sub": "counter", "view": {}})
        assert (await place.line.frames.get())["set"] == {"value": 3, "same": "always"}

    await run(place, play)


@pytest.mark.looptime
async def test_a_tab_that_takes_nothing_is_sent_the_last_state_later() -> None:
    place = Place()

    async def play() -> None:
        place.line.say({"id": 1, "sub": "counter", "view": {}})
        await place.line.frames.get()
        place.line.queued_bytes = 10_000_000
        looked = place.counter.looked
        for value in range(1, 100):
            place.counter.value = value
            await asyncio.sleep(1)
        assert place.counter.looked == looked
        assert place.line.frames.empty()
        place.line.queued_bytes = 0
        assert (await place.line.frames.get())["patch"] == {"value": 99}

    await run(place, play)


@pytest.mark.looptime
async def test_a_view_that_ends_is_reported_once() -> None:
    place = Place()

    async def play() -> None:
        place.line.say({"id": 1, "sub": "counter", "view": {}})
        await place.line.frames.get()
        place.counter.gone = True
        frame = await place.line.frames.get()
        assert (frame["id"], frame["error"]["code"]) == (1, 404)
        await asyncio.sleep(60)
        assert place.line.frames.empty()

    await run(place, play)
    assert place.counter.closed


@pytest.mark.looptime
async def test_a_question_has_one_answer_and_subscriptions_are_bounded() -> None:
    place = Place()

    async def play() -> None:
        place.line.say({"id": 7, "ask": "double", "with": {"n": 21}})
        assert await place.line.frames.get() == {"id": 7, "set": {"doubled": 42}}
        for number in range(16):
            place.line.say({"id": number, "sub": "counter"})
            await place.line.frames.get()
        place.line.say({"id": 99, "sub": "counter"})
        assert "at most 16" in (await place.line.frames.get())["error"]["message"]

    await run(place, play)
    assert place.audited[-1] == ("watch", "counter", "alice", 400)


@pytest.mark.looptime
async def test_an_answer_that_no_page_can_show_is_refused_in_a_sentence() -> None:
    place = Place()

    async def play() -> None:
        place.line.say({"id": 7, "ask": "double", "with": {"n": "x" * (MAX_ANSWER_BYTES // 2)}})
        error = (await place.line.frames.get())["error"]
        assert "the answer would be of 16 MB" in error["message"]

    await run(place, play)
    assert place.audited == [("get", "double", "alice", 400)]


@pytest.mark.looptime
async def test_the_end_of_the_session_ends_the_tab_with_a_reason() -> None:
    place = Place()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(place.tab().run())
        await place.line.frames.get()
        place.sessions.end(place.session, "signed out")
        assert await place.line.frames.get() == {"bye": {"reason": "signed out"}}
        assert await place.line.frames.get() is None
        await running


class Costly(LoopClock):
    """A clock on which it takes time to make a view."""

    behind: float = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.behind

    def work(self) -> None:
        self.behind += 5


@pytest.mark.looptime
async def test_a_costly_view_is_sent_seldom_and_at_once_when_rights_change() -> None:
    clock = Costly()
    place = Place(Counter(cost=clock.work), clock=clock)

    async def play() -> None:
        loop = asyncio.get_running_loop()
        place.line.say({"id": 1, "sub": "counter"})
        await place.line.frames.get()
        place.counter.value = 1
        await place.line.frames.get()
        began = loop.time()
        place.counter.value = 2
        assert (await place.line.frames.get())["patch"] == {"value": 2}
        # The first sight and the first change took ten seconds, which are a quarter of forty.
        assert 38 < loop.time() - began < 41
        place.counter.value, place.rights = 3, 1
        assert (await place.line.frames.get())["patch"] == {"value": 3}
        assert loop.time() - began < 42

    await run(place, play)


@pytest.mark.looptime
async def test_a_tab_that_sends_very_many_frames_is_made_to_wait() -> None:
    place = Place()

    async def play() -> None:
        for _ in range(300):
            place.line.say({"id": 1, "sub": "counter"})
        began = asyncio.get_running_loop().time()
        for _ in range(300):
            await place.line.frames.get()
        # A hundred at once, the others twenty a second: in virtual time, so exactly so.
        assert asyncio.get_running_loop().time() - began >= 200 / 20 - 1

    await run(place, play)


@pytest.mark.looptime
async def test_who_is_in_other_groups_by_now_sees_what_those_may_see() -> None:
    """An issuer's next token may name fewer groups: what is open goes by them, not by the first."""
    place = Place()
    place.holds.whom = User("alice", groups=("staff", "owners"))

    async def play() -> None:
        await place.sessions.check(place.session)
        place.line.say({"id": 1, "sub": "groups"})
        assert (await place.line.frames.get())["set"]["value"] == 2
        place.holds.whom = User("alice", groups=("staff",))
        frame = await place.line.frames.get()
        assert (frame["id"], frame["patch"]) == (1, {"value": 1})
        place.holds.whom = User("alice")
        frame = await place.line.frames.get()
        assert (frame["id"], frame["error"]["code"]) == (1, 403)
        await asyncio.sleep(60)
        assert place.line.frames.empty()

    await run(place, play)
    assert place.audited[-1] == ("watch", "groups", "alice", 403)


@pytest.mark.looptime
async def test_a_terminal_ends_when_its_user_is_in_other_groups() -> None:
    place = Place()
    place.holds.whom = User("alice", groups=("owners",))

    async def play() -> None:
        await place.sessions.check(place.session)
        place.line.say({"id": 4, "run": "typing", "size": [80, 24]})
        assert (await place.line.frames.get())["running"] == {"pod": "web"}
        place.holds.whom = User("alice")
        frame = await place.line.frames.get()
        assert (frame["id"], frame["error"]["code"]) == (4, 410)
        assert "groups" in frame["error"]["message"]

    await run(place, play)
