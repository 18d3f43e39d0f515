"""Files of volumes that follow objects, replaced as a whole.

Content is written into a new directory first, which then becomes ``..data`` by one rename, so that
a reader sees either all of the old or all of the new content. That is kubelet's way, and programs
that watch ``..data`` rely on it.

Every step works on open directories and follows no link: where pods are plain processes, nothing
keeps them from changing what is there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from skerry.edge.agent.beneath import LeadsOut, parts_of

_DATA = "..data"
_NEW_DATA = "..data_tmp"
# What ``_fresh`` calls the versions of a volume's files.
_VERSION = re.compile(r"\.\.\d+")
_VERSIONS = 1_000_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class File(NamedTuple):
    """One file: what it holds, its mode, and who owns it; None leaves it to the agent's user."""

    content: bytes
    mode: int
    owner: int | None = None


Files = Mapping[str, File]


def write_files(directory: Path, files: Files, group: int | None = None) -> bool:
    """Make *files* the content of *directory*, all at once; False when they were already.

    A *group* is given all of them, and may read them.
    """
    wanted = {name: _with_group(file, group) for name, file in files.items()}
    for name in wanted:
        _names_of(name)
    root = os.open(directory, _DIRECTORY)
    try:
        old = _shown(root)
        if old is not None and _is_same(root, old, wanted):
            return False
        fresh = _fresh(root)
        _write(root, fresh, wanted, group)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_NEW_DATA, dir_fd=root)
        os.symlink(fresh, _NEW_DATA, dir_fd=root)
        os.replace(_NEW_DATA, _DATA, src_dir_fd=root, dst_dir_fd=root)
        _link_names(root, {_names_of(name)[0] for name in wanted})
        if old is not None and old != fresh:
            shutil.rmtree(old, ignore_errors=True, dir_fd=root)
    finally:
        os.close(root)
    return True


def _with_group(file: File, group: int | None) -> File:
    return file if group is None else file._replace(mode=file.mode | 0o440)


def _names_of(path: str) -> list[str]:
    """Return the names of a file's path; raises ``LeadsOut`` for one that is not the volume's."""
    names = parts_of(path)
    if not names or names[0].startswith(".."):
        raise LeadsOut(errno.EINVAL, "the path is kept for the volume itself", path)
    return names


def _shown(root: int) -> str | None:
    """Return the version of the files that is shown now; None when there is none of ours.

    By its name alone: whoever can write to the volume could have the link lead anywhere, and what
    it leads to is about to be removed.
    """
    with contextlib.suppress(OSError):
        name = os.readlink(_DATA, dir_fd=root)
        if _VERSION.fullmatch(name):
            return name
    return None


def _fresh(root: int) -> str:
    for number in range(_VERSIONS):
        name = f"..{number}"
        try:
            os.mkdir(name, 0o755, dir_fd=root)
        except FileExistsError:
            continue
        return name
    raise OSError(errno.EEXIST, "too many leftovers in a volume")


def _write(root: int, version: str, files: Files, group: int | None) -> None:
    top = os.open(version, _DIRECTORY, dir_fd=root)
    try:
        os.fchmod(top, 0o755)
        for path, file in files.items():
            _write_one(top, _names_of(path), file, group)
    finally:
        os.close(top)


def _write_one(top: int, names: list[str], file: File, group: int | None) -> None:
    directory = os.dup(top)
    try:
        for name in names[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=directory)
            inner = os.open(name, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(names[-1], made, 0o600, dir_fd=directory)
    finally:
        os.close(directory)
    with os.fdopen(opened, "wb") as output:
        output.write(file.content)
        if file.owner is not None or group is not None:
            os.fchown(opened, _or_same(file.owner), _or_same(group))
        os.fchmod(opened, file.mode)


def _or_same(identity: int | None) -> int:
    return -1 if identity is None else identity


def _is_same(root: int, version: str, files: Files) -> bool:
    """Tell whether a version holds exactly *files*."""
    present: dict[str, File] = {}
    try:
        for place, _, names, directory in os.fwalk(version, dir_fd=root):
            below = os.path.relpath(place, version)
            for name in names:
                path = os.path.normpath(os.path.join(below, name))
                present[path] = _read(directory, name)
    except OSError:
        return False
    wanted = {"/".join(_names_of(path)): file for path, file in files.items()}
    return set(present) == set(wanted) and all(
        (file.content, file.mode) == (wanted[path].content, wanted[path].mode)
        and wanted[path].owner in (None, file.owner)
        for path, file in present.items()
    )


def _read(directory: int, name: str) -> File:
    # Not blocking: somebody may have put a pipe there.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = os.open(name, flags, dir_fd=directory)
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a file", name)
        return File(file.read(), stat.S_IMODE(status.st_mode), status.st_uid)


def _link_names(root: int, names: set[str]) -> None:
    """Have one link per first name, all through ``..data``."""
    links = {name for name in os.listdir(root) if _is_link(root, name)}
    for name in names - links:
        os.symlink(f"{_DATA}/{name}", name, dir_fd=root)
    for name in links - names:
        if not name.startswith(".."):
            os.unlink(name, dir_fd=root)


def _is_link(root: int, name: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode)
    return False
