"""CEL's standard operators and functions.

Integers are 64 bits wide and overflow is an error; division truncates towards zero. Logic, the
conditional and indexing by optionals are built into the compiler, not declared here.
"""

from __future__ import annotations

import base64
import math
import operator
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skerry.kit.text import float_text
from skerry.logic.machinery.cel.functions import copying, declare, parsing, reading
from skerry.logic.machinery.cel.typed import PATTERN_COST, READ_COST, Scope, charge
from skerry.logic.machinery.cel.types import CelType
from skerry.logic.machinery.cel.values import EvaluationError, UInt, equal, holds, kind_of
from skerry.logic.machinery.schema import formats
from skerry.logic.machinery.schema.patterns import Pattern, PatternError, compiled

_MIN, _MAX, _MAX_UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_NUMBERS = ("int", "uint", "double")
# No number, time or duration that means anything is written longer.
_NUMBER_LENGTH = 1024
# A pattern is refused when it has grown too large: most of the work is done by then.
_FAILED_PATTERN_COST = 20_000


def whole(value: int) -> int:
    """Return *value* if 64 bits hold it."""
    if not _MIN <= value <= _MAX:
        raise EvaluationError("integer overflow")
    return value


def unsigned(value: int) -> UInt:
    """Return *value* if 64 bits without a sign hold it."""
    if not 0 <= value <= _MAX_UNSIGNED:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def map_key(value: Any) -> Any:
    """Return *value* if it can be the key of a map: no list or map can."""
    if isinstance(value, list | dict):
        raise EvaluationError("no such overload")
    return value


@declare("_==_", "(T, T) bool", weight="linear", metered=True)
def _equals(scope: Scope, left: Any, right: Any) -> bool:
    return equal(scope, left, right)


@declare("_!=_", "(T, T) bool", weight="linear", metered=True)
def _differs(scope: Scope, left: Any, right: Any) -> bool:
    return not equal(scope, left, right)


_ORDERED = [
    f"({kind}, {kind}) bool" for kind in ("bool", "string", "bytes", "timestamp", "duration")
]
# Numbers compare across their types.
_ORDERED += [f"({left}, {right}) bool" for left in _NUMBERS for right in _NUMBERS]


declare("_<_", *_ORDERED, price=reading)(operator.lt)
declare("_<=_", *_ORDERED, price=reading)(operator.le)
declare("_>_", *_ORDERED, price=reading)(operator.gt)
declare("_>=_", *_ORDERED, price=reading)(operator.ge)
declare("!_", "(bool) bool")(operator.not_)


@declare("-_", "(int) int")
def _negate(value: int) -> int:
    return whole(-value)


@declare("-_", "(double) double")
def _negate_double(value: float) -> float:
    return -value


@declare("_+_", "(int, int) int")
def _add(left: int, right: int) -> int:
    return whole(left + right)


@declare("_+_", "(uint, uint) uint")
def _add_unsigned(left: int, right: int) -> UInt:
    return unsigned(int(left) + int(right))


@declare("_+_", "(double, double) double")
@declare("_+_", "(string, string) string", "(bytes, bytes) bytes", weight="linear")
@declare("_+_", "(list(T), list(T)) list(T)", price=copying)
def _join(left: Any, right: Any) -> Any:
    return left + right


@declare(
    "_+_",
    "(timestamp, duration) timestamp",
    "(duration, timestamp) timestamp",
    "(duration, duration) duration",
)
def _add_times(left: Any, right: Any) -> Any:
    try:
        return left + right
    except OverflowError as error:
        raise EvaluationError("timestamp overflow") from error


@declare("_-_", "(int, int) int")
def _subtract(left: int, right: int) -> int:
    return whole(left - right)


@declare("_-_", "(uint, uint) uint")
def _subtract_unsigned(left: int, right: int) -> UInt:
    return unsigned(int(left) - int(right))


@declare("_-_", "(double, double) double")
def _subtract_doubles(left: float, right: float) -> float:
    return left - right


@declare(
    "_-_",
    "(timestamp, timestamp) duration",
    "(timestamp, duration) timestamp",
    "(duration, duration) duration",
)
def _subtract_times(left: Any, right: Any) -> Any:
    try:
        return left - right
    except OverflowError as error:
        raise EvaluationError("timestamp overflow") from error


@declare("_*_", "(int, int) int")
def _multiply(left: int, right: int) -> int:
    return whole(left * right)


@declare("_*_", "(uint, uint) uint")
def _multiply_unsigned(left: int, right: int) -> UInt:
    return unsigned(int(left) * int(right))


@declare("_*_", "(double, double) double")
def _multiply_doubles(left: float, right: float) -> float:
    return left * right


