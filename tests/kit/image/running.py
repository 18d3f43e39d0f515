"""Runs an image under crun: its own user, a read-only root, no privilege, the host's network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.kit.image.building import Image

_QUIET = ("nosuid", "nodev", "noexec")
_NAMESPACES = ("pid", "ipc", "uts", "mount")  # and the machine's network, for its loopback


def container(
    image: Image, bundle: Path, words: Sequence[str], shown: Mapping[str, Path] | None = None
) -> list[str]:
    """Write *bundle* to run *words* after the entrypoint; return the command that runs it.

    *shown* are folders of the machine the container may write, by their paths inside.
    """
    bundle.mkdir(parents=True)
    mounts = [
        _mount("/proc", "proc", *_QUIET),
        _mount("/dev", "tmpfs", "nosuid", "mode=755", "size=64k"),
        _mount("/tmp", "tmpfs", *_QUIET, "mode=1777", "size=16m"),
        *(_mount(at, "bind", "rbind", "rw", *_QUIET, source=str(path))
          for at, path in (shown or {}).items()),
    ]  # fmt: skip
    uid, _, gid = image.user.partition(":")
    configuration = {
        "ociVersion": "1.0.2",
        "root": {"path": str(image.root), "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": int(uid), "gid": int(gid or 0)},
            "args": [*image.entrypoint, *(words or image.command)],
            "env": [f"{name}={value}" for name, value in image.environment.items()],
            "cwd": image.working_directory,
            "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted")},
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in _NAMESPACES]},
    }
    (bundle / "config.json").write_text(json.dumps(configuration))
    # crun refuses to begin below control groups of both versions; it needs none here.
    hidden = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", hidden, "sh",
            "crun", "--cgroup-manager=disabled", "--root", str(bundle / "state"),
            "run", "--bundle", str(bundle), bundle.name]  # fmt: skip


def _mount(path: str, kind: str, *options: str, source: str = "") -> dict[str, Any]:
    return {"destination": path, "type": kind, "source": source or kind, "options": list(options)}
