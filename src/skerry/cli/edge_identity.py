"""skerry edge bootstrap, manifest, approve, revoke: identity of edges that join a hub.

``cli.edge`` adds these commands to its group.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

import skerry
from skerry.api.edge import USUAL_PROVIDER
from skerry.api.errors import ApiError
from skerry.app import edge_identity as identity
from skerry.app import edge_join
from skerry.app.edge_approval import (
    NothingWaits,
    WaitingKey,
    WrongKey,
    all_waiting_keys,
    approved,
    waiting_keys,
)
from skerry.app.inventory import CommandFailed
from skerry.app.syncer_data import SyncerStartError
from skerry.cli.columns import print_columns
from skerry.cli.common_flags import output_flag, with_flags
from skerry.cli.printing import show, show_json, show_text
from skerry.runtime.transport import TransportError
from skerry.wire.kubeconfig import KubeconfigError, kubeconfig_paths

T = TypeVar("T")
DEFAULT_IMAGE = f"skerry:{skerry.__version__}"

_HUB_FLAGS = [
    click.option("--kubeconfig", default="", help="Kubeconfig of the hub's administrator."),
    click.option("--context", default="", help="Context in it."),
    click.option("--imw", default="", help="Inventory workspace  [default: the current one]"),
    click.option("--espw", default=USUAL_PROVIDER, show_default=True, help="Provider workspace."),
]
_wait_for_mailbox = click.option("--wait-seconds", type=float, default=30.0, hidden=True)


require_approval_flag = click.option(
    "--require-approval",
    is_flag=True,
    help="Let a person approve the edge's key: skerry edge approve NAME.",
)


def _hub_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.argument("name")(hub_options(command))


def hub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags by which a hub and its workspaces for edges are found."""
    return with_flags(command, _HUB_FLAGS)


def opened(kubeconfig: str, context: str) -> identity.HubAccess:
    """Return the hub that flags and environment lead to."""
    environment = os.environ  # noqa: TID251 - commands find a user's files by it
    home = Path(environment.get("HOME") or "/")
    paths = kubeconfig_paths(kubeconfig, environment.get("KUBECONFIG", ""), home)
    return identity.open_hub(paths, context)


def reporting_errors(command: str, work: Callable[[], Awaitable[T]]) -> T:
    """Run *work*; turn what went wrong into one line and an exit code."""
    code = 1
    try:
        return asyncio.run(_awaited(work))
    except identity.NoMailbox as error:
        text, code = str(error), 5
    except identity.WrongProvider as error:
        text, code = str(error), 2
    except (NothingWaits, edge_join.NotApproved) as error:
        text, code = str(error), 6
    except CommandFailed as error:
        text, code = str(error), error.code
    except (edge_join.NotJoined, SyncerStartError, WrongKey) as error:
        text = str(error)
    except (ApiError, TransportError, KubeconfigError, OSError) as error:
        text = str(error)
    show(f"{command}: {text}", error=True)
    sys.exit(code)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


@click.command(
    epilog="""\b
Example:
  skerry edge bootstrap florin --imw root:imw-1 -o florin-hub.kubeconfig
  skerry syncer --from-kubeconfig florin-hub.kubeconfig --to-kubeconfig ~/.kube/config \\
      --to-context kind-florin --sync-target-name florin --data-dir .florin-syncer
"""
)
@_hub_flags
@click.option("-o", "--output-file", default="-", show_default=True, help="Where to write it.")
@click.option(
    "--external-hostname", default="", help="Host[:port] by which the edge finds the hub."
)
@click.option(
    "--token-hours",
    type=click.FloatRange(min=0.17, max=168),
    help="How long the credential can be used  [default: 1; at a hub that is not ours: 168]",
)
@require_approval_flag
@_wait_for_mailbox
def bootstrap(
    *,
    name: str,
    kubeconfig: str,
    context: str,
    imw: str,
    espw: str,
    wait_seconds: float,
    output_file: str,
    external_hostname: str,
    token_hours: float | None,
    require_approval: bool,
) -> None:
    """Give the edge NAME a credential to begin with; print its kubeconfig.

    The first key that the edge shows with it gets a certificate, at once or when a person has
    approved it; for anything and anybody else the credential is of no use. May be repeated. At a
    hub that is not ours it is a ServiceAccount token, which reaches the mailbox.
    """

    async def work() -> str:
        hub = opened(kubeconfig, context)
        edge = await identity.edge_of(
            hub, name, imw or hub.current, espw, wait_seconds=wait_seconds
        )
        terms = identity.CredentialTerms(
            lifetime=None if token_hours is None else timedelta(hours=token_hours),
            approved=not require_approval,
            server=identity.with_host(hub.base, external_hostname) if external_hostname else "",
        )
        made = await identity.issue(hub, name, edge, terms)
        await hub.client.transport.close()
        return yaml.safe_dump(made, sort_keys=False)

    write_output(output_file, reporting_errors("skerry edge bootstrap", work))


