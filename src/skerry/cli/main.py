"""The skerry command.

Each command's module is loaded when the command is used: a syncer does not pay for the server,
nor the server for the scheduler.
"""

from __future__ import annotations

import importlib

import click
from click.shell_completion import CompletionItem

import skerry
from skerry.cli.extras import EXTRAS_OF_COMMANDS, missing_extra, refuse

# Where each command is; its function has the command's name.
_MODULES = {
    "serve": "serve",
    "hub": "hub",
    "console": "console",
    "controllers": "controllers",
    "scheduler": "scheduler",
    "syncer": "syncer",
    "edge": "edge",
    "up": "up",
    "down": "up",
    "status": "up",
    "explain": "explain",
    "history": "history",
    "diff": "diff",
    "fleet": "fleet",
    "grants": "grants",
    "query": "query",
    "rollout": "rollout",
    "whatif": "whatif",
    "manifests": "manifests",
    "backup": "backup",
    "restore": "backup",
    "secrets": "secrets",
    "certificates": "certificates",
    "demo": "demo",
    "completion": "completion",
    "docs": "docs",
    "version": "version",
}


class LazyGroup(click.Group):
    """A group that imports a command when somebody asks for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_MODULES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in _MODULES:
            if extra := missing_extra(EXTRAS_OF_COMMANDS.get(cmd_name, ())):
                return _lacking(cmd_name, extra)
            module = importlib.import_module(f"skerry.cli.{_MODULES[cmd_name]}")
            self.add_command(getattr(module, cmd_name))
        return super().get_command(ctx, cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands by name alone: their help would cost the loading of all of them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        names = self.list_commands(ctx)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


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


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: skerry demo",
)
@click.version_option(skerry.__version__, prog_name="skerry")
def main() -> None:
    """Place workloads on very many edge clusters, speaking plain Kubernetes."""
