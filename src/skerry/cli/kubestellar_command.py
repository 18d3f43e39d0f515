"""``kubestellar init``, ``start`` and ``stop``: the original's words for what is ours.

They work on the hub that the kubeconfig leads to, which must run (``skerry hub``). The three
controllers run as one supervised process; a person who has no scripts to keep uses ``skerry up
--init`` and ``skerry down`` instead, which also run the hub.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from skerry.api.edge import USUAL_PROVIDER
from skerry.api.errors import ApiError
from skerry.app import kubestellar
from skerry.app.edge_identity import HubAccess, open_hub
from skerry.app.inventory import CommandFailed
from skerry.app.kubeconfig_files import load
from skerry.app.supervised import NotStarted, Supervised
from skerry.cli import workspace
from skerry.cli.extras import require_extra
from skerry.cli.flags import Parsed
from skerry.cli.printing import show
from skerry.cli.refusals import RefusingGroup
from skerry.cli.session import Session
from skerry.runtime.transport import TransportError
from skerry.wire.kubeconfig import KubeconfigError, kubeconfig_paths

_CONTROLLERS = ("mailbox-controller", "kubestellar-scheduler", "placement-translator")
_LOG_FOLDER = click.option(
    "--log-folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("kubestellar-logs"),
    show_default=True,
    help="Folder for what the controllers say.",
)
_VERBOSE = click.option("-V", "--verbose", is_flag=True, help="Say more.")
_TRACE = click.option("-X", "trace", is_flag=True, help="Accepted; there is no script to trace.")


@click.group(
    cls=RefusingGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Example:
  skerry hub --data-dir .kcp &
  export KUBECONFIG=.kcp/admin.kubeconfig
  kubestellar start
  kubestellar stop
""",
)
def main() -> None:
    """Prepare a hub for edges and run the controllers, as KubeStellar's scripts do."""


@main.command()
@_LOG_FOLDER
@_VERBOSE
@_TRACE
def init(log_folder: Path, verbose: bool, trace: bool) -> None:
    """Make root:espw and its exports, and the finer exports of root:compute."""
    require_extra("kubestellar init", "hub")
    _initialised(verbose=verbose)


@main.command()
@_LOG_FOLDER
@_VERBOSE
@_TRACE
def start(log_folder: Path, verbose: bool, trace: bool) -> None:
    """Do what init does, then run the controllers in the background."""
    require_extra("kubestellar start", "hub")
    controllers = _controllers(log_folder)
    controllers.stop()
    kubeconfig = _initialised(verbose=verbose)
    log_folder.mkdir(parents=True, exist_ok=True)
    # By name: they read the file again whenever they are started again, and people go elsewhere.
    context = load([kubeconfig]).current
    flags = [
        "--kubeconfig",
        str(kubeconfig),
        "--espw-path",
        USUAL_PROVIDER,
        "--espw-context",
        context,
    ]
    try:
        controllers.start(["skerry.cli", "controllers", *flags])
    except NotStarted as error:
        _failed(f"the controllers did not start: {error}")
    for name in _CONTROLLERS:
        show(f" {name} is running (log file: {controllers.log.resolve()})")
    _enter("root")


@main.command()
@_LOG_FOLDER
@_VERBOSE
@_TRACE
def stop(log_folder: Path, verbose: bool, trace: bool) -> None:
    """Stop the controllers; what they made stays."""
    _controllers(log_folder).stop()
    show("kubestellar stopped .....")


def _controllers(log_folder: Path) -> Supervised:
    return Supervised(log_folder / "controllers.json", log_folder / "controllers.log")


def _environment() -> Mapping[str, str]:
    return os.environ  # noqa: TID251 - commands find a user's files by it


def _initialised(*, verbose: bool) -> Path:
    """Populate the hub; return the kubeconfig that led there."""
    environment = _environment()
    home = Path(environment.get("HOME") or "/")
    paths = kubeconfig_paths("", environment.get("KUBECONFIG", ""), home)
    try:
        hub = open_hub(paths)
        if verbose:
            show(f"Populating the hub at {hub.base}")
        asyncio.run(_populated(hub))
    except TransportError as error:
        _failed(f"no hub answers: {error}; start one first: skerry hub --data-dir .kcp")
    except (KubeconfigError, ApiError, CommandFailed) as error:
        _failed(str(error))
    show("Finished augmenting root:compute for KubeStellar")
    show("Finished populating the espw with kubestellar apiexports")
    _enter(USUAL_PROVIDER)
    return Path(paths[0]).resolve()


async def _populated(hub: HubAccess) -> None:
    try:
        await kubestellar.populate(hub)
    finally:
        await hub.client.transport.close()


def _enter(path: str) -> None:
    """Make *path* the current workspace, and say so as ``kubectl ws`` does."""
    session = Session.open(Parsed(), _environment())
    workspace.use(session, path, short=False)


def _failed(message: str) -> None:
    show(f"kubestellar: {message}", error=True)
    sys.exit(1)
