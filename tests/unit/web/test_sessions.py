"""Codes are good once and for a minute; sessions end with their time and with their credential."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from skerry.api.errors import Forbidden, TooManyRequests, Unauthorized
from skerry.kit.ids import SeededIds
from skerry.server.user import User
from skerry.web.session_files import SessionFiles
from skerry.web.sessions import Kept, Session, Sessions

ALICE = User("alice", groups=("staff",))


@dataclass
class Hands:
    """A clock that is set by hand."""

    at: float = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.at)

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


@dataclass
class Shown:
    """A credential whose user can be changed."""

    whom: User | None = ALICE

    async def user(self) -> User:
        if self.whom is None:
            raise Unauthorized
        return self.whom

    def packed(self) -> bytes:
        return b"alice's token"


@dataclass
class Place:
    clock: Hands = field(default_factory=Hands)
    ended: list[tuple[str, str]] = field(default_factory=list)
    kept: Kept | None = None

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.clock, SeededIds(1), self.note, self.kept)

    def note(self, session: Session, reason: str) -> None:
        self.ended.append((session.user.name, reason))


async def test_a_code_is_spent_by_being_shown() -> None:
    place = Place()
    code, expires = place.sessions.issue(ALICE, Shown())
    assert expires - place.clock.now() == timedelta(seconds=60)
    secret, session = await place.sessions.redeem(code, "127.0.0.1")
    assert (await place.sessions.find(secret)) is session
    with pytest.raises(Unauthorized, match="used already"):
        await place.sessions.redeem(code, "127.0.0.1")


@pytest.mark.parametrize("code", ["", "x", "A" * 10_000, "\udc80"])
async def test_a_code_that_nobody_gave_is_refused(code: str) -> None:
    place = Place()
    place.sessions.issue(ALICE, Shown())
    with pytest.raises(Unauthorized):
        await place.sessions.redeem(code, "")


async def test_a_code_is_good_for_a_minute() -> None:
    place = Place()
    code, _ = place.sessions.issue(ALICE, Shown())
    place.clock.at = 60
    with pytest.raises(Unauthorized, match="older than a minute"):
        await place.sessions.redeem(code, "")


async def test_a_code_is_bound_to_its_user_and_credential() -> None:
    place, shown = Place(), Shown()
    code, _ = place.sessions.issue(ALICE, shown)
    shown.whom = User("mallory")
    with pytest.raises(Unauthorized, match="another user's"):
        await place.sessions.redeem(code, "")
    code, _ = place.sessions.issue(ALICE, shown)
    shown.whom = None
    with pytest.raises(Unauthorized):
        await place.sessions.redeem(code, "")


async def test_a_session_ends_after_eight_hours_however_busy() -> None:
    place = Place()
    secret, _ = place.sessions.begin(ALICE, Shown(), "")
    for _ in range(8 * 4 - 1):
        place.clock.at += 15 * 60
        await place.sessions.find(secret)
    place.clock.at += 15 * 60
    with pytest.raises(Unauthorized, match="eight hours"):
        await place.sessions.find(secret)
    assert place.ended == [("alice", "eight hours are over")]


async def test_a_session_that_nobody_uses_for_thirty_minutes_ends_by_itself() -> None:
    place, closed = Place(), list[str]()
    secret, session = place.sessions.begin(ALICE, Shown(), "")
    session.closing.add(closed.append)
    place.clock.at = 30 * 60 - 1
    place.sessions.expire()
    assert not closed
    place.clock.at += 1
    place.sessions.expire()
    assert closed == ["nothing was done for thirty minutes"]
    with pytest.raises(Unauthorized, match="no session"):
        await place.sessions.find(secret)


async def test_a_session_ends_with_its_credential() -> None:
    place, shown = Place(), Shown()
    secret, session = place.sessions.begin(ALICE, shown, "")
    shown.whom = User("alice", groups=("staff", "owners"))
    assert (await place.sessions.find(secret)).user.groups == ("staff", "owners")
    shown.whom = None
    with pytest.raises(Unauthorized, match="credential no longer holds"):
        await place.sessions.check(session)
    assert list(place.sessions.all()) == []


async def test_a_session_ends_when_its_user_may_no_longer_act_as_another() -> None:
    """A credential that impersonates is refused as forbidden once that right is gone."""

    class Withdrawn(Shown):
        async def user(self) -> User:
            raise Forbidden("users 'alice' is forbidden: User 'root' cannot impersonate")

    place = Place()
    _, session = place.sessions.begin(ALICE, Withdrawn(), "")
    with pytest.raises(Unauthorized, match="credential no longer holds"):
        await place.sessions.check(session)
    assert list(place.sessions.all()) == []


async def test_one_user_sends_so_many_frames_in_however_many_sessions() -> None:
    place = Place()
    _, first = place.sessions.begin(ALICE, Shown(), "")
    _, second = place.sessions.begin(ALICE, Shown(), "")
    _, other = place.sessions.begin(User("bob"), Shown(User("bob")), "")
    rate = place.sessions.rate(first)
    assert place.sessions.rate(second) is rate
    assert place.sessions.rate(other) is not rate
    place.sessions.end(first, "")
    assert place.sessions.rate(second) is rate
    place.sessions.end(second, "")
    _, again = place.sessions.begin(ALICE, Shown(), "")
    assert place.sessions.rate(again) is not rate


async def test_one_user_has_a_bounded_number_of_codes_and_sessions() -> None:
    place = Place()
    for _ in range(16):
        place.sessions.issue(ALICE, Shown())
    with pytest.raises(TooManyRequests):
        place.sessions.issue(ALICE, Shown())
    place.sessions.issue(User("bob"), Shown(User("bob")))
    place.clock.at = 61
    place.sessions.issue(ALICE, Shown())
    for _ in range(40):
        place.clock.at += 1
        place.sessions.begin(ALICE, Shown(), "")
    assert len(list(place.sessions.all())) == 32
    assert place.ended[0] == ("alice", "there are too many of this user")


@dataclass
class Hub:
    """A server that starts again and again over the same files."""

    folder: Path
    clock: Hands = field(default_factory=Hands)
    shown: Shown = field(default_factory=Shown)
    unpacked: list[bytes] = field(default_factory=list)

    def start(self) -> Place:
        return Place(self.clock, kept=Kept(SessionFiles(self.folder), self.thaw))

    def thaw(self, packed: bytes) -> Shown:
        self.unpacked.append(packed)
        return self.shown


async def test_a_session_outlives_the_process(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    secret, session = hub.start().sessions.begin(ALICE, Shown(), "127.0.0.1")
    again = hub.start()
    assert [each.id for each in again.sessions.all()] == [session.id]
    assert hub.unpacked == []
    found = await again.sessions.find(secret)
    assert (found.id, found.user, found.ends) == (session.id, ALICE, session.ends)
    assert hub.unpacked == [b"alice's token"]
    with pytest.raises(Unauthorized):
        await again.sessions.find("another")


async def test_a_session_that_was_revoked_stays_ended_in_the_next_process(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    first = hub.start().sessions
    secret, session = first.begin(ALICE, Shown(), "")
    first.end(session, "revoked")
    with pytest.raises(Unauthorized):
        await hub.start().sessions.find(secret)
    secret, _ = first.begin(ALICE, Shown(), "")
    again = hub.start().sessions
    (asleep,) = again.all()
    again.end(asleep, "revoked before its browser came back")
    with pytest.raises(Unauthorized):
        await hub.start().sessions.find(secret)


async def test_time_passes_for_a_session_while_no_process_runs(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    place = hub.start()
    secret, _ = place.sessions.begin(ALICE, Shown(), "")
    hub.clock.at = 20 * 60
    await place.sessions.find(secret)
    place.sessions.expire()
    hub.clock.at = 49 * 60
    assert len(list(hub.start().sessions.all())) == 1
    hub.clock.at = 50 * 60
    assert hub.start().ended == [("alice", "nothing was done for thirty minutes")]
    with pytest.raises(Unauthorized):
        await hub.start().sessions.find(secret)


async def test_a_kept_session_ends_with_its_credential(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    secret, _ = hub.start().sessions.begin(ALICE, Shown(), "")
    hub.shown.whom = None
    again = hub.start().sessions
    with pytest.raises(Unauthorized, match="credential no longer holds"):
        await again.find(secret)
    assert list(tmp_path.iterdir()) == []
