"""skerry edge: embedded edge clusters of this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from skerry.app.edge_config import RUNTIMES, EdgeConfig, EdgeConfigError
from skerry.app.edge_process import EdgeError, EdgeProcess
from skerry.app.kubeconfig_files import load, remove
from skerry.cli.columns import print_columns
from skerry.cli.embedded_edges import (
    configuration,
    edge_home,
    existing_edge,
    known_edges,
    kubeconfig_files,
    start_edge,
)
from skerry.cli.extras import require_extra
from skerry.cli.lazy import LazyGroup, Listed
from skerry.cli.printing import show, show_text
from skerry.wire.kubeconfig import KubeconfigError

_AT_A_HUB = {
    "join": Listed("edge_join", "Let an edge join a hub; make it where it is not there."),
    "manifest": Listed("edge_identity", "Print what to apply at a real cluster so that it joins."),
    "bootstrap": Listed("edge_identity", "Give an edge a credential to begin with."),
    "approve": Listed("edge_identity", "Approve the key with which an edge asks to be let in."),
    "revoke": Listed("edge_identity", "Shut an edge out at once, with every credential it has."),
    "approve-deletions": Listed(
        "edge_holds", "Show the deletions that an edge holds; let them be."
    ),
    "accept-store": Listed(
        "edge_holds", "Let an edge believe a hub that was restored or replaced."
    ),
    "adopt": Listed("edge_holds", "Take over an object that an edge has from somebody else."),
}
_DIRECTORY = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Turn what went wrong into one line and exit code 1."""
    try:
        yield
    except (EdgeError, EdgeConfigError, KubeconfigError) as error:
        show(f"skerry edge: {error}", error=True)
        sys.exit(1)


def _with_name(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--data-dir", type=_DIRECTORY, help="The edge's directory  [default: ~/.skerry/edges/NAME]"
    )(command)
    return click.argument("name", shell_complete=_known_names)(command)


def _known_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Offer the edges there are."""
    return [found.name for found in edge_home().edges() if found.name.startswith(begun)]


_kubeconfig_option = click.option(
    "--kubeconfig",
    default="",
    help="File that gets the contexts  [default: $KUBECONFIG, else ~/.kube/config]",
)


@click.group(
    cls=LazyGroup,
    sections={"Edges of a hub": _AT_A_HUB},
    epilog="""\b
Examples:
  skerry edge create florin --config florin-config.yaml
  kubectl --context kind-florin get nodes
  skerry edge delete florin
""",
)
def edge() -> None:
    """Run edge clusters on this machine, without a container engine; join edges to a hub."""


@edge.command(
    epilog="""\b
Examples:
  skerry edge create florin
  skerry edge create florin --config florin-config.yaml
  skerry edge create florin --catalogue images.yaml

