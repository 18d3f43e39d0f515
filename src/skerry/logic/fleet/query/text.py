"""Answers as text: a table for people, CSV for spreadsheets.

Whatever is in a cell, an edge may have written it. So a table has no character that a terminal
would obey, and CSV no cell that a spreadsheet would compute. ``notes`` has what a table alone would
hide: rows that nobody has answered for, that are stale, or that are not shown. What is said of an
error may have come from an edge as well.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from skerry.api.objects import Object
from skerry.kit.text import inert_line


def table(status: Object) -> list[list[str]]:
    """Return the head and the rows of an answer, as cells."""
    head = [str(column["name"]).upper() for column in status.get("columns") or ()]
    rows = [[_cell(value) for value in row["values"]] for row in status.get("rows") or ()]
    return [head, *rows]


def as_csv(status: Object) -> str:
    """Return an answer as CSV; what is no scalar stands in its cell as JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column["name"] for column in status.get("columns") or ()])
    for row in status.get("rows") or ():
        writer.writerow([_plain(value) for value in row["values"]])
    return out.getvalue()


def notes(status: Object) -> Iterator[str]:
    """Yield what a reader should know besides the rows, in sentences."""
    sources, errors = status.get("sources") or {}, status.get("errors") or {}
    if sources.get("absent"):
        yield f"{sources['absent']} of {sources['destinations']} rows have no copy yet"
    if sources.get("stale"):
        yield f"{sources['stale']} reports are stale"
    if status.get("rowsOmitted"):
        yield f"{status['rowsOmitted']} more rows are not shown"
    approximate = [each["name"] for each in status.get("columns") or () if each.get("approximate")]
    if approximate:
        yield f"within 1 %: {', '.join(approximate)}"
    if errors.get("rows") or errors.get("groups"):
        yield f"{errors['rows']} rows have errors, {errors['excluded']} are left out for that"
        for sample in errors.get("samples") or ():
            where = " ".join(sample[n] for n in ("location", "object") if sample.get(n))
            found = f"{where or 'a group'}: {sample['column']}: {sample['message']}"
            yield f"  {inert_line(found)}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(f"{_cell(each['show'])}={_cell(each['value'])}" for each in value) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    # An edge's text is one cell, whatever it contains.
    return "".join(each if each.isprintable() else "?" for each in text) or '""'


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | list):
        return json.dumps(value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        # A spreadsheet would take it for a formula, and an edge wrote it.
        return f"'{value}"
    return value
