"""Messages whose JSON is not an object of their fields, there and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.protobuf.values import SPECIAL, json_value, numbers, strings, utf8
from skerry.wire.protobuf import delimited_field, number_field

BIG = 1 << 62


def there_and_back(name: str, value: Any) -> Any:
    decode, encode = SPECIAL[name]
    return decode(encode(value))


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_times_keep_seconds_and_micro_times_all(moment: datetime) -> None:
    seconds = moment.strftime("%Y-%m-%dT%H:%M:%S")
    assert there_and_back("meta.v1.Time", moment.isoformat()) == f"{seconds}Z"
    exact = f"{seconds}.{moment.microsecond:06}Z"
    assert there_and_back("meta.v1.MicroTime", exact) == exact


def test_a_zero_time_is_none() -> None:
    decode, _ = SPECIAL["meta.v1.Time"]
    assert decode(b"") is None
    # Go's zero time, spelled out.
    assert decode(number_field(1, -62135596800)) is None
    with pytest.raises(ValueError, match="no calendar has"):
        decode(number_field(1, BIG))


@given(st.integers(-(1 << 31), (1 << 31) - 1) | st.text(max_size=20))
def test_an_int_or_string_stays_what_it_is(value: int | str) -> None:
    found = there_and_back("intstr.IntOrString", value)
    assert (found, type(found)) == (value, type(value))


def test_quantities_are_text() -> None:
    assert there_and_back("resource.Quantity", "100m") == "100m"
    assert there_and_back("resource.Quantity", 2) == "2"
    assert SPECIAL["resource.Quantity"][0](b"") == ""


@pytest.mark.parametrize("name", ["apiextensions.v1.JSON", "meta.v1.FieldsV1"])
def test_raw_json_is_any_value(name: str) -> None:
    values: tuple[Any, ...] = ({"f:spec": {}}, [1, None], "x", 0)
    for value in values:
        assert there_and_back(name, value) == value


def test_no_raw_json_is_none_and_broken_is_said() -> None:
    assert json_value(b"") is None
    with pytest.raises(ValueError, match="embedded JSON cannot be read"):
        json_value(b"{")


def test_fields_of_other_types_are_passed_over() -> None:
    message = number_field(1, -5) + delimited_field(2, b"x") + delimited_field(1, b"one")
    assert numbers(message) == {1: -5}
    assert strings(message) == ["one"]


def test_text_that_is_not_utf8_is_said() -> None:
    with pytest.raises(ValueError, match="not valid UTF-8"):
        utf8(b"\xff")
