"""skerry hub: the API engine with workspaces."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from skerry.app.hub import hub_flavor
from skerry.app.process_member import ProcessMember
from skerry.app.settings import ServerSettings
from skerry.app.stack import hub_record
from skerry.app.standalone import StartError, run_server
from skerry.app.supervised import announcing, noted
from skerry.cli.options import console_flags, server_flags
from skerry.cli.processes import check_processes, processes_flag, run_in_processes
from skerry.cli.service import Announce, notifying
from skerry.kit.log import report_failure


@click.command(
    epilog="""\b
Examples:
  skerry hub --data-dir .kcp
  skerry hub --init --external-hostname hub.example.org --bind-address 0.0.0.0
  skerry hub --tunnel --audit-log audit.log
  skerry hub --store etcd --processes 4

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
@processes_flag
@click.option("--ready-fd", type=int, default=None, hidden=True)
def hub(
    settings: ServerSettings, init: bool, tunnel: bool, processes: int, ready_fd: int | None
) -> None:
    """Run a hub: an API server with workspaces, exports and bindings, as kcp has them.

    Prints one line when requests are answered; stops cleanly on SIGTERM and SIGINT.
    """
    settings = replace(settings, tunnel=tunnel)
    check_processes(settings, processes)

    def serve(announce: Announce, member: ProcessMember | None = None) -> None:
        run_server(settings, hub_flavor(with_edge_provider=init), announce, member=member)

    def run(announce: Announce) -> int:
        return run_in_processes("skerry hub", settings, processes, serve, notifying(announce))

    try:
        if ready_fd is not None:
            # Somebody supervises us, and knows that we run.
            code = run(announcing(ready_fd))
        else:
            with noted(hub_record(settings.data_dir), announcing(-1)) as announce:
                code = run(announce)
    except StartError as error:
        report_failure("skerry hub", error)
        sys.exit(1)
    sys.exit(code)
