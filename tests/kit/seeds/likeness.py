"""Whether what was printed is what a document shows, up to what differs from run to run.

Names that servers make up, addresses, times, ages, versions and generations are masked on both
sides; order does not count, and neither do the widths of columns, which follow from the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import yaml

_MASKS = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"https://[\w.]+:\d+"), "<server>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    # Logical clusters, and an administrator's home, whose name is the same everywhere.
    (re.compile(r"\b(?:[a-z0-9]{16}|kvdk2spgmbix)\b"), "<cluster>"),
    (re.compile(r"(resourceVersion[=:] ?)\"\d+\""), r'\1"<version>"'),
    (re.compile(r"(generation: )\d+"), r"\1<generation>"),
    (re.compile(r"(worker=)\d+"), r"\1<worker>"),
    (re.compile(r"\b(\d+[smhd])+$", re.MULTILINE), "<age>"),
]
_KLOG = re.compile(r'^[IWE]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] "([^"]*)"(.*)$')
_PAIR = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')


def masked(text: str) -> str:
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text


def table(text: str) -> list[list[str]]:
    """Return the rows of a listing, in one order, as their cells."""
    lines = [line for line in masked(text).splitlines() if line.strip()]
    # Columns are two blanks apart or more, and an empty cell leaves a gap of its own.
    return sorted(re.split(r" {2,}", line.strip()) for line in lines)


def document(text: str) -> Any:
    """Return a YAML document with every list in one order."""
    return _ordered(yaml.safe_load(masked(text)))


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(member) for name, member in value.items()}
    if isinstance(value, list):
        return sorted(map(_ordered, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def said(line: str) -> tuple[str, dict[str, str]]:
    """Return the message of a log line and its values; a line in no such form is all message."""
    found = _KLOG.match(line)
    if found is None:
        return masked(line), {}
    pairs = {key: masked(value.strip('"')) for key, value in _PAIR.findall(masked(found[2]))}
    return found[1], pairs


def missing(shown: str, printed: Iterable[str]) -> list[str]:
    """Return the lines of a shown log that no printed line says, with all its keys and values."""
    heard = [said(line) for line in printed]
    lines = [line for line in shown.splitlines() if line.strip() not in ("", "...", "^C")]
    return [line for line in lines if not any(_says(one, said(line)) for one in heard)]


def _says(heard: tuple[str, dict[str, str]], shown: tuple[str, dict[str, str]]) -> bool:
    return heard[0] == shown[0] and shown[1].items() <= heard[1].items()


def shows(printed: str, shown: str) -> bool:
    """Tell whether printed listings have every row of shown ones, in the columns these have.

    What is printed may have further columns: a page is not wrong for showing fewer.
    """
    found = _rows(printed)
    return all(any(row.items() <= other.items() for other in found) for row in _rows(shown))


def _rows(text: str) -> list[dict[str, str]]:
    """Return the rows of listings as their cells by column; each listing begins with its header."""
    rows: list[dict[str, str]] = []
    starts: list[tuple[str, int]] = []
    for line in text.splitlines():
        if line.startswith("NAME "):
            starts = [(found[0], found.start()) for found in re.finditer(r"\S+(?: \S+)*", line)]
        elif line.strip():
            ends = [start for _, start in starts[1:]] + [len(line)]
            cells = zip(starts, ends, strict=True)
            rows.append({name: masked(line[start:end].strip()) for (name, start), end in cells})
    return rows
