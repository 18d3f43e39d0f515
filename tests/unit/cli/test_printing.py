"""What commands print is text, whatever is in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import skerry
from skerry.cli.printing import (
    confirmed,
    show,
    show_json,
    show_lines,
    show_progress,
    show_text,
)

EVIL = "a\x1b[2Jb\x9bc\x07\rd\u202ee"
INERT = "a?[2Jb?c? d?e"
SOURCE = Path(skerry.__file__).parent
# What writes to whoever started the process: calls by the end of their name, and the streams.
CALLS = re.compile(
    r"^print$|\.print$|^pprint\.|print_exc(eption)?$|^rich\.console\.Console$"
    r"|^click\.(echo|echo_via_pager|secho|confirm|prompt)$"
)
STREAMS = re.compile(r"^sys\.(__)?std(out|err)(__)?$")
# Without one of these a module prints nothing.
WORDS = re.compile(r"\b(p?print\w*|click|stdout|stderr|__std|os\.write|rich)\b")
# Where else that is done, and why it harms nobody.
REASONS = {
    "app/process_group.py": "a traceback of ours",
    "app/supervisor.py": "numbers alone, without any module of ours",
    "cli/demo.py": "Rich prints what was made inert before",
    "cli/fleet.py": "Rich prints cells and sentences that were made inert before",
    "cli/logs.py": "a log is the terminal's to obey",
    "cli/printing.py": "this is the place",
    "cli/rollout.py": "Rich shows lines that were made inert before",
    "cli/terminal.py": "a session is the terminal's to obey",
    "edge/agent/entering.py": "within a container, whose terminal obeys it as it likes",
    "edge/agent/network_keeper.py": "JSON for the agent",
    "edge/agent/shim.py": "JSON for the agent",
    "edge/agent/static_server.py": "what clients ask is escaped; a program of its own",
    "edge/syncer/identity/signing_request.py": "a signing request for the process that asked",
    "kit/log.py": "the place of what is logged and announced",
    "server/offload/worker.py": "answers for the process that asked",
}


def test_no_control_character_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show(EVIL)
    show(EVIL, error=True)
    show_text(f"one\n\ttwo {EVIL}")
    shown = capsys.readouterr()
    assert shown.out == f"{INERT}\none\n\ttwo {INERT}"
    assert shown.err == f"{INERT}\n"


def test_a_line_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    show("a\nb")
    show_lines([EVIL])
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
        click.echo(confirmed(f"delete {EVIL}\nnothing?"))

    result = CliRunner().invoke(asks, input="y\n")
    assert result.output == f"delete {INERT} nothing? [y/N]: y\nTrue\n"


def test_progress_is_one_line_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    show_progress("1 of 2", last=False)
    show_progress(f"2 of 2 {EVIL}", last=True)
    assert capsys.readouterr().out == f"2 of 2 {INERT}\n"


def printing(source: str) -> list[str]:
    """Return what prints in a module, each by the name it was imported under."""
    tree = ast.parse(source)
    imported = _imported(tree)
    harmless = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("isatty", "flush", "fileno")
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = _named(node.func, imported)
            writes = called == "os.write" and ast.unparse(node.args[0]) in ("1", "2")
            if writes or CALLS.search(called):
                found.append(f"{node.lineno}: {called}")
        elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in harmless:
            named = _named(node, imported)
            if STREAMS.match(named):
                found.append(f"{node.lineno}: {named}")
    return found


def _imported(tree: ast.AST) -> dict[str, str]:
    """Return what local names stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname: each.name for each in node.names if each.asname}
    return found


def _named(node: ast.expr, imported: Mapping[str, str]) -> str:
    """Return what *node* names; of what is more than a name, the last part."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest, node = f".{node.attr}{rest}", node.value
    return (imported.get(node.id, node.id) if isinstance(node, ast.Name) else "") + rest


def test_there_are_few_places_where_anything_is_printed() -> None:
    """What is printed elsewhere would have to remember what an edge may have written."""
    found = {
        name: places
        for path in sorted(SOURCE.rglob("*.py"))
        if WORDS.search(text := path.read_text())
        if (places := printing(text))
        if (name := path.relative_to(SOURCE).as_posix()) not in REASONS
    }
    assert not found, "print by cli.printing, or say in REASONS why it harms nobody"


@pytest.mark.parametrize("name", REASONS)
def test_a_place_that_may_print_does(name: str) -> None:
    assert printing((SOURCE / name).read_text())


@pytest.mark.parametrize(
    "text",
    [
        "print(x)",
        "import click\nclick.secho(x)",
        "import click as c\nc.prompt(x)",
        "from click import confirm as ask\nask(x)",
        "from click import echo\necho(x)",
        "import sys\nsys.stdout.write(x)",
        "import sys\nsys.stderr.buffer.writelines(x)",
        "from sys import stdout\nstdout.write(x)",
        "import sys as s\ns.__stdout__.write(x)",
        "self._console.print(x)",
        "import traceback\ntraceback.print_exc()",
        "from pprint import pprint\npprint(x)",
        "import os\nos.write(2, x)",
        "import sys\nto = sys.stdout.buffer",
        "import sys\nf(file=sys.stderr)",
        "from rich.console import Console\nConsole()",
    ],
)
def test_whatever_prints_is_seen(text: str) -> None:
    assert printing(text)


@pytest.mark.parametrize(
    "text",
    [
        "found.confirm(x)",
        "file.write(x)",
        "show(x)",
        "import os\nos.write(pipe, x)",
        "import sys\nsys.stdout.flush()\nsys.stdin.isatty()\nsys.stderr.isatty()",
        "process.stdout.write(x)",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert not printing(text)
