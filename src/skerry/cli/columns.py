"""Rows of text in aligned columns, as kubectl prints them; a cell is one line, whatever it has."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.cli.printing import show
from skerry.kit.text import inert_line

GAP = "   "


def aligned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return cells padded to the width of their column; those of the last one are not."""
    shown = [[inert_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        [*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]
        for row in shown
    ]


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows, the head among them."""
    for cells in aligned(rows):
        show(GAP.join(cells).rstrip())
