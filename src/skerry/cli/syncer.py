"""skerry syncer: what runs at an edge."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from skerry.api.edge import MAX_LEASE_SECONDS
from skerry.app.syncer import SyncerOptions, run_syncer
from skerry.app.syncer_data import SyncerStartError
from skerry.cli.service import notifying
from skerry.kit.log import announce, report_failure

_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog="""\b
Examples:
  skerry syncer --from-kubeconfig florin-hub.kubeconfig --to-kubeconfig florin.kubeconfig \\
      --sync-target-name florin --data-dir .florin-syncer
  skerry syncer --from-kubeconfig florin-hub.kubeconfig --to-kubeconfig florin.kubeconfig \\
      --sync-target-name florin --tunnel
"""
)
@click.option("--from-kubeconfig", type=_EXISTING, required=True, help="Kubeconfig of the mailbox.")
@click.option("--from-context", default="", help="Context in it; its current one by default.")
@click.option(
    "--from-cluster", default="", help="Logical cluster of the mailbox, if the URL names none."
)
@click.option("--to-kubeconfig", type=_EXISTING, help="Kubeconfig of the edge; in a pod, none.")
@click.option("--to-context", default="", help="Context in it; its current one by default.")
@click.option("--sync-target-name", default="edge", show_default=True, help="Name of the edge.")
@click.option(
    "--sync-target-uid", default="", help="UID of the SyncTarget, if the kubeconfig has none."
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".skerry-syncer"),
    show_default=True,
    help="Folder for the journal, the key and its certificate, and a lock.",
)
@click.option(
    "--heartbeat-seconds",
    type=click.FloatRange(min=1, max=MAX_LEASE_SECONDS / 2),
    default=30.0,
    show_default=True,
    help="Time between signs of life; the hub's Lease holds for two of them.",
)
@click.option(
    "--ordinary-hub", is_flag=True, help="Use at the hub only what any Kubernetes server has."
)
@click.option(
    "--qps", type=float, default=0.0, show_default=True, help="Requests/s to the hub; 0: any."
)
@click.option("--burst", type=int, default=20, show_default=True, help="Requests beyond --qps.")
@click.option(
    "--lock-namespace",
    default="default",
    show_default=True,
    help="Namespace at the edge of the Lease that keeps two syncers apart.",
)
@click.option(
    "--identity-secret",
    default="",
    help="Secret in --lock-namespace for key and certificate, instead of --data-dir.",
)
@click.option(
    "--deletion-count",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="So many objects fewer than within ten minutes need no approval.",
)
@click.option(
    "--deletion-percent",
    type=click.IntRange(0, 100),
    default=50,
    show_default=True,
    help="The same, as a share of the most there was; the larger counts.",
)
@click.option(
    "--tunnel",
    is_flag=True,
    help="Let the hub ask for logs, commands and ports of pods; what the edge's kubeconfig may.",
)
@click.option("--metrics-bind-address", default="", help="HOST:PORT for health and metrics.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of log lines.",
)
@click.option(
    "-v", "--v", "verbosity", type=int, default=2, show_default=True, help="Log verbosity."
)
def syncer(metrics_bind_address: str, **flags: Any) -> None:
    """Make one edge cluster run what its mailbox says, and report back.

    Dials out to both; survives the hub being away. Stops cleanly on SIGTERM and SIGINT.
    """
    options = SyncerOptions(
        metrics_address=metrics_bind_address,
        environment=dict(os.environ),  # noqa: TID251 - in a pod, where the edge is
        **flags,
    )
    try:
        run_syncer(options, announce=notifying(announce))
    except SyncerStartError as error:
        report_failure("skerry syncer", error)
        sys.exit(1)
