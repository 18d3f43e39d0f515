"""The page about the architecture shows rows that the tables really have."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs" / "architecture.md").read_text()
_STORY = (_ROOT / "tests" / "scenarios" / "stories" / "one_placement.txt").read_text()


def test_every_row_on_the_way_of_one_object_is_printed_by_its_story() -> None:
    section = _PAGE.split("## One object through the tables", 1)[1].split("\n## ", 1)[0]
    rows = [
        row for block in re.findall(r"```text\n(.*?)```", section, re.DOTALL)
        for row in block.splitlines()
    ]  # fmt: skip
    printed = _STORY.splitlines()
    assert len(rows) >= 8
    assert [row for row in rows if row not in printed] == []
    # In the order of the chain, too.
    places = [printed.index(row) for row in rows]
    assert places == sorted(places)


def test_what_is_found_by_folder_names_is_there() -> None:
    section = _PAGE.split("### Found by folder names", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    paths = [path for row in rows for path in re.findall(r"`([a-z_/]+/[a-z_/.]+)`", row)]
    assert len(rows) == 10
    assert len(paths) >= len(rows)
    assert [path for path in paths if not (_ROOT / "src" / "skerry" / path).exists()] == []
