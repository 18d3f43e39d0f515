"""Answers in a file, each distinct one once; and what differs between two sets of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kit.differential.asking import Answered


def save(answers: Mapping[str, Answered], path: Path) -> None:
    """Keep *answers*, without their messages."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    rows = {
        name: [
            each.status,
            number(each.media),
            number(each.reason),
            [number(cause) for cause in each.causes],
            [number(warning) for warning in each.warnings],
            [number(place) for place in each.shape],
        ]
        for name, each in answers.items()
    }
    raw = json.dumps({"texts": list(texts), "answers": rows}).encode()
    # Without the time of writing: the same answers are the same bytes.
    path.write_bytes(gzip.compress(raw, mtime=0))


def load(path: Path) -> dict[str, Answered]:
    """Return what ``save`` kept."""
    found = json.loads(gzip.decompress(path.read_bytes()))
    texts: list[str] = found["texts"]

    def of(numbers: list[int]) -> tuple[str, ...]:
        return tuple(texts[each] for each in numbers)

    return {
        name: Answered(row[0], texts[row[1]], texts[row[2]], of(row[3]), of(row[4]), of(row[5]))
        for name, row in found["answers"].items()
    }


def differences(
    ours: Mapping[str, Answered], theirs: Mapping[str, Answered]
) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Return, by request, the fields in which two answers differ, as far as they do."""
    found: dict[str, dict[str, tuple[Any, Any]]] = {}
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in ours or name not in theirs:
            found[name] = {"asked": (name in ours, name in theirs)}
            continue
        fields = _fields(ours[name], theirs[name])
        if fields:
            found[name] = fields
    return found


def _fields(ours: Answered, theirs: Answered) -> dict[str, tuple[Any, Any]]:
    if ours.status != theirs.status:
        # The rest follows from that.
        return {"status": (f"{ours.status} {ours.reason}", f"{theirs.status} {theirs.reason}")}
    fields: dict[str, tuple[Any, Any]] = {}
    for field in ("media", "reason"):
        mine, other = getattr(ours, field), getattr(theirs, field)
        if mine != other:
            fields[field] = (mine, other)
    for field in ("causes", "warnings", "shape"):
        mine, other = set(getattr(ours, field)), set(getattr(theirs, field))
        if mine != other:
            fields[field] = (sorted(mine - other), sorted(other - mine))
    return fields


def listed(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the names of what differs, and in what, a line each."""
    return "".join(f"{name}: {', '.join(fields)}\n" for name, fields in sorted(found.items()))
