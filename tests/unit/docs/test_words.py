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
except = ["^told_you$", "paper\\\\.told$"]
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
        ("self.told()", "told"),
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
        "paper.told = 1",
        "self.paper.told()",
        "of_form = Form()",
        "x = 'told'",
        '"""Calls ``told`` once."""',
    ],
)
def test_other_words_exceptions_and_other_places_are_not(source: str) -> None:
    assert found(source) == []


def test_pages_are_prose_but_for_code_and_names_of_tests() -> None:
    assert found("is told\n`told` test_it_is_told\n", "docs/a.md") == ["is told"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("export function wasTold() {}", "wasTold"),
        ("/** Who is told. */", "/** Who is told. */"),
        (" * who is told", "* who is told"),
        ("call(); // Once told.", "// Once told."),
    ],
)
def test_scripts_have_names_and_prose(line: str, text: str) -> None:
    assert found(line, "src/a.js") == [text]


def test_strings_of_scripts_are_messages() -> None:
    assert found("""x = "told 'told' // told" + `told ${1}` + 'told';""", "src/a.js") == []


def test_remarks_of_scenarios_are_prose_and_their_output_messages() -> None:
    story = "# Who is told.\nedge told\n"
    assert found(story, "tests/scenarios/stories/a.txt") == ["# Who is told."]


def test_files_of_others_and_data_are_left_out() -> None:
    names = {name for name, _ in files(_ROOT)}
    assert "src/skerry/web/static/app/main.js" in names
    assert "src/skerry/web/static/vendor/preact.js" not in names
    assert any(name.startswith("changes/") for name in names)
    texts = [name for name in names if name.endswith(".txt")]
    assert texts
    assert all(name.startswith("tests/scenarios/") for name in texts)


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
    # By itself, and as an attribute.
    names = {
        name
        for _, text in files(_ROOT)
        for pair in re.findall(r"\b(\w+)(?=(\.\w+)?)", text)
        for name in (pair[0], "".join(pair))
    }
    for entry in {each for entries in retired.values() for each in entries}:
        assert entry.where <= {"names", "prose", "messages"}
        for exception in entry.excepted:
            assert any(map(exception.search, names)), exception.pattern
