"""JSON values as rules see them: times, durations, bytes and whole numbers that are doubles.

Most schemas declare none of these; then there is nothing to convert and rules read the object
itself. Otherwise only the fields a rule reads are copied, as deep as something changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skerry.api.schema import Schema
from skerry.logic.machinery.cel.standard import decoded_bytes, to_duration, to_timestamp
from skerry.logic.machinery.cel.typed import READ_COST
from skerry.logic.machinery.cel.values import EvaluationError
from skerry.logic.machinery.work import spend

Convert = Callable[[Any], Any]


def conversion(schema: Schema, reads: frozenset[str] | None = None) -> Convert | None:
    """Return what turns JSON into CEL's values, None where JSON will do.

    *reads* limits the work to those fields of an object.
    """
    if schema.int_or_string:
        return None
    if schema.type == "array" and schema.items is not None:
        return _each(conversion(schema.items))
    if schema.type == "object":
        return _object(schema, reads)
    if schema.type == "number":
        return _double
    return _STRINGS.get(schema.format) if schema.type == "string" else None


# Reading a time or bytes takes some microseconds, going past a value far less.
_READ_UNITS = 30
_PASS_UNITS = 2


def _double(value: Any) -> Any:
    spend(_PASS_UNITS)
    return float(value) if type(value) is int else value


def _text(read: Callable[[str], Any]) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        spend(_READ_UNITS + len(value) * READ_COST)
        try:
            return read(value)
        except (EvaluationError, ValueError):
            # Not what the format says: validation reports it, a rule sees the text.
            return value

    return convert


_STRINGS = {
    "date": _text(to_timestamp),
    "date-time": _text(to_timestamp),
    "duration": _text(to_duration),
    "byte": _text(decoded_bytes),
}


def _each(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: [convert(item) for item in value] if type(value) is list else value


def _object(schema: Schema, reads: frozenset[str] | None) -> Convert | None:
    if schema.additional is not None and not schema.property_names:
        return _values(conversion(schema.additional))
    members = {
        name: convert
        for name, child in schema.properties()
        if (reads is None or name in reads) and (convert := conversion(child)) is not None
    }
    if not members:
        return None

    def convert_object(value: Any) -> Any:
        if type(value) is not dict:
            return value
        spend(_PASS_UNITS * len(value))
        changed = {name: member(value[name]) for name, member in members.items() if name in value}
        return {**value, **changed} if changed else value

    return convert_object


def _values(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: (
        {key: convert(member) for key, member in value.items()} if type(value) is dict else value
    )
