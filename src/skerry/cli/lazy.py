"""A group of commands, each of which is loaded when it is used.

Loading takes longer than most commands have to do: a syncer does not pay for the server, nor who
stops an edge for what joins one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from skerry.cli.extras import missing_extra, refuse


class LazyGroup(click.Group):
    """A group that imports a command when somebody asks for it."""

    def __init__(
        self,
        *args: Any,
        modules: Mapping[str, str],
        extras: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,
    ) -> None:
        """*modules* of ``skerry.cli`` by command; each has a function of the command's name.

        A command of *extras* needs one of them.
        """
        super().__init__(*args, **settings)
        self._modules = modules
        self._extras = extras or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._modules})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self._modules:
            if extra := missing_extra(self._extras.get(cmd_name, ())):
                return _lacking(cmd_name, extra)
            module = importlib.import_module(f"skerry.cli.{self._modules[cmd_name]}")
            self.add_command(getattr(module, cmd_name.replace("-", "_")))
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands by name alone: their help would cost the loading of all of them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        names = self.list_commands(ctx)
        hidden = {name for name, command in self.commands.items() if command.hidden}
        return [
            CompletionItem(name)
            for name in names
            if name.startswith(incomplete) and name not in hidden
        ]


def _lacking(name: str, extra: str) -> click.Command:
    """Return what stands for the command *name* where *extra* is not installed."""

    @click.command(
        name,
        short_help=f"(needs pip install 'skerry[{extra}]')",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def lacking(words: tuple[str, ...]) -> None:
        refuse(f"skerry {name}", extra)

    return lacking
