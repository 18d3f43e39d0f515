"""Rows of text in aligned columns."""

from __future__ import annotations

from skerry.cli.columns import aligned


def test_columns_are_as_wide_as_their_widest_cell_and_the_last_is_not_padded() -> None:
    assert aligned([("A", "LONG", "P"), ("abc", "d", "x")]) == [
        ["A  ", "LONG", "P"],
        ["abc", "d   ", "x"],
    ]
