"""skerry serve: a plain Kubernetes API server."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from skerry.app.settings import ServerSettings
from skerry.app.standalone import PLAIN_SERVER, StartError, run_server
from skerry.cli.options import EXISTING_FILE, server_flags
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
@click.option(
    "--client-ca-file",
    type=EXISTING_FILE,
    help="Authorities, PEM, whose client certificates are accepted besides the server's own.",
)
def serve(settings: ServerSettings, client_ca_file: Path | None) -> None:
    """Run a plain Kubernetes API server.

    Prints one line when requests are answered; stops cleanly on SIGTERM and SIGINT.
    """
    try:
        settings = replace(settings, client_ca_file=client_ca_file)
        run_server(settings, PLAIN_SERVER, announce=notifying(announce))
    except StartError as error:
        report_failure("skerry serve", error)
        sys.exit(1)
