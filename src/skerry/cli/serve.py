"""skerry serve: a plain Kubernetes API server."""

from __future__ import annotations

import sys

import click

from skerry.app.settings import ServerSettings
from skerry.app.standalone import PLAIN_SERVER, StartError, run_server
from skerry.cli.options import server_flags
from skerry.cli.service import notifying
from skerry.kit.log import announce, report_failure


@click.command(
    epilog="""\b
Examples:
  skerry serve
  skerry serve --data-dir /var/lib/skerry --port 7443 --tls-san edge.example.org
  skerry serve --store etcd --etcd-servers http://127.0.0.1:2379

Then: kubectl --kubeconfig .skerry/admin.kubeconfig get namespaces
"""
)
@server_flags
def serve(settings: ServerSettings) -> None:
    """Run a plain Kubernetes API server.

    Prints one line when requests are answered; stops cleanly on SIGTERM and SIGINT.
    """
    try:
        run_server(settings, PLAIN_SERVER, announce=notifying(announce))
    except StartError as error:
        report_failure("skerry serve", error)
        sys.exit(1)
