"""The file system a container sees when it has a mount namespace but no image of its own.

The machine's own files, read-only, at their usual places; a root, ``/tmp``, ``/run`` and ``/root``
of the container's own, which are gone with it; devices that harm nobody; and its mounts at exactly
the paths it names. A path that does not exist on the machine is made by *opening* the directories
above it: such a directory is the container's own and shows the machine's entries one by one.

Nothing here needs rights on the machine: an ordinary user may not make directories below ``/usr``,
not even in a layer over it, but may show what is there in a directory of their own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from skerry.edge.agent import namespaces

# Never shown: what is here belongs to the machine's users and services.
_FRESH = ("/tmp", "/run", "/root", "/var/tmp")  # noqa: S108 - the container's own
_SPECIAL = frozenset({"/proc", "/sys", "/dev", "/tmp", "/run", "/root"})  # noqa: S108
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}


class Shown(NamedTuple):
    """A path of the machine that the container sees at another."""

    source: str
    path: str
    read_only: bool


def build(root: str, mounts: Sequence[Shown], required: Sequence[str] = ()) -> None:
    """Make *root*, a directory, a mount with everything a container sees.

    In a mount namespace of its own, by the first process of a process namespace. *required* are
    paths of the machine that must be seen even where it is not shown otherwise.
    """
    namespaces.mount("none", "/", flags=namespaces.MS_REC | namespaces.MS_SLAVE)
    namespaces.mount("tmpfs", root, "tmpfs", namespaces.MS_NODEV, "mode=755")
    wanted = [shown._replace(path=_real(shown.path)) for shown in mounts]
    kept = {path for path in map(os.path.normpath, required) if _own(path)}
    wanted += [Shown(path, path, True) for path in sorted(kept) if os.path.exists(path)]
    _show(root, "/", opened(wanted))
    _special(root)
    # Shorter paths first, so that mounts within mounts are seen.
    for shown in sorted(wanted, key=lambda item: item.path.count("/")):
        target = root + shown.path
        _make_place(target, directory=os.path.isdir(shown.source))
        namespaces.bind(shown.source, target, read_only=shown.read_only)


def opened(mounts: Iterable[Shown]) -> frozenset[str]:
    """Return the directories that must be the container's own, for its mounts to have places."""
    found: set[str] = set()
    for shown in mounts:
        if os.path.exists(shown.path) and not _own(shown.path):
            continue
        parent = os.path.dirname(shown.path)
        while parent != "/" and not _own(parent):
            found.add(parent)
            parent = os.path.dirname(parent)
    return frozenset(found)


def _own(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in (*_FRESH, "/dev"))


def _real(path: str) -> str:
    """Return a container path with the machine's links followed, as the container will see them."""
    path = os.path.normpath(path)
    return path if _own(path) else os.path.realpath(path)


def _show(root: str, place: str, open_directories: frozenset[str]) -> None:
    """Show each entry of a directory of the machine; an open one by its entries in turn."""
    for entry in os.scandir(place):
        if entry.path in _SPECIAL:
            continue
        target = root + entry.path
        # What may not be looked at is not shown.
        with contextlib.suppress(PermissionError):
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir() and entry.path in open_directories:
                os.mkdir(target)
                _show(root, entry.path, open_directories)
            else:
                _make_place(target, directory=entry.is_dir())
                namespaces.bind(entry.path, target, read_only=True)


def _make_place(target: str, *, directory: bool) -> None:
    if os.path.lexists(target):
        return
    if directory:
        os.makedirs(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb"):
            pass


def _special(root: str) -> None:
    for place in _FRESH:
        below = os.path.dirname(place) != "/"
        if below and not os.path.isdir(root + place):
            continue
        _make_place(root + place, directory=True)
        mode = "1777" if place.endswith("tmp") else "755"
        flags = namespaces.MS_NODEV | namespaces.MS_NOSUID
        namespaces.mount("tmpfs", root + place, "tmpfs", flags, f"mode={mode}")
    os.mkdir(f"{root}/proc")
    namespaces.mount("proc", f"{root}/proc", "proc")
    os.mkdir(f"{root}/sys")
    namespaces.bind("/sys", f"{root}/sys", read_only=True)
    _devices(f"{root}/dev")


def _devices(place: str) -> None:
    os.mkdir(place)
    namespaces.mount("tmpfs", place, "tmpfs", namespaces.MS_NOSUID, "mode=755")
    for name in _DEVICES:
        _make_place(f"{place}/{name}", directory=False)
        namespaces.bind(f"/dev/{name}", f"{place}/{name}", read_only=False)
    for name, kind, options in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"),
        ("shm", "tmpfs", "mode=1777"),
        ("mqueue", "mqueue", ""),
    ):
        os.mkdir(f"{place}/{name}")
        # A kernel without message queues has no use for their place.
        with contextlib.suppress(OSError):
            namespaces.mount(kind, f"{place}/{name}", kind, options=options)
    for name, target in _LINKS.items():
        os.symlink(target, f"{place}/{name}")
