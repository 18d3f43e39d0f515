"""Giving a volume to the group that ``fsGroup`` names, without being led out of it.

Names in a volume are its pods' to choose. Each is opened without following a link, and what is
changed is what was opened.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

# As kubelet: the group may read and write, and search directories, whose new files it inherits.
_FILE_BITS = 0o660
_DIRECTORY_BITS = 0o2770


def belongs_to(root: Path, group: int) -> bool:
    """Tell whether a volume's own directory was given to *group* already."""
    status = root.lstat()
    return status.st_gid == group and status.st_mode & _DIRECTORY_BITS == _DIRECTORY_BITS


def give_to_group(root: Path, group: int) -> None:
    """Let *group* own, read and write everything in a volume; raises ``OSError``."""
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for _, _, names, directory in os.fwalk(".", dir_fd=top, topdown=False):
            for name in names:
                _give(directory, name, group)
            _give(directory, ".", group)
    finally:
        os.close(top)


def _give(directory: int, name: str, group: int) -> None:
    opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        mode = os.fstat(opened).st_mode
        if stat.S_ISLNK(mode):
            os.chown(name, -1, group, dir_fd=directory, follow_symlinks=False)
            return
        bits = (
            stat.S_IMODE(mode) | _DIRECTORY_BITS
            if stat.S_ISDIR(mode)
            else mode & 0o777 | _FILE_BITS
        )
        # The descriptor's own file: the name may be another's by now.
        exact = f"/proc/self/fd/{opened}"
        os.chown(exact, -1, group)
        os.chmod(exact, bits)
    finally:
        os.close(opened)
