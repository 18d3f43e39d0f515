"""Where commands print.

What they print is made of what others have written: names and messages of objects, errors of
servers, whatever an edge reports. A terminal obeys some of it: an escape sequence clears the
screen, sets the title or hides what comes next. So each text goes through here, and comes out as
one that is only read. It does into a pipe as well, since ``less`` and a log are read on a terminal
in the end.

JSON goes its own way, byte for byte: it has escapes of its own and is for programs. So does what
``skerry logs`` and ``skerry exec`` pass on, which is the terminal's to obey (``cli.terminal``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from skerry.kit.text import inert, inert_line

_CLEAR = "\x1b[H\x1b[2J"


def show(text: str, *, error: bool = False, end: str = "\n", flush: bool = False) -> None:
    """Print a text, which may have several lines; *error*: for people beside the output."""
    print(inert(text), file=sys.stderr if error else sys.stdout, end=end, flush=flush)


def show_lines(lines: Iterable[str], *, error: bool = False) -> None:
    """Print each as one line, whatever it is made of."""
    for line in lines:
        show(inert_line(line), error=error)


def show_json(value: object, *, indent: int | None = 2) -> None:
    """Print what is for programs."""
    print(json.dumps(value, indent=indent))


def show_progress(text: str, *, last: bool) -> None:
    """Show a line in place on a terminal, and only the last one elsewhere."""
    if sys.stdout.isatty():
        print(f"\r{inert_line(text)}", end="\n" if last else "", flush=True)
    elif last:
        show_lines([text])


def clear_screen() -> None:
    """Have what is shown next begin at the top of an empty terminal."""
    print(_CLEAR, end="")


def confirmed(question: str, *, error: bool = False) -> bool:
    """Tell whether a person says yes; with *error* asked beside the output."""
    import click

    return click.confirm(inert(question), err=error)
