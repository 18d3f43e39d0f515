"""What a credential was found to mean, for a while and no longer than it lasts."""

from __future__ import annotations

from datetime import timedelta

from skerry.kit.clock import LoopClock
from skerry.server.security import remembered
from skerry.server.security.remembered import Remembered
from skerry.server.user import User
from tests.kit.sim.loop import virtual

ADA = User("ada")


@virtual
async def test_a_user_is_remembered_for_a_while() -> None:
    clock = LoopClock()
    users: Remembered[str] = Remembered(clock, 10)
    users.put("token", ADA, clock.now() + timedelta(hours=1))
    assert users.get("token") is ADA
    assert users.get("other") is None
    await clock.sleep(11)
    assert users.get("token") is None
    assert "token" in users, "it was good a while ago"


@virtual
async def test_no_longer_than_the_credential_lasts() -> None:
    clock = LoopClock()
    users: Remembered[str] = Remembered(clock, 10)
    users.put("token", ADA, clock.now() + timedelta(seconds=3))
    users.put("gone", ADA, clock.now() - timedelta(seconds=1))
    assert users.get("gone") is None
    await clock.sleep(4)
    assert users.get("token") is None


@virtual
async def test_it_is_bounded_and_starts_over_when_full() -> None:
    clock = LoopClock()
    users: Remembered[int] = Remembered(clock, 10)
    later = clock.now() + timedelta(hours=1)
    for number in range(remembered.MAX_REMEMBERED):
        users.put(number, ADA, later)
    assert users.get(0) is ADA
    users.put(-1, ADA, later)
    assert users.get(0) is None
    assert users.get(-1) is ADA
    users.clear()
    assert -1 not in users
