"""How the tour is narrated, on a terminal and into a pipe."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from skerry.cli.demo import PlainNarrator, TerminalNarrator
from skerry.cli.main import main
from tests.kit.ports import free_ports


def test_a_pipe_gets_one_plain_line_per_stop(capsys: pytest.CaptureFixture[str]) -> None:
    narrator = PlainNarrator()
    narrator.begin("Create a namespace")
    narrator.end("it is there", 12.3)
    narrator.begin("Delete it")
    narrator.fail("it is still there")
    assert capsys.readouterr().out.splitlines() == [
        "ok   Create a namespace (12 ms): it is there",
        "FAIL Delete it: it is still there",
    ]


def test_a_terminal_shows_progress_and_never_reads_markup_in_what_it_reports() -> None:
    output = io.StringIO()
    narrator = TerminalNarrator(Console(file=output, force_terminal=True, width=200))
    narrator.begin("Create a namespace")
    narrator.end("spec: [bold]not markup[/]", 3)
    narrator.begin("Delete it")
    narrator.fail("[no] such thing")
    narrator.say("export KUBECONFIG=/tmp/[x]")
    printed = output.getvalue()
    for expected in ("Create a namespace", "[bold]not markup[/]", "[no] such thing", "/tmp/[x]"):
        assert expected in printed


EVIL = "a\x1b[2J\nb\x9b2J\u202e[bold]c"


def test_what_is_narrated_is_only_read(capsys: pytest.CaptureFixture[str]) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, color_system=None, width=200)
    for narrator in (PlainNarrator(), TerminalNarrator(console)):
        narrator.begin(EVIL)
        narrator.end(EVIL, 3)
        narrator.begin(EVIL)
        narrator.fail(EVIL)
        narrator.say(EVIL)
    shown = "a?[2J b?2J?[bold]c"
    assert capsys.readouterr().out.splitlines() == [
        f"ok   {shown} (3 ms): {shown}", f"FAIL {shown}: {shown}", shown
    ]  # fmt: skip
    written = output.getvalue()
    assert written.count(shown) >= 5
    assert not {"\x9b", "\u202e"} & set(written)
    assert "\x1b[2J" not in written


def test_why_a_server_did_not_start_is_one_line_that_is_only_read(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[2J\nb\x9b2J"
    folder.mkdir()
    (folder / "store.db").touch()
    free = ["--ports", *map(str, free_ports(3))]
    ended = CliRunner().invoke(main, ["demo", "--once", "--data-dir", str(folder), *free])
    assert ended.exit_code == 1
    assert ended.output.startswith(f"Error: {tmp_path}/a?[2J b?2J holds the state of an earlier")
    assert ended.output.count("\n") == 1


def test_a_command_stays_one_line_on_a_narrow_terminal() -> None:
    output = io.StringIO()
    line = "  kubectl --kubeconfig " + "/a/long/way" * 12 + " get pods --all-namespaces"
    TerminalNarrator(Console(file=output, force_terminal=True, width=40)).say(line)
    assert output.getvalue() == f"{line}\n"


def test_the_state_of_an_earlier_run_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    free = ["--ports", *map(str, free_ports(3))]
    ended = CliRunner().invoke(main, ["demo", "--once", "--data-dir", str(tmp_path), *free])
    assert ended.exit_code == 1
    assert ended.output == (
        f"Error: {tmp_path} holds the state of an earlier run: remove it, or name another folder\n"
    )