@click.command(
    epilog="""\b
Examples:
  skerry edge manifest florin | kubectl --context florin apply -f -
  skerry edge manifest florin --helm-values | helm --kube-context florin install florin \\
      deploy/helm/skerry --namespace skerry --create-namespace -f -
"""
)
@_hub_flags
@click.option("-o", "--output-file", default="-", show_default=True, help="Where to write it.")
@click.option("--syncer-image", default=DEFAULT_IMAGE, show_default=True, help="Image to run.")
@click.option("-n", "--namespace", default="", help="Namespace of the syncer at the edge.")
@click.option(
    "--trust",
    type=click.Choice(["placed", "admin"]),
    default="placed",
    show_default=True,
    help="Rights at the edge: for what is placed, or for everything.",
)
@click.option("--rights-only", is_flag=True, help="Print the rights alone, without a credential.")
@click.option(
    "--tunnel",
    is_flag=True,
    help="Have the syncer dial a tunnel, with rights to logs, commands and ports of placed pods.",
)
@click.option(
    "--storage-class", default="", help="Of the journal's volume  [default: the cluster's default]"
)
@click.option("--helm-values", is_flag=True, help="Print values of the chart for the same objects.")
@require_approval_flag
@_wait_for_mailbox
def manifest(
    *,
    name: str,
    kubeconfig: str,
    context: str,
    imw: str,
    espw: str,
    wait_seconds: float,
    output_file: str,
    syncer_image: str,
    namespace: str,
    trust: str,
    rights_only: bool,
    storage_class: str,
    tunnel: bool,
    helm_values: bool,
    require_approval: bool,
) -> None:
    """Print what to apply at the real cluster NAME so that a syncer runs there.

    Apply it within the hour: the credential in it ends then. Where the syncer has its certificate
    already, applying a manifest again changes rights only.
    """

    async def work() -> str:
        hub = opened(kubeconfig, context)
        edge = await identity.edge_of(
            hub, name, imw or hub.current, espw, wait_seconds=wait_seconds
        )
        terms = identity.CredentialTerms(approved=not require_approval)
        credential = None if rights_only else await identity.issue(hub, name, edge, terms)
        text = await identity.manifest(
            hub,
            name,
            edge.mailbox,
            image=syncer_image,
            kubeconfig=credential,
            namespace=namespace,
            admin=trust == "admin",
            storage_class=storage_class,
            tunnel=tunnel,
            for_helm=helm_values,
        )
        await hub.client.transport.close()
        return text

    write_output(output_file, reporting_errors("skerry edge manifest", work))


@click.command(
    epilog="""\b
Examples:
  skerry edge approve --list --imw root:imw-1
  skerry edge approve florin --imw root:imw-1
  skerry edge approve florin --key 4f1c:09ab --wait-seconds 60

Exit code 6: no key waits, or several do and none was named. The edge shows the fingerprint of its
key in its log, and with skerry edge join: compare before you approve. kubectl certificate approve
does the same in the mailbox, kubectl certificate deny refuses.
"""
)
@click.argument("name", default="")
@hub_options
@click.option("--list", "only_list", is_flag=True, help="List what waits, of NAME or of all edges.")
@click.option("--key", default="", help="Fingerprint of the key, or how it begins.")
@click.option(
    "--wait-seconds",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="How long to wait for the edge to ask.",
)
@output_flag("text", "json")
def approve(
    *,
    name: str,
    kubeconfig: str,
    context: str,
    imw: str,
    espw: str,
    wait_seconds: float,
    only_list: bool,
    key: str,
    output: str,
) -> None:
    """Approve the key with which the edge NAME asks for its certificate."""
    if not name and not only_list:
        raise click.UsageError("name an edge, or use --list")

    async def work() -> list[WaitingKey]:
        hub = opened(kubeconfig, context)
        where = imw or hub.current
        try:
            if not name:
                return await all_waiting_keys(hub, where, espw)
            mailbox = await identity.mailbox_for(hub, name, where)
            path = identity.mailbox_path(espw, mailbox)
            if only_list:
                return await waiting_keys(hub, name, path)
            return [await approved(hub, name, path, key, wait_seconds)]
        finally:
            await hub.client.transport.close()

    keys = reporting_errors("skerry edge approve", work)
    if output == "json":
        show_json({"keys": [found.as_json() for found in keys]})
    elif only_list:
        _print_waiting(keys)
    else:
        request = f"certificatesigningrequest.certificates.k8s.io/{keys[0].request}"
        show(f"{request} approved")
        show(f"edge {name} approved: key {keys[0].fingerprint}")


def _print_waiting(keys: Sequence[WaitingKey]) -> None:
    if not keys:
        show("No key waits for approval")
        return
    rows = [("EDGE", "KEY", "SINCE", "REQUESTED BY")]
    rows += [(key.sync_target, key.fingerprint, key.since, key.requester) for key in keys]
    print_columns(rows)


@click.command(
    epilog="""\b
Example:
  skerry edge revoke florin --imw root:imw-1

What runs at the edge stays there. To let the edge in again, with a new key:
  skerry edge bootstrap florin --imw root:imw-1 -o florin-hub.kubeconfig
"""
)
@_hub_flags
def revoke(name: str, kubeconfig: str, context: str, imw: str, espw: str) -> None:
    """Shut the edge NAME out at once, with every certificate and credential it has.

    Its mailbox is closed for all but the hub's administrators: nothing that was made there opens
    it again, and open connections end.
    """

    async def work() -> None:
        hub = opened(kubeconfig, context)
        mailbox = await identity.mailbox_for(hub, name, imw or hub.current)
        await identity.revoke(hub, name, identity.mailbox_path(espw, mailbox))
        await hub.client.transport.close()

    reporting_errors("skerry edge revoke", work)
    show(f"edge {name} revoked")


def write_output(path: str, text: str) -> None:
    """Write to a file only its owner can read, or to standard output for ``-``."""
    if path == "-":
        show_text(text)
        return
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)  # it may have been there before, for all to read
        file.write(text)
