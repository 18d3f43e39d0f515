"""The flags by which commands find a hub, and how they end when it does not answer."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import uvloop

from skerry.api.errors import ApiError
from skerry.app.explain_names import Unanswered
from skerry.app.hub_settings import HubSettings
from skerry.cli.common_flags import Command, Flag, with_flags
from skerry.cli.printing import show
from skerry.kit import log
from skerry.runtime.transport import TransportError
from skerry.wire.kubeconfig import KubeconfigError

T = TypeVar("T")

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


def finds_hub(command: Command) -> Command:
    """Add the flags by which a hub is found; ``hub_settings`` reads them."""
    return with_flags(command, FIND_HUB)


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
        show(f"skerry {name}: {error}", error=True)
        sys.exit(1)
