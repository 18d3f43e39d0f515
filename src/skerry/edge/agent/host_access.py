"""What of the machine an edge lets its pods have: nothing, unless its operator says so.

A ``hostPath`` volume must lie below a prefix that was allowed, and is opened below it without
following a link: pods write there too. What holds the edge's own keys stays closed even then.
Volumes that the edge itself provisioned are directories of its own and need no leave.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.beneath import kind_of, resolver
from skerry.edge.agent.runtime import Volume

_DEVICES = ("CharDevice", "BlockDevice")


class HostPathRefused(Exception):
    """A path of the machine that pods of this edge may not have; the text says why."""


@dataclass(frozen=True, slots=True)
class HostAccess:
    """What pods may have of the machine, by the word of whoever runs the edge."""

    paths: tuple[str, ...] = ()
    """Folders below which ``hostPath`` volumes may lie; none by default."""

    network: bool = False
    """Whether pods may ask for the machine's network (``hostNetwork``)."""

    private: tuple[str, ...] = ()
    """The edge's own folders, which no ``hostPath`` may show whatever ``paths`` say."""


def host_path_refusal(path: str, access: HostAccess) -> str:
    """Return why *path* may not be a ``hostPath`` volume here; empty when it may."""
    if not path.startswith("/") or ".." in path.split("/"):
        return f"{path!r} is not an absolute path without '..'"
    found = _below_prefix(path, access.paths)
    if found is None:
        allowed = ", ".join(access.paths) or "none"
        return (
            f"{path} is not below a folder that this edge allows (--allow-host-path; "
            f"allowed: {allowed})"
        )
    real = posixpath.join(os.path.realpath(found[0]), found[1]).rstrip("/") or "/"
    for private in access.private:
        own = os.path.realpath(private)
        if _is_below(own, real) or _is_below(real, own):
            return f"{path} holds the edge's own files"
    return ""


def _below_prefix(path: str, prefixes: Sequence[str]) -> tuple[str, str] | None:
    """Return the longest prefix that holds *path*, and the rest of it."""
    normal = posixpath.normpath("/" + path.lstrip("/"))
    holding = [p for p in map(posixpath.normpath, prefixes) if _is_below(normal, p)]
    if not holding:
        return None
    prefix = max(holding, key=len)
    return prefix, normal[len(prefix) :].lstrip("/")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def host_path_volume(source: Object, access: HostAccess) -> Volume:
    """Return a ``hostPath`` volume, made where its type says so.

    Raises ``HostPathRefused``, or ``OSError`` when what is there is not as wanted.
    """
    path, kind = str(source["path"]), str(source.get("type") or "")
    if refusal := host_path_refusal(path, access):
        raise HostPathRefused(f"hostPath {refusal}")
    prefix, inside = _below_prefix(path, access.paths) or ("", "")
    root = os.open(prefix, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _make(root, inside, kind)
        opened = resolver().open(root, inside)
        try:
            found = kind_of(opened)
        finally:
            os.close(opened)
    finally:
        os.close(root)
    wanted = kind.removesuffix("OrCreate")
    if wanted and found != wanted:
        raise HostPathRefused(f"hostPath type check failed: {path} is not a {wanted.lower()}")
    return Volume(Path(prefix), inside, devices=found in _DEVICES and found == wanted)


def _make(root: int, inside: str, kind: str) -> None:
    if kind == "DirectoryOrCreate":
        os.close(resolver().directory(root, inside))
    elif kind == "FileOrCreate":
        folder, name = posixpath.split(inside)
        above = resolver().open(root, folder, os.O_PATH | os.O_DIRECTORY)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with contextlib.suppress(FileExistsError):
                os.close(os.open(name, flags, 0o644, dir_fd=above))
        finally:
            os.close(above)
