"""Accounts of processor time: bursts are free, and who is over shares one rate with the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.server.accounts import Accounts, AccountSettings

SETTINGS = AccountSettings(rate=0.5, burst=1.0)


def accounts(**used: float) -> Accounts:
    made = Accounts(SETTINGS)
    for name, seconds in used.items():
        made.charge(name, seconds, 0.0)
    return made


def test_a_burst_is_free() -> None:
    made = accounts(ann=1.0)
    assert made.delay("ann", 0.0) == 0.0
    assert not made.over


def test_whoever_used_more_waits_until_the_account_has_drained_to_the_burst() -> None:
    made = accounts(ann=2.0)
    wait = made.delay("ann", 0.0)
    assert wait == pytest.approx(2.0)
    assert made.delay("ann", wait - 0.1) > 0.0
    assert made.delay("ann", wait) == 0.0
    assert not made.over


def test_nobody_waits_for_somebody_else() -> None:
    assert accounts(ann=5.0, ben=1.0).delay("ben", 0.0) == 0.0


def test_those_over_their_burst_share_one_rate() -> None:
    assert accounts(ann=2.0, ben=2.0).delay("ann", 0.0) == pytest.approx(4.0)


def test_who_was_over_and_never_came_back_has_no_share_of_the_rate_for_ever() -> None:
    made = accounts(**{f"gone-{number}": 1.01 for number in range(100)})
    made.charge("ann", 2.0, 1000.0)
    assert made.over == {"ann"}
    assert made.delay("ann", 1000.0) == pytest.approx(2.0)


def test_what_drained_is_forgotten_before_what_is_over() -> None:
    made = Accounts(SETTINGS)
    made.charge("heavy", 100.0, 0.0)
    for number in range(10_000):
        made.charge(f"stranger-{number}", 0.5, 0.0)
    assert made.delay("heavy", 0.0) > 0.0
    assert len(made._accounts) <= 4096


def test_no_more_is_kept_of_those_over_than_of_accounts() -> None:
    made = Accounts(SETTINGS)
    for number in range(10_000):
        made.charge(f"stranger-{number}", 2.0, 0.0)
    assert len(made.over) <= len(made._accounts) <= 4096


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 5.0)), max_size=20))
def test_alone_nobody_gets_more_than_the_burst_and_the_rate(
    requests: list[tuple[float, float]],
) -> None:
    """Whoever waits as asked and then uses what it likes has used, but for the last request, no
    more than burst and rate allow."""
    made, now, used = Accounts(SETTINGS), 0.0, 0.0
    for pause, seconds in requests:
        now += pause
        now += made.delay("ann", now)
        assert used <= SETTINGS.burst + SETTINGS.rate * now + 1e-6
        made.charge("ann", seconds, now)
        used += seconds
