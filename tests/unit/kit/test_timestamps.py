"""Time stamps are spelled as the standard library would spell them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.timestamps import parse_rfc3339, rfc3339, rfc3339_micro

MOMENTS = st.datetimes(
    min_value=datetime(1000, 1, 2),  # noqa: DTZ001 - hypothesis wants naive bounds
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.integers(-720, 840).map(lambda m: timezone(timedelta(minutes=m))),
)


@given(MOMENTS)
def test_a_moment_is_reported_in_utc_with_whole_seconds_or_six_decimals(moment: datetime) -> None:
    in_utc = moment.astimezone(UTC)
    assert rfc3339_micro(moment) == f"{in_utc:%Y-%m-%dT%H:%M:%S.%f}Z"
    assert parse_rfc3339(rfc3339(moment)) == in_utc.replace(microsecond=0)
