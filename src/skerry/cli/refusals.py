"""What click prints of a refusal, as one line that is only read.

Click prints its exceptions itself, beside ``cli.printing``. They come from commands, from types of
parameters and from click, and repeat words, files and errors of servers; so their message is made
inert where all of them pass, in the group that a program begins with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from skerry.kit.text import inert_line


class RefusingGroup(click.Group):
    """A group whose refusals, and those of all commands below it, are one inert line."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _inert():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _inert():
            return super().invoke(ctx)


@contextmanager
def _inert() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = inert_line(error.message)  # typed as final
        raise
