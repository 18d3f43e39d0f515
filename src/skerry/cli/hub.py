"""skerry hub: the API engine with workspaces."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from skerry.app.hub import hub_flavor
from skerry.app.settings import ServerSettings
from skerry.app.stack import hub_record
from skerry.app.standalone import StartError, run_server
from skerry.app.supervised import announcing, noted
from skerry.cli.options import console_flags, server_flags
from skerry.cli.service import notifying
from skerry.kit.log import report_failure


@click.command(
    epilog="""\b
Examples:
  skerry hub --data-dir .kcp
  skerry hub --init --external-hostname hub.example.org --bind-address 0.0.0.0
  skerry hub --tunnel --audit-log audit.log

Then: export KUBECONFIG=.kcp/admin.kubeconfig; kubectl ws tree
"""
)
@server_flags
@console_flags
@click.option("--init", is_flag=True, help="Also make root:espw and the finer compute exports.")
@click.option(
    "--tunnel",
    is_flag=True,
    help="Take the tunnels that syncers dial, for logs, exec and port-forward; needs --audit-log.",
)
@click.option("--ready-fd", type=int, default=None, hidden=True)
def hub(settings: ServerSettings, init: bool, tunnel: bool, ready_fd: int | None) -> None:
    """Run a hub: an API server with workspaces, exports and bindings, as kcp has them.

    Prints one line when requests are answered; stops cleanly on SIGTERM and SIGINT.
    """
    kind = hub_flavor(with_edge_provider=init)
    settings = replace(settings, tunnel=tunnel)
    try:
        if ready_fd is not None:
            # Somebody supervises us, and knows that we run.
            run_server(settings, kind, announce=notifying(announcing(ready_fd)))
            return
        record = hub_record(settings.data_dir)
        with noted(record, announcing(-1)) as announce:
            run_server(settings, kind, notifying(announce))
    except StartError as error:
        report_failure("skerry hub", error)
        sys.exit(1)
