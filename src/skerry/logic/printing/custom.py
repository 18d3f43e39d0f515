"""Columns of custom kinds, from ``additionalPrinterColumns``.

A cell is the first value the column's JSONPath finds, if it fits the column's type; ``null``
otherwise, which kubectl shows as ``<none>``. Dates become ages here, on the server, as for
built-in kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from skerry.logic.printing.cells import NAME
from skerry.logic.printing.durations import INVALID, UNKNOWN, human_duration, parse_time
from skerry.logic.printing.jsonpath import JsonPath
from skerry.logic.resource import Column, Object

Conversion = Callable[[Any, datetime], Any]

# A kind that says nothing shows its age, as a date column.
_DEFAULT_PRINTER_COLUMNS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "How long ago the object was created.",
    },
)


def custom_columns(printer_columns: Sequence[Mapping[str, Any]] | None) -> tuple[Column, ...]:
    """Return NAME and the columns a CustomResourceDefinition version asks for.

    ``ValueError`` when a JSONPath cannot be read; validation of the definition should have seen
    to that before.
    """
    return (NAME, *map(_column, printer_columns or _DEFAULT_PRINTER_COLUMNS))


def _column(definition: Mapping[str, Any]) -> Column:
    path = JsonPath(definition["jsonPath"])
    convert: Conversion = _CONVERSIONS.get(definition["type"], _nothing)

    def cell(obj: Object, now: datetime) -> Any:
        found = path.find(obj)
        return convert(found[0], now) if found else None

    shown = f"Custom resource definition column (in JSONPath format): {path.text}"
    return Column(
        definition["name"],
        definition["type"],
        cell,
        definition.get("format") or "",
        definition.get("description") or shown,
        definition.get("priority") or 0,
    )


def _nothing(_: Any, __: datetime) -> None:
    return None


def _text(value: Any, _: datetime) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if value is None:
        return None
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def float_text(value: float) -> str:
    """Return a number as Go prints it: whole ones without a point until 21 digits."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


def _integer(value: Any, _: datetime) -> int | None:
    return int(value) if _is_number(value) else None


def _number(value: Any, _: datetime) -> float | None:
    return value if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _boolean(value: Any, _: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if not value:
        return UNKNOWN
    moment = parse_time(value)
    return INVALID if moment is None else human_duration(now - moment)


_CONVERSIONS: dict[str, Conversion] = {
    "boolean": _boolean,
    "date": _date,
    "integer": _integer,
    "number": _number,
    "string": _text,
}
