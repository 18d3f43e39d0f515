"""The flags by which commands find a hub, and how they end when it does not answer."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import click
import uvloop

from skerry.api.errors import ApiError
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.cli.options import Command
from skerry.kit import log
from skerry.runtime.transport import TransportError
from skerry.wire.kubeconfig import KubeconfigError

T = TypeVar("T")
Flag = Callable[[Command], Command]

FIND_HUB: tuple[Flag, ...] = (
    click.option(
        "--kubeconfig",
        default="",
        help="Kubeconfig of the hub; else $KUBECONFIG, else ~/.kube/config.",
    ),
    click.option("--context", default="", help="Kubeconfig context; else the current one."),
    click.option("--merged", envvar="KUBECONFIG", default="", hidden=True),
    click.option("--home", envvar="HOME", default="", hidden=True),
)


def with_flags(command: Command, flags: Iterable[Flag]) -> Command:
    """Return *command* with *flags*, in their order in its help."""
    for flag in reversed(list(flags)):
        command = flag(command)
    return command


def hub_settings(flags: dict[str, Any]) -> HubSettings:
    """Return what the values of ``FIND_HUB`` (and ``--espw-path``, where there is one) mean."""
    return HubSettings(
        kubeconfig=flags["kubeconfig"],
        context=flags["context"],
        environment={"KUBECONFIG": flags["merged"], "HOME": flags["home"]},
        provider=flags.get("espw_path", ""),
    )


def answer_or_exit(
    name: str, answered: Callable[[], Awaitable[T]], *refusals: type[Exception]
) -> T:
    """Return what a command finds; exits with 1 and a sentence where there is no answer.

    *refusals* are what the command itself raises to say so.
    """
    log.configure(verbosity=0)
    expected: tuple[type[Exception], ...] = (
        Unanswered,
        ApiError,
        KubeconfigError,
        TransportError,
        *refusals,
    )

    async def run() -> T:
        return await answered()

    try:
        return uvloop.run(run())
    except expected as error:
        print(f"skerry {name}: {error}", file=sys.stderr)
        sys.exit(1)
