"""skerry edge bootstrap, manifest and revoke: identity of edges that join a hub.

``cli.edge`` adds these commands to its group.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

import skerry
from skerry.api.errors import ApiError
from skerry.app import edge_identity as identity
from skerry.runtime.kubeconfig import KubeconfigError, kubeconfig_paths
from skerry.runtime.transport import TransportError

T = TypeVar("T")
DEFAULT_IMAGE = f"skerry:{skerry.__version__}"

_HUB_FLAGS = [
    click.option("--kubeconfig", default="", help="Kubeconfig of the hub's administrator."),
    click.option("--context", default="", help="Context in it."),
    click.option("--imw", default="", help="Inventory workspace  [default: the current one]"),
    click.option("--espw", default="root:espw", show_default=True, help="Provider workspace."),
    click.option("--wait-seconds", type=float, default=30.0, show_default=True, hidden=True),
]


def _hub_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    for flag in reversed(_HUB_FLAGS):
        command = flag(command)
    return click.argument("name")(command)


def opened(kubeconfig: str, context: str) -> identity.HubAccess:
    """Return the hub that flags and environment lead to."""
    environment = os.environ  # noqa: TID251 - commands find a user's files by it
    home = Path(environment.get("HOME") or "/")
    paths = kubeconfig_paths(kubeconfig, environment.get("KUBECONFIG", ""), home)
    return identity.open_hub(paths, context)


def told(command: str, work: Callable[[], Awaitable[T]]) -> T:
    """Run *work*; turn what went wrong into one line and an exit code."""
    code = 1
    try:
        return asyncio.run(_awaited(work))
    except identity.NoMailbox as error:
        text, code = str(error), 5
    except identity.WrongProvider as error:
        text, code = str(error), 2
    except (ApiError, TransportError, KubeconfigError, OSError) as error:
        text = str(error)
    print(f"{command}: {text}", file=sys.stderr)
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
@click.option("--token-hours", type=click.FloatRange(min=0.17), default=168.0, show_default=True)
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
    token_hours: float,
) -> None:
    """Give the edge NAME an identity in its mailbox; print its kubeconfig.

    May be repeated: nothing is added, the token is fresh.
    """

    async def work() -> str:
        hub = opened(kubeconfig, context)
        mailbox = await identity.mailbox_of(
            hub, name, imw or hub.current, espw, wait_seconds=wait_seconds
        )
        server = identity.with_host(hub.base, external_hostname) if external_hostname else ""
        made = await identity.issue(
            hub, name, mailbox, token_seconds=int(token_hours * 3600), server=server
        )
        await hub.client.transport.close()
        return yaml.safe_dump(made, sort_keys=False)

    write_output(output_file, told("skerry edge bootstrap", work))


@click.command(epilog="\b\nExample:\n  skerry edge manifest florin | kubectl apply -f -\n")
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
) -> None:
    """Print what to apply at the real cluster NAME so that a syncer runs there."""

    async def work() -> str:
        hub = opened(kubeconfig, context)
        mailbox = await identity.mailbox_of(
            hub, name, imw or hub.current, espw, wait_seconds=wait_seconds
        )
        credential = None if rights_only else await identity.issue(hub, name, mailbox)
        text = await identity.manifest(
            hub,
            name,
            mailbox,
            image=syncer_image,
            kubeconfig=credential,
            namespace=namespace,
            admin=trust == "admin",
        )
        await hub.client.transport.close()
        return text

    write_output(output_file, told("skerry edge manifest", work))


@click.command(epilog="\b\nExample:\n  skerry edge revoke florin --imw root:imw-1\n")
@_hub_flags
def revoke(
    name: str, kubeconfig: str, context: str, imw: str, espw: str, wait_seconds: float
) -> None:
    """Take the identity of the edge NAME away; its syncer is refused from then on."""

    async def work() -> None:
        hub = opened(kubeconfig, context)
        mailbox = await identity.mailbox_of(
            hub, name, imw or hub.current, espw, wait_seconds=wait_seconds
        )
        await identity.revoke(hub, name, mailbox)
        await hub.client.transport.close()

    told("skerry edge revoke", work)
    print(f"edge {name} revoked")


def write_output(path: str, text: str) -> None:
    """Write to a file only its owner can read, or to standard output for ``-``."""
    if path == "-":
        print(text, end="")
        return
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
