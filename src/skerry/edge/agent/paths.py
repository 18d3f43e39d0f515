"""Container paths and ports in the words of a plain process.

Without a file system or a network of its own, a process must be given the real places. What
a pod says in its own terms (its command, its arguments, its environment) is translated: a path
below a mount becomes the path of its source, an argument that is a container port becomes the
port that stands for it. Pure text work, so what it does can be seen in tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from skerry.edge.agent.runtime import Mount

# What may stand before a path for it to be one: the beginning, or anything that ends a word.
_BEFORE = r"(?<![\w./-])"
_AFTER = r"(?=/|[^\w.-]|$)"


def real_path(path: str, mounts: Sequence[Mount]) -> str:
    """Return where a container path really is; unchanged outside every mount."""
    best = max(
        (mount for mount in mounts if _below(path, mount.path)),
        key=lambda mount: len(mount.path),
        default=None,
    )
    if best is None:
        return path
    rest = path[len(best.path.rstrip("/")) :].lstrip("/")
    return f"{best.source}/{rest}" if rest else str(best.source)


def _below(path: str, mount: str) -> bool:
    mount = mount.rstrip("/")
    return path == mount or path.startswith(f"{mount}/")


def with_real_paths(text: str, mounts: Sequence[Mount]) -> str:
    """Return *text*, a command or a script, with every path below a mount replaced.

    Longer mount paths count first, so nested mounts are found. A mount at the root is left alone:
    every path would be below it.
    """
    sources = {
        mount.path.rstrip("/"): str(mount.source)
        for mount in mounts
        if mount.path.startswith("/") and mount.path.rstrip("/")
    }
    if not sources:
        return text
    longest_first = sorted(sources, key=len, reverse=True)
    pattern = f"{_BEFORE}({'|'.join(map(re.escape, longest_first))}){_AFTER}"
    return re.sub(pattern, lambda found: sources[found[1]], text)


def with_real_ports(argument: str, ports: Mapping[int, int]) -> str:
    """Return an argument with the container port at its end replaced: ``80``, ``:80``, ``x=80``.

    Only whole arguments of these forms; a number within a script is left alone, and the
    environment tells the script what it needs (``SKERRY_PORT_80``).
    """
    found = re.fullmatch(r"(|.*[:=])(\d{1,5})", argument)
    if found is None or int(found[2]) not in ports:
        return argument
    return f"{found[1]}{ports[int(found[2])]}"


def filled(
    token: str,
    ports: Mapping[int, int],
    first_port: int,
    mounts: Sequence[Mount],
    address: str = "127.0.0.1",
) -> str:
    """Return a catalogue entry's token with its places filled.

    ``{port}`` is the port to listen on, ``{port:N}`` the one that stands for N, ``{address}`` the
    address to listen at, ``{path:/P}`` where the container path /P really is.
    """

    def value(found: re.Match[str]) -> str:
        kind, _, argument = found[1].partition(":")
        if kind == "address":
            return address
        if kind == "port":
            wanted = int(argument) if argument else first_port
            return str(ports.get(wanted, wanted))
        return real_path(argument, mounts)

    return re.sub(r"\{(port(?::\d+)?|address|path:[^}]+)\}", value, token)
