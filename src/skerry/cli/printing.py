"""Where commands print.

What they print is made of what others have written: names and messages of objects, errors of
servers, whatever an edge reports. A terminal obeys some of it: an escape sequence clears the
screen, sets the title or hides what comes next. So each text goes through here, and comes out as
one that is only read. It does into a pipe as well, since ``less`` and a log are read on a terminal
in the end.

A line stays one: whoever could add lines would forge those by which a person decides. So ``show``
prints one whatever it is given, and ``show_text`` is for texts whose lines somebody has made inert
one by one, or that are ours alone.

JSON goes its own way, byte for byte: it has escapes of its own and is for programs. So does what
``skerry logs`` and ``skerry exec`` pass on, which is the terminal's to obey (``cli.terminal``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from skerry.kit.text import inert, inert_line

_CLEAR = "\x1b[H\x1b[2J"


def show(line: str, *, error: bool = False, flush: bool = False) -> None:
    """Print one line, whatever it is made of; *error*: for people beside the output."""
    print(inert_line(line), file=sys.stderr if error else sys.stdout, flush=flush)


def show_lines(lines: Iterable[str], *, error: bool = False) -> None:
    """Print each as one line."""
    for line in lines:
        show(line, error=error)


def show_text(text: str, *, error: bool = False, flush: bool = False) -> None:
    """Print a text that has lines of its own, and ends with one.

    Nobody else's words may be in it but where its lines were made inert one by one, or in a form
    that says itself where each of them ends, such as YAML.
    """
    print(inert(text), file=sys.stderr if error else sys.stdout, end="", flush=flush)


def show_json(value: object, *, indent: int | None = 2) -> None:
    """Print what is for programs."""
    print(json.dumps(value, indent=indent))


def show_progress(text: str, *, last: bool) -> None:
    """Show a line in place on a terminal, and only the last one elsewhere."""
    if sys.stdout.isatty():
        print(f"\r{inert_line(text)}", end="\n" if last else "", flush=True)
    elif last:
        show(text)


def clear_screen() -> None:
    """Have what is shown next begin at the top of an empty terminal."""
    print(_CLEAR, end="")


def confirmed(question: str, *, error: bool = False) -> bool:
    """Tell whether a person says yes to one line; with *error* asked beside the output."""
    import click

    return click.confirm(inert_line(question), err=error)
