"""What a container runs, in the words of where it runs.

A program with files of its own gets its arguments as its pod has them. Without, paths below mounts
and ports are translated to the machine's (see ``paths``). Pure, and so are the places that a
catalogue entry leaves to be filled.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skerry.edge.agent.paths import filled, real_path, with_real_paths, with_real_ports
from skerry.edge.agent.runtime import ContainerSpec, Image

# What a program finds on any machine; nothing of the agent's own environment is passed on.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - of a network that is the pod's own
_LOOPBACK = "127.0.0.1"


def contained(
    spec: ContainerSpec, argv: Sequence[str], *, own_network: bool = True
) -> ContainerSpec:
    """Return what to run where files are the container's own: what was said, and the image's.

    Without a network of its own, ports are those that stand for the container's.
    """
    address = _EVERYWHERE if own_network else _LOOPBACK
    first = _first_port(spec)
    known, rest = _by_origin(spec.image, argv)
    words = [filled(word, spec.ports, first, (), address) for word in known]
    words += rest if own_network else [with_real_ports(word, spec.ports) for word in rest]
    home = "/" if spec.confinement.user else "/root"
    environment = {"PATH": PATH, "HOME": home}
    for name, value in spec.image.environment.items():
        environment[name] = filled(value, spec.ports, first, (), address)
    # The same names as without namespaces, so that a script may rely on them.
    environment |= {f"SKERRY_PORT_{port}": str(real) for port, real in spec.ports.items()}
    return replace(
        spec,
        argv=tuple(words),
        environment={**environment, **spec.environment},
        working_directory=spec.working_directory or spec.image.working_directory or "/",
    )


def translated(spec: ContainerSpec, argv: Sequence[str], root: Path) -> ContainerSpec:
    """Return what to run where files and ports are the machine's; *root* is the container's."""
    first = _first_port(spec)
    known, rest = _by_origin(spec.image, argv)
    words = [filled(word, spec.ports, first, spec.mounts) for word in known]
    words += [with_real_ports(with_real_paths(word, spec.mounts), spec.ports) for word in rest]
    environment = {"PATH": PATH, "HOME": str(root), "SKERRY_ROOT": str(root)}
    for name, value in spec.image.environment.items():
        environment[name] = filled(value, spec.ports, first, spec.mounts)
    environment |= {f"SKERRY_PORT_{port}": str(real) for port, real in spec.ports.items()}
    for name, value in spec.environment.items():
        environment[name] = with_real_paths(value, spec.mounts)
    wanted = spec.working_directory or spec.image.working_directory
    real = real_path(wanted, spec.mounts) if wanted else ""
    return replace(
        spec,
        argv=tuple(words),
        environment=environment,
        working_directory=real if real != wanted else str(root / below_root(wanted)),
    )


def below_root(path: str) -> str:
    """Return a container path as one below its root, which no ``..`` leads out of."""
    return posixpath.normpath(f"/{path}").lstrip("/")


def _first_port(spec: ContainerSpec) -> int:
    """Return the port a program that serves one is to serve."""
    if len(spec.ports) > 1 and spec.image.ports and spec.image.ports[0] in spec.ports:
        return spec.image.ports[0]
    return min(spec.ports, default=0)


def _by_origin(image: Image, argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of a command that come from the catalogue, and those the pod says.

    Only the catalogue's have places to be filled; a pod's text is never looked into.
    """
    size = len(image.entrypoint)
    if tuple(argv[:size]) != image.entrypoint:
        size = 0
    if tuple(argv[size:]) == image.command:
        size = len(argv)
    if argv[0] in image.programs:
        return (*image.programs[argv[0]], *argv[1:size]), argv[max(1, size) :]
    return argv[:size], argv[size:]
