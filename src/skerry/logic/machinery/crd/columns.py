"""Printer columns: from ``additionalPrinterColumns`` to cells of a Table.

The name comes first, and a definition without columns of its own shows its age. A cell is the
first value the column's path finds, if it fits the column's type, else null, which kubectl shows
as ``<none>``; a string column prints whatever it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import takewhile
from typing import Any

import orjson

from skerry.api.objects import Object
from skerry.kit.text import float_text
from skerry.logic.machinery.crd import jsonpath
from skerry.logic.machinery.crd.definition import mapping, sequence, text
from skerry.logic.machinery.jsonpath import JSONPathError
from skerry.logic.machinery.printing.cells import NAME
from skerry.logic.machinery.printing.durations import INVALID, UNKNOWN, human_duration, parse_time
from skerry.logic.machinery.resource import Column

_AGE: Mapping[str, Any] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "How long ago the object was created.",
}


def columns_of(version: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns of a version, up to the first whose path cannot be read.

    Validation only asks that a path begin with a dot; Kubernetes then shows what it can.
    """
    wanted = [mapping(item) for item in sequence(version.get("additionalPrinterColumns"))]
    readable = takewhile(lambda raw: find_of(text(raw.get("jsonPath"))) is not None, wanted)
    return (NAME, *map(_column, readable if wanted else (_AGE,)))


def find_of(path: str) -> jsonpath.Find | None:
    """Return what finds the values at *path*, None when it cannot be read."""
    try:
        return jsonpath.compiled(path)
    except JSONPathError:
        return None


def _column(raw: Mapping[str, Any]) -> Column:
    path, kind = text(raw.get("jsonPath")), text(raw.get("type"))
    find = jsonpath.compiled(path)
    show = _SHOWN.get(kind, _nothing)

    def cell(obj: Object, now: datetime) -> Any:
        found = find(obj)
        return show(found[0], now) if found and found[0] is not None else None

    default_text = f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        text(raw.get("name")),
        kind,
        cell,
        format=text(raw.get("format")),
        description=text(raw.get("description")) or default_text,
        priority=int(raw.get("priority") or 0),
    )


def _nothing(_: Any, __: datetime) -> Any:
    return None


def plain_text(value: Any) -> str:
    """Return a JSON value as Go prints it: strings bare, floats as ``%v`` has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return float_text(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _string(value: Any, _: datetime) -> Any:
    return plain_text(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any, _: datetime) -> Any:
    return int(value) if _is_number(value) else None


def _number(value: Any, _: datetime) -> Any:
    return value if _is_number(value) else None


def _boolean(value: Any, _: datetime) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> Any:
    if not isinstance(value, str):
        return None
    if not value:
        return UNKNOWN
    moment = parse_time(value)
    return INVALID if moment is None else human_duration(now - moment)


_SHOWN: dict[str, Callable[[Any, datetime], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
