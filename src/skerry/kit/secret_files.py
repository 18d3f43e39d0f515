"""Files that hold secrets: written whole or not at all, readable by their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_SECRET_FILE = 0o600
_SECRET_DIRECTORY = 0o700
# Directories of the machine: closing one to everybody else would break it, and whoever names one
# as the place for data has not asked for that.
_SHARED = frozenset((
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt",
    "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib",
    "/usr/local", "/usr/sbin", "/usr/share", "/var", "/var/cache", "/var/lib", "/var/log",
    "/var/run", "/var/spool",
))  # fmt: skip


def secret_directory(path: Path) -> Path:
    """Make *path* a directory that only its owner may enter, also when it is there already.

    The mode of a directory that is shared by its nature (a sticky one, one of the machine's own)
    or somebody else's is left alone; what is written there is private file by file.
    """
    path.mkdir(mode=_SECRET_DIRECTORY, parents=True, exist_ok=True)
    if may_be_closed(path.stat(), path.resolve(), os.geteuid()):
        path.chmod(_SECRET_DIRECTORY)
    return path


def may_be_closed(found: os.stat_result, path: Path, user: int) -> bool:
    """Tell whether *user* should take everybody else's access to the directory *path* away."""
    mode = stat.S_IMODE(found.st_mode)
    if mode == _SECRET_DIRECTORY or mode & stat.S_ISVTX:
        return False
    return found.st_uid == user and str(path) not in _SHARED


def write_secret(path: Path, content: bytes) -> None:
    """Replace *path* atomically and durably; nobody else can read it at any moment."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _SECRET_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_directory(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    """Make the names in a directory durable; a rename alone may be lost with the power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