@declare("_/_", "(int, int) int")
def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient)


@declare("_/_", "(uint, uint) uint")
def _divide_unsigned(left: int, right: int) -> UInt:
    if right == 0:
        raise EvaluationError("division by zero")
    return UInt(int(left) // int(right))


@declare("_/_", "(double, double) double")
def _divide_doubles(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left * right)
    return left / right


@declare("_%_", "(int, int) int")
def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


@declare("_%_", "(uint, uint) uint")
def _remainder_unsigned(left: int, right: int) -> UInt:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return UInt(int(left) % int(right))


@declare("_[_]", "(list(T), int) T", "(list(T), uint) T", "(list(T), double) T")
def _item(items: list[Any], index: float) -> Any:
    # In this order: neither infinity nor what is no number can be made whole.
    if not 0 <= index < len(items) or index != int(index):
        raise EvaluationError(f"index out of bounds: {index}")
    return items[int(index)]


@declare("_[_]", "(map(K, V), K) V")
def _entry(entries: dict[Any, Any], key: Any) -> Any:
    if not _has_key(key, entries):
        raise EvaluationError(f"no such key: {key}")
    return entries[key]


@declare("@in", "(T, list(T)) bool", weight="linear2", metered=True)
def _contained(scope: Scope, value: Any, items: list[Any]) -> bool:
    return holds(scope, items, value)


@declare("@in", "(K, map(K, V)) bool")
def _has_key(key: Any, entries: dict[Any, Any]) -> bool:
    return map_key(key) in entries


declare("size", "(string) int", "string.() int", "(bytes) int", "bytes.() int")(len)
declare("size", "(list(T)) int", "list(T).() int", "(map(K, V)) int", "map(K, V).() int")(len)


@declare("contains", "string.(string) bool", weight="linear")
def _contains(text: str, part: str) -> bool:
    return part in text


@declare("startsWith", "string.(string) bool", price=lambda _, part: reading(part))
def _starts(text: str, part: str) -> bool:
    return text.startswith(part)


@declare("endsWith", "string.(string) bool", price=lambda _, part: reading(part))
def _ends(text: str, part: str) -> bool:
    return text.endswith(part)


def pattern(scope: Scope, text: str, expression: str) -> Pattern:
    """Return a regular expression of a rule, charged for being compiled and for reading *text*;
    one that is wrong is an error of the rule."""
    charge(scope, len(expression))
    try:
        found = compiled(expression)
    except PatternError as error:
        charge(scope, _FAILED_PATTERN_COST)
        raise EvaluationError(str(error)) from error
    charge(scope, found.size + (len(text) * READ_COST + 1) * max(len(expression) * PATTERN_COST, 1))
    charge(scope, found.cost(len(text)))
    return found


@declare("matches", "string.(string) bool", "(string, string) bool", weight="product", metered=True)
def _matches(scope: Scope, text: str, expression: str) -> bool:
    return pattern(scope, text, expression).search(text) is not None


@declare("dyn", "(T) dyn")
def _dyn(value: Any) -> Any:
    return value


@declare("type", "(T) type")
def _type(value: Any) -> CelType:
    return CelType(kind_of(value))


@declare(
    "int",
    "(int) int",
    "(uint) int",
    "(double) int",
    "(string) int",
    "(timestamp) int",
    price=reading,
)
def _int(value: Any) -> int:
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
            raise EvaluationError(_conversion("string", "int"))
        return whole(_read(value))
    if isinstance(value, float) and not _MIN < value < _MAX:
        raise EvaluationError("integer overflow")
    return whole(int(value))


def _read(digits: str) -> int:
    # Python reads no more than some thousand digits; these are too large long before.
    return int(digits) if len(digits) <= _NUMBER_LENGTH else _MAX_UNSIGNED + 1


@declare("uint", "(int) uint", "(uint) uint", "(double) uint", "(string) uint", price=reading)
def _uint(value: Any) -> UInt:
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+", value, re.ASCII):
            raise EvaluationError(_conversion("string", "uint"))
        return unsigned(_read(value))
    if isinstance(value, float) and not 0 <= value < _MAX_UNSIGNED:
        raise EvaluationError("unsigned integer overflow")
    return unsigned(int(value))


@declare(
    "double", "(int) double", "(uint) double", "(double) double", "(string) double", price=reading
)
def _double(value: Any) -> float:
    # Python reads more than Go does: blanks around a number, underscores, digits of every script.
    if isinstance(value, str) and (
        len(value) > _NUMBER_LENGTH or re.fullmatch(r"[!-^`-~]+", value) is None
    ):
        raise EvaluationError(_conversion("string", "double"))
    try:
        return float(value)
    except ValueError as error:
        raise EvaluationError(_conversion("string", "double")) from error


@declare("bool", "(bool) bool", "(string) bool")
def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise EvaluationError(_conversion("string", "bool"))


@declare("bytes", "(string) bytes", "(bytes) bytes", price=reading)
def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


@declare("string", "(int) string", "(uint) string", "(double) string", "(string) string")
@declare("string", "(bytes) string", price=reading)
@declare("string", "(bool) string", "(timestamp) string", "(duration) string", price=parsing)
def to_string(value: Any) -> str:
    """Return a value as ``string()`` writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error
    if isinstance(value, datetime):
        return timestamp_text(value)
    return duration_text(value) if isinstance(value, timedelta) else str(value)


def timestamp_text(value: datetime) -> str:
    """Return a time in RFC 3339, in UTC, with only the fraction it has."""
    moment = value.astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{moment.replace(microsecond=0, tzinfo=None).isoformat()}{fraction}Z"


def duration_text(value: timedelta) -> str:
    """Return a duration as CEL prints it: seconds with an s."""
    micros = value // timedelta(microseconds=1)
    sign = "-" if micros < 0 else ""
    seconds, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}".rstrip("0").rstrip(".")
    return f"{sign}{seconds}{fraction}s"


def _conversion(source: str, target: str) -> str:
    return f"type conversion error from '{source}' to '{target}'"


@declare(
    "timestamp", "(string) timestamp", "(timestamp) timestamp", "(int) timestamp", price=parsing
)
def to_timestamp(value: Any) -> datetime:
    """Read RFC 3339 text (or a bare date, as schemas allow) or seconds since 1970."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and len(value) > _NUMBER_LENGTH:
        raise EvaluationError(_conversion("string", "timestamp"))
    try:
        if isinstance(value, int):
            return datetime.fromtimestamp(value, UTC)
        if formats.is_date(value):
            return datetime.fromisoformat(value).replace(tzinfo=UTC)
        if formats.is_date_time(value):
            return datetime.fromisoformat(_microseconds(value.upper())).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise EvaluationError(_conversion("string", "timestamp")) from error
    raise EvaluationError(_conversion("string", "timestamp"))


def _microseconds(text: str) -> str:
    """Cut a fraction to what Python keeps."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


_UNITS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600,
    "d": 86400,
}  # fmt: skip
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d)")


@declare("duration", "(string) duration", "(duration) duration", price=parsing)
def to_duration(value: Any) -> timedelta:
    """Read Go's ``1h30m``."""
    if isinstance(value, timedelta):
        return value
    if len(value) > _NUMBER_LENGTH:
        raise EvaluationError(_conversion("string", "duration"))
    text = value[1:] if value.startswith(("+", "-")) else value
    if text == "0":
        return timedelta()
    parts = _PART.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise EvaluationError(_conversion("string", "duration"))
    try:
        total = timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError as error:
        raise EvaluationError("duration out of range") from error
    return -total if value.startswith("-") else total


def _zone(name: str) -> Any:
    found = re.fullmatch(r"([+-]?)(\d{1,2}):(\d{2})", name)
    if found:
        offset = timedelta(hours=int(found.group(2)), minutes=int(found.group(3)))
    try:
        if found:
            return timezone(-offset if found.group(1) == "-" else offset)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise EvaluationError(f"unknown time zone {name}") from error


# A zone that was not used before is looked for on disk.
_ZONE_COST = 1000


def _getter_price(_: datetime, *zone: str) -> float:
    return _ZONE_COST + reading(*zone) if zone else _ZONE_COST // 100


_PARTS = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}
_DURATION_PARTS = {
    "getHours": lambda span: int(span / timedelta(hours=1)),
    "getMinutes": lambda span: int(span / timedelta(minutes=1)),
    "getSeconds": lambda span: int(span / timedelta(seconds=1)),
    "getMilliseconds": lambda span: int(span / timedelta(milliseconds=1)) % 1000,
}


def _declare_parts() -> None:
    """Declare the getters of times and durations."""
    for name, part in _PARTS.items():

        def get(moment: datetime, zone: str = "UTC", _part: Any = part) -> int:
            try:
                return int(_part(moment.astimezone(_zone(zone))))
            except OverflowError as error:
                raise EvaluationError("timestamp overflow") from error

        declare(name, "timestamp.() int", "timestamp.(string) int", price=_getter_price)(get)
    for name, part in _DURATION_PARTS.items():
        declare(name, "duration.() int")(part)


_declare_parts()


def decoded_bytes(text: str) -> bytes:
    """Return what a ``format: byte`` string holds."""
    return base64.b64decode(text)
