"""Flags that commands of every kind have, without the libraries that only servers need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Command = Callable[..., Any]
Flag = Callable[[Command], Command]


def with_flags(command: Command, flags: Sequence[Flag]) -> Command:
    """Add *flags* to a command, in the order they are shown."""
    for flag in reversed(flags):
        command = flag(command)
    return command


def output_flag(*forms: str) -> Flag:
    """Return the flag for the form of an answer; the first is the usual one."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Form of the answer.",
    )
