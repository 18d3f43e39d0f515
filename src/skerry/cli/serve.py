"""skerry serve: a plain Kubernetes API server."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from skerry.app.settings import ServerSettings
from skerry.app.standalone import PLAIN_SERVER, StartError, run_server
from skerry.cli.options import EXISTING_FILE, server_flags
from skerry.cli.service import notifying
from skerry.kit.log import announce, report_failure
from skerry.logic.machinery.front_proxy import FrontProxySettings


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
    "--requestheader-client-ca-file",
    type=EXISTING_FILE,
    help="Authorities, PEM, of proxies that say in headers who asks; believed of nobody else.",
)
@click.option(
    "--requestheader-allowed-names",
    default="",
    help="Common names of such proxies, by commas  [default: any]",
)
@click.option(
    "--requestheader-username-headers",
    default="x-remote-user",
    show_default=True,
    help="Headers that name the user, by commas; the first that is there counts.",
)
@click.option(
    "--requestheader-group-headers",
    default="x-remote-group",
    show_default=True,
    help="Headers that name groups, by commas.",
)
@click.option(
    "--requestheader-extra-headers-prefix",
    default="x-remote-extra-",
    show_default=True,
    help="How headers begin that say more of the user, by commas.",
)
def serve(settings: ServerSettings, **proxy: Any) -> None:
    """Run a plain Kubernetes API server.

    Prints one line when requests are answered; stops cleanly on SIGTERM and SIGINT.
    """
    try:
        settings = replace(settings, front_proxy=front_proxy_settings(proxy))
        run_server(settings, PLAIN_SERVER, announce=notifying(announce))
    except StartError as error:
        report_failure("skerry serve", error)
        sys.exit(1)


def front_proxy_settings(flags: Mapping[str, Any]) -> FrontProxySettings | None:
    """Return what the flags about proxies say; None where none is to be believed."""
    file = flags["requestheader_client_ca_file"]
    if file is None:
        return None

    def listed(name: str) -> tuple[str, ...]:
        return tuple(filter(None, (each.strip() for each in flags[name].split(","))))

    def headers(name: str) -> tuple[str, ...]:
        return tuple(each.lower() for each in listed(name))

    return FrontProxySettings(
        file,
        frozenset(listed("requestheader_allowed_names")),
        headers("requestheader_username_headers"),
        headers("requestheader_group_headers"),
        headers("requestheader_extra_headers_prefix"),
    )