A configuration file is one of kind (kind.x-k8s.io/v1alpha4). Only ports it names in
extraPortMappings can be reached on this machine. Creating an edge that exists starts it.
"""
)
@_with_name
@click.option("--config", type=_FILE, help="kind configuration file.")
@click.option("--catalogue", type=_FILE, help="YAML file of images this node can run.")
@click.option(
    "--runtime",
    type=click.Choice(RUNTIMES),
    default="auto",
    show_default=True,
    help="How containers are run; auto: with the strongest separation this machine offers.",
)
@click.option(
    "--allow-host-path",
    "host_paths",
    multiple=True,
    metavar="FOLDER",
    help="Folder below which hostPath volumes may lie, e.g. /srv/data; repeatable; default none.",
)
@click.option(
    "--allow-host-network/--no-allow-host-network",
    "host_network",
    default=None,
    help="Let pods ask for the machine's network (hostNetwork); default not.",
)
@_kubeconfig_option
def create(
    name: str,
    data_dir: Path | None,
    config: Path | None,
    catalogue: Path | None,
    runtime: str,
    host_paths: tuple[str, ...],
    host_network: bool | None,
    kubeconfig: str,
) -> None:
    """Create and start the edge cluster NAME."""
    require_extra("skerry edge create", "edge")
    with _reporting_errors():
        wanted = configuration(name, config)
        if catalogue is not None:
            wanted = replace(wanted, catalogue=str(catalogue.resolve()))
        home = edge_home()
        found = home.edge(name, data_dir)
        wanted = _with_access(replace(wanted, runtime=runtime), found, host_paths, host_network)
        found.create(wanted)
        home.register(found)
        start_edge(found, kubeconfig, choose=True)


def _with_access(
    wanted: EdgeConfig, found: EdgeProcess, paths: tuple[str, ...], network: bool | None
) -> EdgeConfig:
    """Return *wanted* with what pods may have of the machine; as it was where nothing is said."""
    known = found.config if found.exists else wanted
    for path in paths:
        if not path.startswith("/") or ".." in path.split("/"):
            raise EdgeError(f"--allow-host-path {path}: want an absolute path without '..'")
    return replace(
        wanted,
        host_paths=paths or known.host_paths,
        host_network=known.host_network if network is None else network,
    )


@edge.command(short_help="Start the edge cluster NAME again.")
@_with_name
@_kubeconfig_option
def start(name: str, data_dir: Path | None, kubeconfig: str) -> None:
    """Start the edge cluster NAME again; the current context stays as it is."""
    require_extra("skerry edge start", "edge")
    with _reporting_errors():
        start_edge(existing_edge(name, data_dir), kubeconfig, choose=False)


@edge.command(short_help="Stop the edge cluster NAME and its pods.")
@_with_name
def stop(name: str, data_dir: Path | None) -> None:
    """Stop the edge cluster NAME and its pods; its state is kept."""
    with _reporting_errors():
        existing_edge(name, data_dir).stop()
        show(f"Edge {name} is stopped")


@edge.command()
@_with_name
@_kubeconfig_option
def delete(name: str, data_dir: Path | None, kubeconfig: str) -> None:
    """Stop the edge cluster NAME and remove all of it."""
    with _reporting_errors():
        home = edge_home()
        deleted = home.edge(name, data_dir).delete()
        forgotten = home.forget(name)
        files = load(kubeconfig_files(kubeconfig))
        contexts = [f"kind-{name}", f"skerry-{name}"]
        if not (deleted or forgotten or contexts[0] in files.contexts):
            raise EdgeError(f"there is no edge {name}; skerry edge list shows those there are")
        remove(files, clusters=contexts[:1], users=contexts[:1], contexts=contexts)
        show(f"Edge {name} is deleted")


@edge.command(name="list", short_help="List the edge clusters of this machine.")
def list_edges() -> None:
    """List the edge clusters of this machine, those of demos that run among them."""
    rows = [("NAME", "STATUS", "SYNCER", "NODES", "PORTS", "DIRECTORY")]
    with _reporting_errors():
        for found in known_edges():
            config = found.config
            ports = ",".join(f"{p.host_port}->{p.container_port}" for p in config.published)
            status = "Running" if found.running else "Stopped"
            nodes = str(len(config.nodes))
            syncer = "-"
            if found.syncer.mailbox:
                syncer = "Running" if found.syncer.process.running else "Stopped"
            rows.append((found.name, status, syncer, nodes, ports or "-", str(found.directory)))
    print_columns(rows)


@edge.command()
@_with_name
def kubeconfig(name: str, data_dir: Path | None) -> None:
    """Print the kubeconfig of the edge cluster NAME."""
    with _reporting_errors():
        found = existing_edge(name, data_dir)
        if not found.kubeconfig.exists():
            raise EdgeError(
                f"edge {name} has not been started yet; first: skerry edge start {name}"
            )
        show_text(found.kubeconfig.read_text())


@edge.command(hidden=True)
@click.argument("directory", type=_DIRECTORY)
def run(directory: Path) -> None:
    """Run the edge kept in DIRECTORY, in the foreground."""
    # Only here: a whole server takes half a second to load, which the other commands can spare.
    from skerry.app.edge_run import run_edge

    sys.exit(run_edge(directory))
