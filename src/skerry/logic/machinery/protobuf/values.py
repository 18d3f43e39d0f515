"""The messages whose JSON is not an object of their fields: times, quantities, raw JSON.

Each has a pair of functions: from the message's bytes to the JSON value and back. A zero time is
``None``, which the caller leaves out, as a client that speaks JSON would have sent null.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from skerry.wire.protobuf import (
    delimited_field,
    number_field,
    read_fields,
    signed,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Go's zero time; a message may spell it out.
_ZERO = datetime(1, 1, 1, tzinfo=UTC)


def numbers(data: bytes) -> dict[int, int]:
    """Return the whole-number fields of a message."""
    return {
        number: signed(value) for number, _, value in read_fields(data) if isinstance(value, int)
    }


def texts(data: bytes) -> dict[int, bytes]:
    """Return the delimited fields of a message."""
    return {number: value for number, _, value in read_fields(data) if isinstance(value, bytes)}


def strings(data: bytes) -> list[str]:
    """Return the wrapped list of a message that is nothing but a list of strings."""
    return [
        utf8(value)
        for number, _, value in read_fields(data)
        if number == 1 and isinstance(value, bytes)
    ]


def utf8(data: bytes) -> str:
    """Return text; ``ValueError`` says so when it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"text is not valid UTF-8: {error.reason}") from error


def _moment(data: bytes) -> datetime | None:
    if not data:
        return None
    parts = numbers(data)
    try:
        moment = _EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)
    except OverflowError as error:
        raise ValueError(f"no calendar has {parts.get(1, 0)} seconds since 1970") from error
    return None if moment == _ZERO else moment


def _time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment.isoformat(timespec="seconds")[:-6] + "Z"


def _micro_time(data: bytes) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment.isoformat(timespec="microseconds")[:-6] + "Z"


def _time_bytes(value: Any) -> bytes:
    since = datetime.fromisoformat(value) - _EPOCH
    seconds = since // timedelta(seconds=1)
    nanoseconds = since % timedelta(seconds=1) // timedelta(microseconds=1) * 1000
    return number_field(1, seconds) + number_field(2, nanoseconds)


def _quantity(data: bytes) -> str:
    return utf8(texts(data).get(1, b""))


def _quantity_bytes(value: Any) -> bytes:
    return delimited_field(1, str(value).encode())


def _int_or_string(data: bytes) -> int | str:
    parts = numbers(data)
    return utf8(texts(data).get(3, b"")) if parts.get(1, 0) else parts.get(2, 0)


def _int_or_string_bytes(value: Any) -> bytes:
    if isinstance(value, int):
        return number_field(1, 0) + number_field(2, value) + delimited_field(3, b"")
    return number_field(1, 1) + number_field(2, 0) + delimited_field(3, value.encode())


def json_value(raw: bytes) -> Any:
    """Return raw JSON as a value; None for no bytes at all."""
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"embedded JSON cannot be read: {error}") from error


def _raw_json(data: bytes) -> Any:
    return json_value(texts(data).get(1, b""))


def _raw_json_bytes(value: Any) -> bytes:
    return delimited_field(1, orjson.dumps(value))


Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]

SPECIAL: dict[str, tuple[Decode, Encode]] = {
    "apiextensions.v1.JSON": (_raw_json, _raw_json_bytes),
    "intstr.IntOrString": (_int_or_string, _int_or_string_bytes),
    "meta.v1.FieldsV1": (_raw_json, _raw_json_bytes),
    "meta.v1.MicroTime": (_micro_time, _time_bytes),
    "meta.v1.Time": (_time, _time_bytes),
    "resource.Quantity": (_quantity, _quantity_bytes),
}
