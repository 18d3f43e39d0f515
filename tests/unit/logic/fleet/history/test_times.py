"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from skerry.logic.fleet.history.times import NoTime, moment_of

OSLO = timezone(timedelta(hours=2))
NOW = datetime(2026, 9, 1, 15, 0, 30, tzinfo=OSLO)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("14:05", datetime(2026, 9, 1, 14, 5, tzinfo=OSLO)),
        ("9:05:07", datetime(2026, 9, 1, 9, 5, 7, tzinfo=OSLO)),
        ("2h", NOW - timedelta(hours=2)),
        ("1d2h3m4s", NOW - timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("2026-08-31T12:00:00Z", datetime(2026, 8, 31, 12, tzinfo=UTC)),
        ("2026-08-31T12:00:00+02:00", datetime(2026, 8, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_time_is_understood(text: str, wanted: datetime) -> None:
    assert moment_of(text, NOW) == wanted


@pytest.mark.parametrize(
    "text",
    ["yesterday", "", "25:00", "14:60", "2 h", "-2h", "2026-08-31T12:00:00", "h", "99999999d"],
)
def test_anything_else_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(NoTime, match=r"no time|longer ago"):
        moment_of(text, NOW)
