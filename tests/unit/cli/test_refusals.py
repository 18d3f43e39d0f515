"""What click prints of a refusal is one line, whoever raised it."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from skerry.cli.refusals import RefusingGroup

EVIL = "a\x1b[2J\nError: b\x9b2J\u202e"
INERT = "a?[2J Error: b?2J?"


class Strict(click.ParamType[str]):
    name = "strict"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        self.fail(EVIL, param, ctx)


@click.group(cls=RefusingGroup)
@click.option("--strict", type=Strict())
def program(strict: str | None) -> None:
    pass


@program.group()
def inner() -> None:
    pass


@inner.command()
@click.option("--strict", type=Strict())
@click.option("--kind", default="")
def command(strict: str | None, kind: str) -> None:
    refusals = {
        "failure": click.ClickException(EVIL),
        "usage": click.UsageError(EVIL),
        "value": click.BadParameter(EVIL),
    }
    raise refusals[kind]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["inner", "command", "--kind", "failure"], 1),
        (["inner", "command", "--kind", "usage"], 2),
        (["inner", "command", "--kind", "value"], 2),
        (["inner", "command", "--strict", "x"], 2),
        (["--strict", "x"], 2),
        (["inner", EVIL], 2),
        ([EVIL], 2),
        ([f"--{EVIL}"], 2),
    ],
)
def test_a_refusal_is_one_line_that_is_only_read(words: list[str], code: int) -> None:
    result = CliRunner().invoke(program, words)
    assert result.exit_code == code
    *usage, line = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()
    assert all(each.startswith(("Usage: ", "Try ")) or not each for each in usage)


def test_the_message_is_kept_but_for_what_is_obeyed() -> None:
    result = CliRunner().invoke(program, ["inner", "command", "--kind", "failure"])
    assert result.stderr == f"Error: {INERT}\n"


def test_every_program_of_click_refuses_so() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    begun = [text.split(":") for text in project["project"]["scripts"].values()]
    mains = [getattr(import_module(module), name) for module, name in begun]
    groups = [each for each in mains if isinstance(each, click.Command)]
    assert groups
    assert all(isinstance(each, RefusingGroup) for each in groups)
