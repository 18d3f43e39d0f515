"""skerry scheduler: places pods on nodes, flag by flag as kube-scheduler."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import fields
from typing import Any

import click

from skerry.app.pod_explanation import Question
from skerry.app.pod_explanation import explain as explained
from skerry.app.pod_scheduler import (
    PodSchedulerSettings,
    StartError,
    log,
    run_pod_scheduler,
)
from skerry.cli.common_flags import Command, Flag, with_flags
from skerry.cli.options import FILE, FOLDER, bind_address_flag, log_flags
from skerry.cli.printing import show, show_text
from skerry.cli.service import notifying
from skerry.kit.log import announce
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.flags import Flags
from skerry.scheduler.config.gates import GateError, Gates, parse_gates
from skerry.scheduler.config.schema import parse_duration

_SWITCHES = ("leader-elect", "profiling", "contention-profiling")
_GLUED = re.compile(r"-v=(.*)")


class _GoDuration(click.ParamType[float]):
    """A duration such as ``1m30s``, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value))
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


class _FeatureGates(click.ParamType[Gates]):
    """A list such as ``SchedulerQueueingHints=false``."""

    name = "gates"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Gates:
        if isinstance(value, Gates):
            return value
        try:
            return parse_gates(str(value))
        except GateError as error:
            self.fail(str(error), param, ctx)


class _GoFlags(click.Group):
    """Reads flags as Go does: a switch takes a value only after ``=``, and so may ``-v``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_spelled(word) for word in args])


def _spelled(word: str) -> str:
    if word.removeprefix("--") in _SWITCHES and word.startswith("--"):
        return f"{word}=true"
    glued = _GLUED.fullmatch(word)
    return f"-v{glued[1]}" if glued else word


_FLAGS: list[Flag] = [
    click.option("--config", type=FILE, help="KubeSchedulerConfiguration file."),
    click.option(
        "--write-config-to", type=FILE, help="Write the effective configuration there and exit."
    ),
    click.option(
        "--kubeconfig", help="Kubeconfig of the API server; counts only without --config."
    ),
    click.option("--master", default="", help="URL of the API server, over the kubeconfig's."),
    click.option("--leader-elect", type=bool, help="Wait for a Lease before scheduling."),
    click.option(
        "--leader-elect-lease-duration", type=_GoDuration(), help="How long others wait for us."
    ),
    click.option(
        "--leader-elect-renew-deadline", type=_GoDuration(), help="When to give up renewing."
    ),
    click.option("--leader-elect-retry-period", type=_GoDuration(), help="Time between tries."),
    click.option("--leader-elect-resource-lock", help="Kind of lock: leases."),
    click.option("--leader-elect-resource-name", help="Name of the Lease."),
    click.option("--leader-elect-resource-namespace", help="Namespace of the Lease."),
    click.option(
        "--secure-port",
        type=click.IntRange(0, 65535),
        default=10259,
        show_default=True,
        help="Port for health, metrics and configuration; 0 serves none.",
    ),
    bind_address_flag("0.0.0.0"),  # noqa: S104 - kube-scheduler's default
    click.option("--tls-cert-file", type=FILE, help="Its certificate; made up by default."),
    click.option("--tls-private-key-file", type=FILE, help="Key of --tls-cert-file."),
    click.option(
        "--cert-dir", type=FOLDER, help="Where a certificate made up is kept; else nowhere."
    ),
    click.option(
        "--authentication-kubeconfig", type=FILE, help="Server that reviews callers' tokens."
    ),
    click.option(
        "--authorization-kubeconfig", type=FILE, help="Server that reviews callers' access."
    ),
    click.option(
        "--pod-max-in-unschedulable-pods-duration",
        "max_unschedulable_seconds",
        type=_GoDuration(),
        default="5m0s",
        show_default=True,
        help="Longest time before an unschedulable pod is tried again.",
    ),
    click.option("--kube-api-qps", type=float, help="Requests/s; counts only without --config."),
    click.option("--kube-api-burst", type=int, help="Burst; counts only without --config."),
    click.option("--kube-api-content-type", help="Accepted; requests are JSON."),
    click.option("--profiling", type=bool, help="Serve /debug/pprof; only without --config."),
    click.option("--contention-profiling", type=bool, help="Accepted; shown in the configuration."),
    click.option(
        "--feature-gates",
        "gates",
        type=_FeatureGates(),
        default="",
        help="Name=true or =false, separated by commas; refused where it cannot be had.",
    ),
    *log_flags("--logging-format", verbosity=0),
]


def _scheduler_flags(command: Command) -> Command:
    return with_flags(command, _FLAGS)


@click.group(
    cls=_GoFlags,
    invoke_without_command=True,
    epilog="""\b
Examples:
  skerry scheduler --kubeconfig .skerry/admin.kubeconfig --leader-elect=false
  skerry scheduler --config scheduler.yaml -v 2
  skerry scheduler --config scheduler.yaml --write-config-to effective.yaml
  skerry scheduler explain web-0 -n shop

\b
Signals: SIGTERM and SIGINT stop it, SIGHUP reads --config anew, SIGUSR2 logs cache and queue.
\b
Exit codes:
  0  stopped by a signal, or the configuration was written
  1  could not start, or another scheduler leads now
  2  the command was called in a way it does not understand
""",
)
@_scheduler_flags
@click.pass_context
def scheduler(ctx: click.Context, /, **values: Any) -> None:
    """Place pods on nodes of any Kubernetes cluster, as kube-scheduler does.

    With --config only the --leader-elect flags override the file.
    """
    names = {field.name for field in fields(Flags)}
    flags = Flags(**{name: value for name, value in values.items() if name in names})
    settings = PodSchedulerSettings(
        flags=flags,
        environment=dict(os.environ),  # noqa: TID251 - in a pod, where the cluster is
        **{name: value for name, value in values.items() if name not in names},
    )
    if ctx.invoked_subcommand is not None:
        ctx.obj = settings
        return
    try:
        run_pod_scheduler(settings, announce=notifying(announce))
    except StartError as error:
        log.error("command failed", err=str(error))
        sys.exit(1)


@scheduler.command(
    epilog="""\b
Examples:
  skerry scheduler explain web-0 -n shop
  skerry scheduler --config scheduler.yaml explain -f pod.yaml
"""
)
@click.argument("pod", required=False)
@click.option("-n", "--namespace", default="", help="Namespace; else the kubeconfig's.")
@click.option("-f", "--filename", "file", type=FILE, help="A pod, or what makes pods, in a file.")
@click.option("--kubeconfig", default="", help="Kubeconfig; else as the scheduler, else kubectl.")
@click.option("--context", default="", help="Kubeconfig context; else the current one.")
@click.pass_obj
def explain(settings: PodSchedulerSettings, /, pod: str | None, **question: Any) -> None:
    """Tell where POD would go, and why; nothing is bound.

    Per node: the first plugin that turns it down and its reasons, or the score by plugin. A pod
    that has a node is looked at as if it had none.
    """
    if (pod is None) == (question["file"] is None):
        raise click.UsageError("want either the name of a pod or -f FILE")
    try:
        answers = explained(settings, Question(pod or "", **question))
    except StartError as error:
        show(f"skerry scheduler explain: {error}", error=True)
        sys.exit(1)
    for answer in answers:
        show_text(answer.text())
