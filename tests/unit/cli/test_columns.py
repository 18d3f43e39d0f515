"""Rows of text in aligned columns."""

from __future__ import annotations

import pytest

from skerry.cli.columns import aligned, print_columns


def test_columns_are_as_wide_as_their_widest_cell_and_the_last_is_not_padded() -> None:
    assert aligned([("A", "LONG", "P"), ("abc", "d", "x")]) == [
        ["A  ", "LONG", "P"],
        ["abc", "d   ", "x"],
    ]


def test_a_cell_is_one_line_of_text_and_columns_stay_aligned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_columns([("A", "B"), ("x\x1b[31m\u2028y", "one\ntwo"), ("z", "")])
    assert capsys.readouterr().out.splitlines() == [
        "A          B",
        "x?[31m y   one two",
        "z",
    ]
