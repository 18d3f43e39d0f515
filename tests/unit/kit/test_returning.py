"""How long the clients of a server that was away spread."""

from __future__ import annotations

import pytest

from skerry.kit.returning import MAX_RETURN_SECONDS, RETURNS_PER_SECOND, return_seconds


@pytest.mark.parametrize("clients", [0, 1, 170, 1000, 9500])
def test_clients_spread_so_that_no_more_than_a_servers_pace_come_in_a_second(clients: int) -> None:
    assert return_seconds(clients) == pytest.approx(clients / RETURNS_PER_SECOND, abs=0.05)


def test_however_many_there_are_nobody_waits_for_more_than_a_minute() -> None:
    assert return_seconds(1_000_000) == MAX_RETURN_SECONDS
