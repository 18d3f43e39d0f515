"""The arguments by which commands name a pod at an edge."""

from __future__ import annotations

import click

from skerry.cli.common_flags import Command, Flag, with_flags

_POD: tuple[Flag, ...] = (
    click.argument("edge"),
    click.argument("pod"),
    click.option(
        "-n", "--namespace", default="", help="Namespace of the pod; else that of the context."
    ),
)
_CONTAINER: Flag = click.option(
    "-c", "--container", default="", help="Container of the pod, where it has several."
)


def at_edge(command: Command) -> Command:
    """Add what names a pod."""
    return with_flags(command, _POD)


def at_pod(command: Command) -> Command:
    """Add what names a container of a pod."""
    return with_flags(command, (*_POD, _CONTAINER))
