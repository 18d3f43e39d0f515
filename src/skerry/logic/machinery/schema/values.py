"""Rules about single values: numbers, strings, enums. Each is a closure, or absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skerry.api.errors import FieldError
from skerry.api.schema import Schema
from skerry.kit.text import float_text
from skerry.logic.machinery.schema import formats, patterns
from skerry.logic.machinery.schema.findings import (
    Finding,
    invalid,
    not_supported,
    too_long,
    wrong_format,
)
from skerry.logic.machinery.schema.paths import Path, dotted

Check = Callable[[Any, Path, list[Finding]], None]

_INTEGER_RANGE = {"int32": 1 << 31, "int64": 1 << 63}
_MAX_FLOAT = 3.4028234663852886e38


def string_rules(schema: Schema) -> list[Check]:
    """Return the rules a string must meet, in the order Kubernetes reports them."""
    raw = schema.raw
    rules: list[Check] = []
    if raw.get("maxLength") is not None:
        rules.append(_max_length(int(raw["maxLength"])))
    if raw.get("minLength"):
        rules.append(_min_length(int(raw["minLength"])))
    if raw.get("pattern"):
        rules.append(_pattern(raw["pattern"]))
    if schema.format and schema.type in ("string", ""):
        test = formats.check_of(schema.format)
        if test is not None:
            rules.append(_format(schema.format, test))
    return rules


def _max_length(maximum: int) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        # Length counts code points, as Go's utf8.RuneCount does.
        if len(value) > maximum:
            found.append(too_long(path, maximum))

    return check


def _min_length(least: int) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if len(value) < least:
            found.append(invalid(path, value, f"should be at least {least} chars long"))

    return check


def _pattern(pattern: str) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not patterns.compiled(pattern).found_in(value):
            found.append(invalid(path, value, f"should match '{pattern}'"))

    return check


def _format(name: str, test: Callable[[str], bool]) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not test(value):
            found.append(wrong_format(path, name, value))

    return check


def number_rules(schema: Schema) -> list[Check]:
    """Return the rules a number must meet."""
    raw = schema.raw
    rules: list[Check] = []
    if schema.format in ("int32", "int64", "float") and schema.type in ("integer", "number"):
        rules.append(_range(schema))
    if raw.get("multipleOf"):
        rules.append(_multiple(raw["multipleOf"]))
    if raw.get("maximum") is not None:
        rules.append(_maximum(raw["maximum"], bool(raw.get("exclusiveMaximum"))))
    if raw.get("minimum") is not None:
        rules.append(_minimum(raw["minimum"], bool(raw.get("exclusiveMinimum"))))
    return rules


def _range(schema: Schema) -> Check:
    limit = _INTEGER_RANGE.get(schema.format)
    low, high = (-limit, limit - 1) if limit else (-_MAX_FLOAT, _MAX_FLOAT)

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not low <= value <= high:
            text = (
                f"Checked value must be of type {schema.type} with format {schema.format} "
                f"in {dotted(path)}"
            )
            found.append(Finding(path, FieldError.invalid("<nil>", "", text)))

    return check


def _limit_text(limit: float, value: float) -> str:
    """Return a limit as Go prints it: of the type that the value has which is held against it."""
    return str(int(limit)) if isinstance(value, int) and limit == int(limit) else float_text(limit)


def _multiple(factor: float) -> Check:
    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if not _divides(factor, value):
            text = f"should be a multiple of {_limit_text(factor, value)}"
            found.append(invalid(path, value, text))

    return check


def _divides(factor: float, value: float) -> bool:
    """Tell whether *value* is a whole multiple; fractions are divided as floats, as in Go."""
    if isinstance(factor, int) and isinstance(value, int):
        return value % factor == 0
    return (value / factor).is_integer()


def _maximum(maximum: float, exclusive: bool) -> Check:
    text = f"should be less than {'' if exclusive else 'or equal to '}"

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if value > maximum or (exclusive and value == maximum):
            found.append(invalid(path, value, text + _limit_text(maximum, value)))

    return check


def _minimum(least: float, exclusive: bool) -> Check:
    text = f"should be greater than {'' if exclusive else 'or equal to '}"

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if value < least or (exclusive and value == least):
            found.append(invalid(path, value, text + _limit_text(least, value)))

    return check


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal; true is not one (Python thinks it is)."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def enum_rule(raw: Mapping[str, Any]) -> Check | None:
    """Return the rule that a value is one of those listed."""
    allowed = raw.get("enum")
    if not isinstance(allowed, list) or not allowed:
        return None
    words = frozenset(item for item in allowed if isinstance(item, str))

    def check(value: Any, path: Path, found: list[Finding]) -> None:
        if type(value) is str:
            if value in words:
                return
        elif any(same(value, item) for item in allowed):
            return
        found.append(not_supported(path, value, allowed))

    return check
