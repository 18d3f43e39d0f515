"""The ``config.json`` of a container for an OCI runtime, from what was asked for.

Pure, but for the names in /proc, which are the kernel's. The same is hidden, read-only, dropped and
filtered as for containers that the agent starts itself (see ``root_plan`` and ``privileges``).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

from skerry.edge.agent.root_plan import masked_and_frozen, sys_shown
from skerry.edge.agent.runtime import ContainerSpec, Mount
from skerry.edge.agent.seccomp_profile import oci_profile
from skerry.edge.agent.security_context import CAPABILITIES

_NOSUID = ("nosuid", "nodev")


def configuration(
    spec: ContainerSpec,
    root: str,
    sources: Sequence[str],
    identity: tuple[int, int] | None = None,
    proc_names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return an OCI configuration of a container whose root is at *root*.

    *sources* are where its mounts are found, in their order; *identity* is who it is where only
    one user can be had.
    """
    asked = spec.confinement
    names = os.listdir("/proc") if proc_names is None else proc_names
    masked, frozen = masked_and_frozen(names)
    linux: dict[str, Any] = {
        # The network is the one the runtime itself is started on.
        "namespaces": [
            {"type": "pid"} | ({"path": spec.beside} if spec.beside else {}),
            *({"type": kind} for kind in ("ipc", "uts", "mount")),
        ],
        "maskedPaths": masked,
        "readonlyPaths": [*frozen, "/sys"],
        "sysctl": dict(asked.sysctls),
    }
    if identity is not None:
        linux["namespaces"].append({"type": "user"})
        for name, number in zip(("uidMappings", "gidMappings"), identity, strict=True):
            linux[name] = [{"containerID": number, "hostID": 0, "size": 1}]
    if asked.seccomp:
        linux["seccomp"] = oci_profile(platform.machine())
    mounts = zip(spec.mounts, sources, strict=True)
    return {
        "ociVersion": "1.0.2",
        "process": _process(spec, with_groups=identity is None),
        "root": {"path": root, "readonly": asked.read_only_root},
        "hostname": spec.sandbox.host_name if spec.sandbox else "",
        "mounts": [*_own_mounts(), *(_mount(item, source) for item, source in mounts)],
        "linux": linux,
    }


def _process(spec: ContainerSpec, *, with_groups: bool) -> dict[str, Any]:
    asked = spec.confinement
    user: dict[str, Any] = {"uid": asked.user or 0, "gid": asked.group or 0}
    if with_groups and asked.groups:
        user["additionalGids"] = list(asked.groups)
    kept = [f"CAP_{CAPABILITIES[number]}" for number in sorted(asked.capabilities)]
    return {
        "terminal": False,
        "user": user,
        "args": list(spec.argv),
        "env": [f"{name}={value}" for name, value in spec.environment.items()],
        "cwd": spec.working_directory,
        "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), kept),
        "noNewPrivileges": asked.no_new_privileges,
    }


def _mounted(path: str, kind: str, *options: str, source: str = "") -> dict[str, Any]:
    return {"destination": path, "type": kind, "source": source or kind, "options": list(options)}


def _mount(mount: Mount, source: str) -> dict[str, Any]:
    flags = ["rbind", "ro" if mount.is_read_only else "rw", "nosuid"]
    flags += [] if mount.volume.devices else ["nodev"]
    return _mounted(mount.path, "bind", *flags, source=source)


def _own_mounts() -> list[dict[str, Any]]:
    quiet = (*_NOSUID, "noexec")
    return [
        _mounted("/proc", "proc", *quiet),
        _mounted("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
        _mounted(
            *("/dev/pts", "devpts", "nosuid", "noexec"),
            *("newinstance", "ptmxmode=0666", "mode=0620"),
        ),
        _mounted("/dev/shm", "tmpfs", *quiet, "mode=1777"),  # noqa: S108 - its own
        _mounted("/dev/mqueue", "mqueue", *quiet),
        _mounted("/sys", "tmpfs", *quiet, "mode=755", "size=64k"),
        *(
            _mounted(path, "bind", "rbind", "ro", *quiet, source=path)
            for path in sys_shown()
            if os.path.isdir(path)
        ),
    ]
