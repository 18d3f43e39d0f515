"""Go's durations, read in one pass."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.durations import (
    DurationError,
    duration_of,
    format_duration,
    parse_duration,
)
from tests.kit.counting import growth

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0), ("-0", 0), ("1s", SECOND), ("1h30m", 5400 * SECOND), ("-1.5h", -5400 * SECOND),
        (".5s", SECOND // 2), ("1.s", SECOND), ("+5ns", 5), ("1µs", 1000), ("1μs", 1000),
        ("1m1ms", 60 * SECOND + 1_000_000), ("0000001s", SECOND),
        ("2562047h47m16.854775807s", 2**63 - 1),
        ("0.0000000001s", 0), ("1.00000000000000000000000000001s", SECOND),
    ],
)  # fmt: skip
def test_a_duration_means_what_it_means_in_go(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("1", 'time: missing unit in duration "1"'),
        ("1h2", 'time: missing unit in duration "1h2"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("2562048h", 'time: invalid duration "2562048h"'),
        ("9" * 30 + "s", f'time: invalid duration "{"9" * 30}s"'),
        ("٣s", 'time: invalid duration "٣s"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, complaint: str) -> None:
    with pytest.raises(DurationError) as refused:
        parse_duration(text)
    assert str(refused.value) == complaint


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 999))
def test_parts_add_up(hours: int, minutes: int, milliseconds: int) -> None:
    found = parse_duration(f"{hours}h{minutes}m{milliseconds}ms")
    assert found == (hours * 3600 + minutes * 60) * SECOND + milliseconds * 1_000_000


@given(st.text(alphabet="0123456789.hmsnuµ+- ", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_duration(text)
    except DurationError:
        return


@pytest.mark.parametrize("text", ["0", "1", "0.", ".0", "1s", "0s", "00x", "h", "1.1s"])
def test_work_grows_with_the_text(text: str) -> None:
    def attempt(size: int) -> object:
        try:
            return parse_duration(text * size)
        except DurationError as error:
            return error

    assert growth(lambda n: lambda: attempt(n), 200) < 2.2


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(minutes=90), "1h30m"),
        (timedelta(seconds=5), "5s"),
        (timedelta(), "0s"),
        (timedelta(days=2, milliseconds=999), "48h"),
    ],
)
def test_a_duration_is_written_as_people_write_it(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.integers(0, 10**9))
def test_whole_seconds_are_read_as_they_are_written(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert duration_of(format_duration(duration)) == duration
