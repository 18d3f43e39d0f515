"""A group of commands, each of which is loaded when it is used.

Loading takes longer than most commands have to do: a syncer does not pay for the server, nor who
stops an edge for what joins one. So the sentence by which a command is listed stands beside the
name of its module: whoever asks what there is waits for none of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from skerry.cli.extras import missing_extra, refuse
from skerry.cli.refusals import RefusingGroup


class Listed(NamedTuple):
    """A command of a list: the module of ``skerry.cli`` that has a function of its name."""

    module: str
    short_help: str


# One line of a terminal, beside the longest name.
_SHORT_HELP_LENGTH = 64


class LazyGroup(RefusingGroup):
    """A group that imports a command when somebody asks for it, and lists it without."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, Listed]],
        extras: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,
    ) -> None:
        """*sections* by heading, in order; a command of *extras* needs one of those."""
        super().__init__(*args, **settings)
        self._sections = sections
        self.listed = {name: each for part in sections.values() for name, each in part.items()}
        self._extras = extras or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.listed})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self.listed:
            if extra := missing_extra(self._extras.get(cmd_name, ())):
                return _lacking(cmd_name, extra)
            module = importlib.import_module(f"skerry.cli.{self.listed[cmd_name].module}")
            self.add_command(getattr(module, cmd_name.replace("-", "_")))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section; those that are here already come first."""
        parts = {"Commands": self._own_rows(ctx)} | {
            heading: [(name, self._short_help(name)) for name in part]
            for heading, part in self._sections.items()
        }
        width = max((len(name) for rows in parts.values() for name, _ in rows), default=0)
        for heading, rows in parts.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def _own_rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        own = [self.commands[name] for name in super().list_commands(ctx)]
        return [
            (command.name or "", command.get_short_help_str(_SHORT_HELP_LENGTH))
            for command in own
            if not command.hidden and command.name not in self.listed
        ]

    def _short_help(self, name: str) -> str:
        extra = missing_extra(self._extras.get(name, ()))
        return _needs(extra) if extra else self.listed[name].short_help

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


def _needs(extra: str) -> str:
    return f"(needs pip install 'skerry[{extra}]')"


def _lacking(name: str, extra: str) -> click.Command:
    """Return what stands for the command *name* where *extra* is not installed."""

    @click.command(
        name,
        short_help=_needs(extra),
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def lacking(words: tuple[str, ...]) -> None:
        refuse(f"skerry {name}", extra)

    return lacking
