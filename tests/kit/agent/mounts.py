"""A host that has only paths, to plan a root file system on."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from skerry.edge.agent.root_plan import (
    Kind,
)

USUAL = {
    "/bin": "usr/bin",
    "/lib": "usr/lib",
    "/boot/": None,
    "/etc/": None,
    "/etc/shadow": None,
    "/etc/passwd": None,
    "/etc/ld.so.cache": None,
    "/etc/localtime": "/usr/share/zoneinfo/UTC",
    "/etc/ssl/": None,
    "/etc/ssl/certs/": None,
    "/etc/ssl/private/": None,
    "/etc/java-17/": None,
    "/home/alice/.ssh/": None,
    "/home/alice/app/run": None,
    "/opt/acme/web": None,
    "/root/.venv/bin/": None,
    "/usr/bin/env": None,
    "/usr/etc/": None,
    "/usr/lib/": None,
    "/usr/local/etc/": None,
    "/usr/share/doc/": None,
    "/usr/share/link": "/var/run/x",
    "/usr/share/loop": "loop",
    "/usr/share/zoneinfo/UTC": None,
    "/proc/cpuinfo": None,
    "/proc/kcore": None,
    "/proc/sys/": None,
    "/proc/1/": None,
    "/proc/self": "1",
    "/sys/devices/system/cpu/": None,
    "/sys/firmware/": None,
    "/usr/share/skerry/pki/": None,
}


class MadeUp:
    """A machine of paths: a slash at the end is a directory, a text a link."""

    def __init__(self, paths: Mapping[str, str | None] = USUAL) -> None:
        self._links = {path: target for path, target in paths.items() if target is not None}
        self._files = {p for p, target in paths.items() if target is None and p[-1] != "/"}
        self._folders = {"/"}
        for path in paths:
            folder = path.rstrip("/") if path[-1] == "/" else posixpath.dirname(path)
            while folder != "/":
                self._folders.add(folder)
                folder = posixpath.dirname(folder)

    def kind(self, path: str) -> Kind:
        if path in self._links:
            return "link"
        return "directory" if path in self._folders else "file" if path in self._files else ""

    def link(self, path: str) -> str:
        return self._links[path]

    def names(self, path: str) -> Sequence[str]:
        known = {*self._links, *self._files, *self._folders} - {"/"}
        return sorted(posixpath.basename(p) for p in known if posixpath.dirname(p) == path)
