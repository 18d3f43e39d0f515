"""The embedded edges of a user, and their contexts among those of kubectl."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from skerry.app.demo_homes import running_demos
from skerry.app.edge_config import (
    EdgeConfig,
    EdgeConfigError,
    load_warning,
    parse_config,
    plain_config,
)
from skerry.app.edge_process import EdgeError, EdgeHome, EdgeProcess
from skerry.app.kubeconfig_files import load, store
from skerry.cli.printing import show
from skerry.wire.kubeconfig import Entry, kubeconfig_paths


def environment() -> dict[str, str]:
    """Return the variables by which commands find a user's files."""
    return dict(os.environ)  # noqa: TID251 - commands find a user's files by it


def edge_home() -> EdgeHome:
    """Return where the user's edges are kept."""
    variables = environment()
    named = variables.get("SKERRY_HOME")
    root = Path(named) if named else Path(variables.get("HOME") or "/") / ".skerry"
    return EdgeHome(root / "edges")


def known_edges() -> Iterator[EdgeProcess]:
    """Yield the user's edges, then those of the demos that run now."""
    yield from edge_home().edges()
    for place in running_demos():
        yield from EdgeHome(place / "edges").edges()


def existing_edge(name: str, data_dir: Path | None) -> EdgeProcess:
    """Return an edge that was created before."""
    found = edge_home().edge(name, data_dir)
    if not found.exists and data_dir is None:
        # A demo's, unless several demos have one of this name.
        others = [each for each in known_edges() if each.name == name]
        found = others[0] if len(others) == 1 else found
    if not found.exists:
        raise EdgeError(f"there is no edge {name}; first: skerry edge create {name}")
    return found


def configuration(name: str, file: Path | None) -> EdgeConfig:
    """Return what a kind configuration file asks for, or the usual; says what it ignores."""
    if file is None:
        return plain_config(name)
    try:
        wanted, ignored = parse_config(name, file.read_text())
    except EdgeConfigError as error:
        raise EdgeError(f"{file}: {error}") from error
    if ignored:
        show(f"Ignored in {file}: {', '.join(ignored)}")
    return wanted


def start_edge(found: EdgeProcess, kubeconfig: str, *, choose: bool) -> None:
    """Start an edge and put its contexts where kubectl looks; *choose* makes it the current one."""
    found.start()
    files = load(kubeconfig_files(kubeconfig))
    own = load([found.kubeconfig])
    name, alias = f"kind-{found.name}", f"skerry-{found.name}"
    context: Entry = {"cluster": name, "user": name}
    store(
        files,
        clusters={name: next(iter(own.clusters.values()))},
        users={name: next(iter(own.users.values()))},
        contexts={name: context, alias: context},
        current=name if choose else "",
    )
    config = found.config
    show(f"Edge {found.name} is ready: {len(config.nodes)} node(s), context {name!r} ({alias!r})")
    for port in config.published:
        where = f"{port.address}:{port.host_port}"
        show(f"  {where} leads to port {port.container_port} of {port.node}")
    if warning := load_warning(found.directory):
        show(f"Warning: {warning}", error=True)


def kubeconfig_files(kubeconfig: str) -> list[Path]:
    """Return the files kubectl would use."""
    variables = environment()
    home = Path(variables.get("HOME", ""))
    return kubeconfig_paths(kubeconfig, variables.get("KUBECONFIG", ""), home)
