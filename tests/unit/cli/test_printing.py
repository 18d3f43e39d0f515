"""What commands print is text, whatever is in it."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import skerry.cli
from skerry.cli.printing import confirmed, show, show_json, show_lines, show_progress

EVIL = "a\x1b[2Jb\x9bc\x07\rd\u202ee"
INERT = "a?[2Jb?c? d?e"
MODULES = sorted(Path(skerry.cli.__file__).parent.glob("*.py"))


def test_no_control_character_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show(EVIL)
    show(f"one\n\ttwo {EVIL}", error=True, end="")
    shown = capsys.readouterr()
    assert shown.out == f"{INERT}\n"
    assert shown.err == f"one\n\ttwo {INERT}"


def test_a_line_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines(["a\nb", EVIL])
    show_lines(["error:\tc"], error=True)
    shown = capsys.readouterr()
    assert shown.out == f"a b\n{INERT}\n"
    assert shown.err == "error: c\n"


def test_json_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"a": "\x1b[2J"})
    show_json(["ø"], indent=None)
    assert capsys.readouterr().out == '{\n  "a": "\\u001b[2J"\n}\n["\\u00f8"]\n'


def test_a_question_is_text_too() -> None:
    @click.command()
    def asks() -> None:
        click.echo(confirmed(f"delete {EVIL}?"))

    result = CliRunner().invoke(asks, input="y\n")
    assert result.output == f"delete {INERT}? [y/N]: y\nTrue\n"


def test_progress_is_one_line_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    show_progress("1 of 2", last=False)
    show_progress(f"2 of 2 {EVIL}", last=True)
    assert capsys.readouterr().out == f"2 of 2 {INERT}\n"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_there_is_one_place_where_commands_print(module: Path) -> None:
    """What is printed elsewhere would have to remember what an edge may have written."""
    if module.stem == "printing":
        return
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in PRINTING, f"{module.name}:{node.lineno}: {called}"


PRINTING = (
    "print",
    "click.echo",
    "click.secho",
    "click.confirm",
    "click.prompt",
    "sys.stdout.write",
    "sys.stderr.write",
)
