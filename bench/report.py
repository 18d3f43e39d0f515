"""Rows of a benchmark, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(slots=True)
class Row:
    """One figure. ``met`` is None where nothing was asked of it or it could not be judged."""

    suite: str
    name: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None
    note: str = ""


def table(rows: Sequence[Row]) -> str:
    """Return the rows as aligned text."""
    head = ("suite", "what", "measured", "target", "met", "note")
    verdict = {True: "yes", False: "NO", None: "-"}
    lines = [
        (r.suite, r.name, f"{_short(r.value)} {r.unit}", r.target or "-", verdict[r.met], r.note)
        for r in rows
    ]
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    shown = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
             for line in [head, *lines]]  # fmt: skip
    return "\n".join(shown)


def _short(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def save(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
