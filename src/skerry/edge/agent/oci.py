"""Containers of real images, through an OCI runtime.

An image whose catalogue entry has a root file system is run by crun or runc, whichever the machine
has, on the pod's network; see ``oci_process`` for how. Any other image is a program of this machine
and runs in namespaces as ever. So one pod may mix both, and everything but starting is the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skerry.edge.agent.image_layout import inside, parts_of
from skerry.edge.agent.plain import PlainRuntime, contained
from skerry.edge.agent.runtime import CannotStart, Container, ContainerSpec, Image, Mount

_PROGRAMS = ("crun", "runc")
_TRIAL_SECONDS = 5.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NO_RUNTIME = "image {} has a root file system, which takes crun or runc: install one of them"
# What the engine of any container gives; see capabilities(7).
_CAPABILITIES = [
    f"CAP_{name}"
    for name in (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
]
_MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list"]
_MASKED += ["/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


@dataclass(frozen=True, slots=True)
class OciProgram:
    """An OCI runtime of this machine."""

    name: str
    version: str
    words: tuple[str, ...]


def oci_program(names: Sequence[str] = _PROGRAMS) -> OciProgram | None:
    """Return the first OCI runtime of *names* this machine has; None when it has none."""
    for name in names:
        path = shutil.which(name)
        if path is None:
            continue
        try:
            said = subprocess.run(  # noqa: S603 - a program the administrator installed
                [path, "--version"],
                capture_output=True,
                text=True,
                timeout=_TRIAL_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        version = said.stdout.split("\n", 1)[0].rpartition(" ")[2]
        # No control groups: a user has none to give, and a pod's share is not enforced here. runc
        # cannot be told so, but forgives being refused them.
        words = ("--cgroup-manager=disabled",) if name == "crun" else ("--rootless=true",)
        return OciProgram(name, version, (path, *words))
    return None


class OciRuntime:
    """Runs images with a root file system through an OCI runtime, others as *plain* does."""

    def __init__(self, plain: PlainRuntime, program: OciProgram | None) -> None:
        self._plain = plain
        self._program = program
        self.isolation = plain.isolation
        self.name, self.version = plain.name, plain.version
        if program is not None:
            self.name, self.version = program.name, program.version
            self.isolation = f"{plain.isolation} and {program.name}"

    def image(self, reference: str) -> Image:
        return self._plain.image(reference)

    async def start(self, spec: ContainerSpec) -> Container:
        if spec.image.root is None:
            return await self._plain.start(spec)
        if self._program is None:
            raise CannotStart(_NO_RUNTIME.format(spec.image.reference))
        if spec.image.unpack is not None:
            await asyncio.get_running_loop().run_in_executor(None, spec.image.unpack)
        run = contained(spec, spec.argv)
        return await self._plain.launch(run, oci=_bundle(run, self._program))

    def adopt(self, directory: Path) -> Container | None:
        return self._plain.adopt(directory)

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        return self._plain.beside(spec, argv)


def _bundle(spec: ContainerSpec, program: OciProgram) -> dict[str, Any]:
    """Write what the OCI runtime reads; returns what the shim must know to drive it."""
    if spec.sandbox is None or spec.image.root is None:
        raise CannotStart(f"image {spec.image.reference} takes a pod with namespaces")
    directory = spec.directory / "bundle"
    directory.mkdir(parents=True, exist_ok=True)
    root = directory / "rootfs"
    wanted = configuration(spec, str(root))
    (directory / "config.json").write_text(json.dumps(wanted, indent=1))
    for mount in wanted["mounts"]:
        source = Path(mount["source"])
        is_file = mount["type"] == "bind" and not source.is_dir()
        make_place(spec.image.root, directory / "upper", mount["destination"], is_file=is_file)
    return {
        "program": program.words,
        # crun looks at them even then, and does not like every arrangement.
        "hide_control_groups": program.name == "crun",
        "identity": hashlib.sha256(str(directory).encode()).hexdigest()[:32],
        "path": _PATH,
        "directory": str(directory),
        "root": str(root),
        "image": str(spec.image.root),
        "user": spec.sandbox.user,
        "network": spec.sandbox.network,
    }


def make_place(lower: Path, upper: Path, path: str, *, is_file: bool) -> None:
    """Have a place to mount on in the container's own layer, unless the image has one.

    The runtime would make it, but may not where the image's files belong to somebody else.
    """
    real = inside(lower, parts_of(path)).relative_to(lower)
    if (lower / real).exists():
        return
    for parent in reversed(real.parents):
        made, known = upper / parent, lower / parent
        made.mkdir(parents=True, exist_ok=True)
        made.chmod(known.stat().st_mode & 0o7777 if known.is_dir() else 0o755)
    if is_file:
        (upper / real).touch()
    else:
        (upper / real).mkdir(exist_ok=True)


def configuration(spec: ContainerSpec, root: str) -> dict[str, Any]:
    """Return an OCI configuration of a container whose root is at *root*."""
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": spec.user or 0, "gid": spec.group or 0},
            "args": list(spec.argv),
            "env": [f"{name}={value}" for name, value in spec.environment.items()],
            "cwd": spec.working_directory,
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES),
        },
        "root": {"path": root, "readonly": False},
        "hostname": spec.sandbox.host_name if spec.sandbox else "",
        "mounts": [*_OWN_MOUNTS, *(_mount(item) for item in spec.mounts)],
        "linux": {
            # The network is the one the runtime itself is started on.
            "namespaces": [
                {"type": "pid"} | ({"path": f"/proc/{spec.beside}/ns/pid"} if spec.beside else {}),
                *({"type": kind} for kind in ("ipc", "uts", "mount")),
            ],
            "maskedPaths": _MASKED,
            "readonlyPaths": _READ_ONLY,
        },
    }


def _mounted(path: str, kind: str, *options: str, source: str = "") -> dict[str, Any]:
    return {"destination": path, "type": kind, "source": source or kind, "options": list(options)}


def _mount(mount: Mount) -> dict[str, Any]:
    options = ("rbind", "ro" if mount.read_only else "rw")
    return _mounted(mount.path, "bind", *options, source=str(mount.source))


_OWN_MOUNTS = [
    _mounted("/proc", "proc"),
    _mounted("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
    _mounted("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"),
    _mounted("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev", "mode=1777"),  # noqa: S108 - its own
    _mounted("/dev/mqueue", "mqueue", "nosuid", "noexec", "nodev"),
    _mounted("/sys", "bind", "rbind", "nosuid", "noexec", "nodev", "ro", source="/sys"),
]
