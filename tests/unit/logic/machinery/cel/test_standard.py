"""CEL's standard functions: numbers that fit, texts that convert, times and their parts."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.cel.standard import (
    decoded_bytes,
    duration_text,
    timestamp_text,
    to_duration,
    to_string,
    to_timestamp,
    unsigned,
    whole,
)
from skerry.logic.machinery.cel.typed import CostExceeded
from skerry.logic.machinery.cel.values import EvaluationError
from tests.kit.machinery.expressions import complaint, computed

LEAST, MAX = -(1 << 63), (1 << 63) - 1
INTS = st.integers(LEAST, MAX)


@pytest.mark.parametrize("operator", ["+", "-", "*"])
@given(left=INTS, right=INTS)
def test_integers_are_exact_or_an_error(operator: str, left: int, right: int) -> None:
    exact = {"+": left + right, "-": left - right, "*": left * right}[operator]
    if LEAST <= exact <= MAX:
        assert computed(f"a {operator} b", a=left, b=right) == exact
    else:
        assert complaint(f"a {operator} b", a=left, b=right) == "integer overflow"


@given(left=INTS, right=INTS.filter(bool))
def test_division_truncates_and_the_remainder_has_the_sign_of_the_dividend(
    left: int, right: int
) -> None:
    if (left, right) == (LEAST, -1):
        assert complaint("a / b", a=left, b=right) == "integer overflow"
        return
    quotient, rest = computed("a / b", a=left, b=right), computed("a % b", a=left, b=right)
    assert quotient * right + rest == left
    assert abs(rest) < abs(right)
    assert rest == 0 or (rest < 0) == (left < 0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / 0", "division by zero"),
        ("1u / 0u", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("1u % 0u", "modulus by zero"),
        ("-(-9223372036854775807 - 1)", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("18446744073709551615u + 1u", "unsigned integer overflow"),
        ("18446744073709551615u * 2u", "unsigned integer overflow"),
        ("int(9.3e18)", "integer overflow"),
        ("int(0.0 / 0.0)", "integer overflow"),
        ("uint(-1.0)", "unsigned integer overflow"),
        ("uint(-0.5)", "unsigned integer overflow"),
        ("uint(-1)", "unsigned integer overflow"),
        ("int('1.5')", "type conversion error from 'string' to 'int'"),
        ("uint('-1')", "type conversion error from 'string' to 'uint'"),
        ("bool('yes')", "type conversion error from 'string' to 'bool'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("[1][1]", "index out of bounds: 1"),
        ("[1][-1]", "index out of bounds: -1"),
        ("[1][0.5]", "index out of bounds: 0.5"),
        ("[1][0.0 / 0.0]", "index out of bounds: nan"),
        ("[1][1.0 / 0.0]", "index out of bounds: inf"),
        ("{'a': 1}['b']", "no such key: b"),
    ],
)
def test_what_has_no_value_says_why(text: str, why: str) -> None:
    assert complaint(text) == why


@pytest.mark.parametrize("function", ["int", "uint"])
def test_a_number_of_thousands_of_digits_is_too_large_and_not_read(function: str) -> None:
    assert complaint(f"{function}(a)", a="9" * 5000).endswith("integer overflow")


@pytest.mark.parametrize("text", ["1_000", " 1", "1 ", "٣", "", "0x", "1" * 1025])
def test_a_double_is_written_as_go_reads_it(text: str) -> None:
    assert complaint("double(a)", a=text) == "type conversion error from 'string' to 'double'"


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("-1e3", -1000.0), ("Inf", math.inf)])
def test_doubles_are_read(text: str, value: float) -> None:
    assert computed("double(a)", a=text) == value


def test_doubles_divide_by_zero() -> None:
    assert computed("1.0 / 0.0") == math.inf
    assert computed("-1.0 / 0.0") == -math.inf
    assert math.isnan(computed("0.0 / 0.0"))


@given(left=st.one_of(INTS, st.floats(allow_nan=False)), right=INTS)
def test_numbers_compare_across_their_types(left: float, right: int) -> None:
    assert computed("a < b", a=left, b=right) == (left < right)
    assert computed("a >= b", a=left, b=right) == (left >= right)
    assert computed("a == b", a=left, b=right) == (left == right)


@given(INTS)
def test_numbers_survive_being_written(number: int) -> None:
    assert computed("int(string(a))", a=number) == number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (1.0, "1"),
        (1.5, "1.5"),
        (1000000.0, "1e+06"),
        (b"a", "a"),
        (7, "7"),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert to_string(value) == text


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2024, 3, 5, 1, 2, 3, tzinfo=UTC), "2024-03-05T01:02:03Z"),
        (datetime(2024, 3, 5, 1, 2, 3, 120000, tzinfo=UTC), "2024-03-05T01:02:03.12Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_written_in_rfc_3339(moment: datetime, text: str) -> None:
    assert timestamp_text(moment) == text
    assert to_timestamp(text) == moment


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_survive_being_written(moment: datetime) -> None:
    assert to_timestamp(timestamp_text(moment)) == moment


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1h30m", timedelta(minutes=90)),
        ("-1.5s", timedelta(seconds=-1.5)),
        ("+1s", timedelta(seconds=1)),
        ("0", timedelta()),
        ("100ms", timedelta(milliseconds=100)),
        ("1d", timedelta(days=1)),
    ],
)
def test_durations_are_read(text: str, span: timedelta) -> None:
    assert to_duration(text) == span


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1h 1m", "--1s", "+-1s", "٣s", "1x", "1" * 1025 + "s", "-"]
)
def test_what_is_no_duration_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationError, match="type conversion error from 'string' to 'duration'"):
        to_duration(text)


def test_a_duration_beyond_all_calendars_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="duration out of range"):
        to_duration("9" * 30 + "h")


@given(st.timedeltas(timedelta(days=-90_000), timedelta(days=90_000)).map(lambda d: d))
def test_durations_of_whole_seconds_survive_being_written(span: timedelta) -> None:
    seconds = timedelta(seconds=int(span.total_seconds()))
    assert to_duration(duration_text(seconds)) == seconds


@pytest.mark.parametrize(
    ("value", "why"),
    [("no", "timestamp"), ("2024-13-01", "timestamp"), ("x" * 1025, "timestamp"), (1 << 62, "")],
)
def test_what_is_no_time_is_an_error(value: str | int, why: str) -> None:
    with pytest.raises(EvaluationError, match=f"type conversion error.*{why}"):
        to_timestamp(value)


def test_fractions_finer_than_microseconds_are_cut() -> None:
    found = to_timestamp("2024-01-01T00:00:00.123456789Z")
    assert found.microsecond == 123456
    assert to_timestamp("2024-01-01") == datetime(2024, 1, 1, tzinfo=UTC)
    assert to_timestamp(0) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("getter", "value"),
    [
        ("getFullYear()", 2024),
        ("getMonth()", 2),
        ("getDayOfYear()", 64),
        ("getDayOfMonth()", 4),
        ("getDate()", 5),
        ("getDayOfWeek()", 2),
        ("getHours('+02:00')", 1),
        ("getHours('-02:30')", 21),
        ("getHours('Europe/Berlin')", 0),
        ("getMinutes()", 30),
        ("getSeconds()", 15),
        ("getMilliseconds()", 250),
    ],
)
def test_parts_of_a_time_count_from_zero_but_for_the_year_and_the_date(
    getter: str, value: int
) -> None:
    assert computed(f"timestamp('2024-03-05T23:30:15.25Z').{getter}") == value


@pytest.mark.parametrize("zone", ["99:00", "Mars/Olympus", "../etc/passwd", ""])
def test_an_unknown_zone_is_an_error(zone: str) -> None:
    text = "timestamp('2024-03-05T23:30:15Z').getHours(a)"
    assert complaint(text, a=zone) == f"unknown time zone {zone}"


def test_a_zone_that_leads_out_of_the_calendar_is_an_error() -> None:
    for text in ("timestamp('0001-01-01T00:00:00Z').getHours('-10:00')",
                 "timestamp('9999-12-31T23:59:59Z').getHours('+10:00')"):  # fmt: skip
        assert complaint(text) == "timestamp overflow"
    assert complaint("timestamp('9999-12-31T23:59:59Z') + duration('1h')") == "timestamp overflow"
    assert complaint("timestamp('0001-01-01T00:00:00Z') - duration('1h')") == "timestamp overflow"


def test_parts_of_a_duration_are_the_whole_in_that_unit() -> None:
    assert computed("duration('90m').getHours()") == 1
    assert computed("duration('90m').getMinutes()") == 90
    assert computed("duration('1.5s').getMilliseconds()") == 500


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'abc'.matches('^a.c$')", True),
        ("'abc'.contains('bc') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc')", True),
        ("dyn(1) in [1.0, 2.0]", True),
        ("'a' in {'a': 1}", True),
        ("size('äö') == 2 && size(b'abc') == 3 && [1, 2].size() == 2", True),
        ("type(1) == int && type('a') != int", True),
        ("bytes('ä') == b'ä'", True),
        ("[1] + [2] == [1, 2] && 'a' + 'b' == 'ab'", True),
    ],
)
def test_texts_lists_and_types(text: str, value: bool) -> None:
    assert computed(text) is value


def test_a_wrong_pattern_is_an_error_of_the_rule_and_dear() -> None:
    assert complaint("'a'.matches('(')")
    with pytest.raises(CostExceeded):
        computed("'a'.matches('(')", limit=1000)


def test_bounds_of_both_sorts_of_integers() -> None:
    assert (whole(MAX), whole(LEAST)) == (MAX, LEAST)
    assert unsigned((1 << 64) - 1) == (1 << 64) - 1
    for bad in (MAX + 1, LEAST - 1):
        with pytest.raises(EvaluationError):
            whole(bad)
    with pytest.raises(EvaluationError):
        unsigned(-1)


def test_bytes_of_a_field_are_base64() -> None:
    assert decoded_bytes("YWJj") == b"abc"
