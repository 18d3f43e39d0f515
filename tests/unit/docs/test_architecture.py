"""The page about the architecture shows rows that the tables really have."""

from __future__ import annotations

import re
from pathlib import Path

from skerry.logic.fleet.tables.chain import AT_EDGE, CHAIN

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
    rows = [
        line
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith("| behaviour")
    ]
    paths = [path for row in rows for path in re.findall(r"`([a-z_/]+/[a-z_/.]+)`", row)]
    assert len(rows) == 20
    assert len(paths) >= len(rows)
    assert [path for path in paths if not (_ROOT / "src" / "skerry" / path).exists()] == []


def _modules_on_the_way() -> list[str]:
    section = _PAGE.split("### The modules on this way", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"`([a-z_/]+\.py)`", section)


def test_the_way_of_an_object_is_read_in_fewer_than_forty_modules_that_are_there() -> None:
    found = _modules_on_the_way()
    assert len(found) == len(set(found)) < 40
    assert [each for each in found if not (_ROOT / "src" / "skerry" / each).is_file()] == []


def test_every_derivation_of_a_table_is_on_the_way_or_beside_it() -> None:
    """Revisions and upsync branch off; what a placement stands at is folded as tallies are."""
    derived = {
        each.derived_by.partition(":")[0].removeprefix("skerry.").replace(".", "/") + ".py"
        for each in (*CHAIN, *AT_EDGE)
        if each.kind == "derived"
    }
    beside = {f"logic/fleet/{each}.py" for each in (
        "translation/manifest", "summary/standing", "syncing/upsync",
    )}  # fmt: skip
    assert derived - beside <= set(_modules_on_the_way())
