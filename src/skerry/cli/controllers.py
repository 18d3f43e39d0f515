"""skerry controllers: the edge controllers against a hub."""

from __future__ import annotations

import sys
from typing import Any

import click

from skerry.app.edge_controllers import (
    EDGE_CONTROLLERS,
    ControllerSettings,
    StartError,
    run_controllers,
)
from skerry.app.edge_environment import ROLE_PREFIXES, ClientFlags, Role
from skerry.cli.common_flags import Command
from skerry.cli.service import notify_ready
from skerry.kit.log import announce, report_failure
from skerry.logic.fleet.history.retention import InvalidRetention, Limits, limits_of

_PARTS = ("kubeconfig", "context", "user", "cluster")


class _Verbosity(click.ParamType[int]):
    """A number that may follow its short flag with an equals sign, as Go's flags allow."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return int(text)


class Retention(click.ParamType[Limits]):
    """How long something is kept: days or hours, or not at all."""

    name = "age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Limits:
        if isinstance(value, Limits):
            return value
        try:
            return limits_of(str(value), Limits())
        except InvalidRetention as error:
            self.fail(str(error), param, ctx)


def _client_flags(command: Command) -> Command:
    """Add four flags for each name a role goes by."""
    for role, prefixes in reversed(list(ROLE_PREFIXES.items())):
        for prefix in reversed(prefixes):
            for part in reversed(_PARTS):
                text = (
                    f"Kubeconfig {part} for the {role} client."
                    if part != "kubeconfig"
                    else (f"Kubeconfig file for the {role} client.")
                )
                command = click.option(f"--{prefix}-{part}", default="", help=text)(command)
    return command


def _clients(flags: dict[str, Any]) -> dict[Role, ClientFlags]:
    """Take the flags of clients out of *flags*; of several names for a role the first counts."""
    return {
        role: ClientFlags(
            *(
                next(filter(None, [flags.pop(f"{prefix}_{part}") for prefix in prefixes]), "")
                for part in _PARTS
            )
        )
        for role, prefixes in ROLE_PREFIXES.items()
    }


@click.command(
    epilog="""\b
Examples:
  kubectl ws root:espw; skerry controllers
  skerry controllers --only mailbox -v 2 --espw-path root:espw
  skerry controllers --only edge-scheduler --kcp-kubeconfig .kcp/admin.kubeconfig
"""
)
@click.option(
    "--kubeconfig",
    "--kcp-kubeconfig",
    "kubeconfig",
    default="",
    help="Kubeconfig of the hub; else $KUBECONFIG, else ~/.kube/config.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(sorted(EDGE_CONTROLLERS)),
    help="Run this controller only; repeatable.",
)
@click.option("--espw-path", default="", help="Provider workspace; default the current workspace.")
@click.option("--concurrency", type=click.IntRange(1, 1024), help="Workers of each controller.")
@click.option(
    "--server-bind-address",
    default="",
    help="host:port for /metrics and /healthz; default a port of the controller's own, if free.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Wait for a Lease in the provider workspace before acting.",
)
@click.option(
    "--strict-customization/--no-strict-customization",
    default=True,
    show_default=True,
    help="Withhold objects whose Customizer is missing or cannot be followed; "
    "else the translator copies them as far as they could be customized.",
)
@click.option(
    "--denatured-kinds",
    type=click.Choice(["auto", "withhold", "copy"]),
    default="auto",
    show_default=True,
    help="What the translator does with kinds that act on the server they are on (RBAC, quotas, "
    "webhooks, ServiceAccounts …): copy them, withhold them with a condition, or copy them "
    "only to a hub on which copies have no effect, which is skerry's.",
)
@click.option(
    "--query-memory",
    type=click.IntRange(1, 1 << 20),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Memory that all StatusQueries together may hold, about, in MiB; what is beyond is not "
    "kept up, and its condition Complete says so.",
)
@click.option(
    "--floor/--no-floor",
    default=True,
    show_default=True,
    help="Hold a decision of the edge scheduler that would take more than 50 and more than half of "
    "its destinations from a placement, until a person confirms it; --no-floor is for tests.",
)
@click.option(
    "--history-retention",
    type=Retention(),
    default="30d",
    show_default=True,
    help="How long DecisionRecords of placements are kept, such as 90d or 12h; 0 writes none.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of log lines.",
)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=_Verbosity(),
    default=2,
    show_default=True,
    help="Log verbosity, as klog counts it.",
)
@click.option("--merged", envvar="KUBECONFIG", default="", hidden=True)
@click.option("--home", envvar="HOME", default="", hidden=True)
@_client_flags
def controllers(
    *,
    kubeconfig: str,
    merged: str,
    home: str,
    only: tuple[str, ...],
    espw_path: str,
    concurrency: int | None,
    server_bind_address: str,
    leader_elect: bool,
    strict_customization: bool,
    denatured_kinds: Any,
    floor: bool,
    query_memory: int,
    history_retention: Limits,
    log_format: Any,
    verbosity: int,
    **flags: Any,
) -> None:
    """Run the edge controllers against a hub, all of them or some.

    The provider workspace is --espw-path, or else the current workspace, or root:espw when only
    that exports the edge API. Stops cleanly on SIGTERM and SIGINT.
    """
    settings = ControllerSettings(
        kubeconfig=kubeconfig,
        environment={"KUBECONFIG": merged, "HOME": home},
        only=only,
        clients=_clients(flags),
        provider=espw_path,
        concurrency=concurrency,
        bind_address=server_bind_address,
        strict_customization=strict_customization,
        denatured_kinds=denatured_kinds,
        floor=floor,
        history=history_retention,
        query_memory=query_memory << 20,
        leader_elect=leader_elect,
        log_format=log_format,
        verbosity=verbosity,
    )
    try:
        run_controllers(settings, announce=announce, started=notify_ready)
    except StartError as error:
        report_failure("skerry controllers", error)
        sys.exit(1)
