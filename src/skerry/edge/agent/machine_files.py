"""The machine's files as they are, for plans; see ``root_plan``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

from skerry.edge.agent.root_plan import Kind

# Of a prefix that Python was installed to; it may be somebody's home.
_PREFIX_PARTS = ("bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "share")


class MachineFiles:
    """Asks the file system; what may not be looked at is not there."""

    def kind(self, path: str) -> Kind:
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return ""
        if stat.S_ISLNK(mode):
            return "link"
        return "directory" if stat.S_ISDIR(mode) else "file"

    def link(self, path: str) -> str:
        return os.readlink(path)

    def names(self, path: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(path))
        except OSError:
            return ()


def interpreter_paths() -> list[str]:
    """Return where this interpreter and its libraries are."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    found = {os.path.join(prefix, part) for prefix in prefixes for part in _PREFIX_PARTS}
    return sorted({*found, os.path.realpath(sys.executable)})
