"""The list of retired words finds them in names, prose and messages, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from requirements.words import LIST, files, findings, judged, load

_ROOT = Path(__file__).parents[3]
_WORDS = """
[[word]]
retired = ["told"]
names = ["OfForm"]
say = "reported"
reason = "vague"
where = ["names", "prose"]
except = ["^told_you$"]
"""


def found(source: str, path: str = "src/a.py") -> list[str]:
    retired, _ = load(_WORDS)
    return [each.text for each in findings(path, source, retired)]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("told = 1", "told"),
        ("def was_told_of(): ...", "was_told_of"),
        ("class ToldExecutor: ...", "ToldExecutor"),
        ("_TOLD = 1", "_TOLD"),
        ("x = OfForm()", "OfForm"),
        ("# Who is told.", "# Who is told."),
        ('"""Told once."""', '"""Told once."""'),
    ],
)
def test_a_retired_word_is_found(source: str, text: str) -> None:
    assert found(source) == [text]


@pytest.mark.parametrize(
    "source",
    [
        "untold = 1",
        "told_you = 1",
        "of_form = Form()",
        "x = 'told'",
        '"""Calls ``told`` once."""',
    ],
)
def test_other_words_exceptions_and_other_places_are_not(source: str) -> None:
    assert found(source) == []


def test_pages_are_prose_but_for_code_and_names_of_tests() -> None:
    assert found("is told\n`told` test_it_is_told\n", "docs/a.md") == ["is told"]


def test_names_of_files_are_names() -> None:
    assert found("", "src/was_told.py") == ["was_told"]


def test_a_folder_has_as_many_as_it_says_at_most() -> None:
    retired, _ = load(_WORDS)
    here = list(findings("src/a/b.py", "told = told", retired))
    assert judged(here, {"src/a/": 2}) == []
    assert judged(here, {"src/a/": 1}) == ["src/a/: 2 retired words: want at most 1"]
    (first, _) = judged(here, {"src/c/": 9})
    assert first == "src/a/b.py:1: 'told': told is retired: vague; say reported"


def test_every_entry_of_the_list_is_meant_and_every_exception_used() -> None:
    retired, _ = load(LIST.read_text())
    names = {name for _, text in files(_ROOT) for name in re.findall(r"\w+", text)}
    for entry in {each for entries in retired.values() for each in entries}:
        assert entry.where <= {"names", "prose", "messages"}
        for exception in entry.excepted:
            assert any(map(exception.search, names)), exception.pattern
