"""Commands are listed without being loaded, and loaded when they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from skerry.cli.edge import edge
from skerry.cli.lazy import LazyGroup, Listed
from skerry.cli.main import main

SECTIONS = {
    "See": {"version": Listed("version", "Print the version.")},
    "Run": {"serve": Listed("serve", "Run a server.")},
}


def group(**extras: tuple[str, ...]) -> LazyGroup:
    return LazyGroup("some", sections=SECTIONS, extras=extras)


def test_commands_are_listed_by_section_in_the_order_given() -> None:
    said = CliRunner().invoke(group(), ["--help"]).output
    assert said.partition("\n\nSee:\n")[2] == (
        "  version  Print the version.\n\nRun:\n  serve    Run a server.\n"
    )


def test_what_the_group_has_itself_comes_first_and_what_is_hidden_not_at_all() -> None:
    made = group()
    made.add_command(click.Command("own", help="Be here already."))
    made.add_command(click.Command("inner", help="Serve another command.", hidden=True))
    said = CliRunner().invoke(made, ["--help"]).output
    assert said.index("Commands:\n  own      Be here already.") < said.index("See:")
    assert "inner" not in said


def test_a_command_stays_in_its_section_once_it_was_loaded() -> None:
    made = group()
    before = CliRunner().invoke(made, ["--help"]).output
    assert CliRunner().invoke(made, ["version", "--help"]).exit_code == 0
    assert CliRunner().invoke(made, ["--help"]).output == before


def test_a_command_that_lacks_packages_is_listed_with_what_brings_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("skerry.cli.lazy.missing_extra", "".join)
    said = CliRunner().invoke(group(serve=("hub",)), ["--help"]).output
    assert "serve    (needs pip install 'skerry[hub]')" in said
    assert "Print the version." in said


def test_listing_all_commands_loads_none() -> None:
    program = (
        "import sys; from skerry.cli.main import main; main(['--help'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('skerry.app')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("name", "listed"),
    [(name, listed) for group in (main, edge) for name, listed in group.listed.items()],
)
def test_every_command_that_is_listed_is_there(name: str, listed: Listed) -> None:
    module = importlib.import_module(f"skerry.cli.{listed.module}")
    command = getattr(module, name.replace("-", "_"))
    assert isinstance(command, click.Command)
    assert command.name == name
    # One line of a terminal beside the name.
    assert len(listed.short_help) <= 64
    assert listed.short_help.endswith(".")
