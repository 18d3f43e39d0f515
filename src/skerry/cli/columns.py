"""Rows of text in aligned columns, as kubectl prints them."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "   "


def aligned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return cells padded to the width of their column; those of the last one are not."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]
        for row in rows
    ]


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows, the head among them."""
    for cells in aligned(rows):
        print(GAP.join(cells).rstrip())
