"""Drives an OCI runtime (crun, runc) for one container, from within its shim.

The shim joins the pod's namespaces first, so the runtime is root there whoever runs the edge, and
the container it makes is on the pod's network. It becomes the parent of the container's first
process, which the runtime leaves behind; from then on a container of an image is watched, logged
and ended like any other.

The image's files lie under a layer of the container's own, which goes with it.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from skerry.edge.agent import namespaces
from skerry.edge.agent.container_root import opened_volume
from skerry.edge.agent.root_plan import Content

_CONTROL_GROUPS = "/sys/fs/cgroup"
_LOG = "runtime.log"
_PID = "pid"


def enter(oci: dict[str, Any]) -> None:
    """Join the pod's namespaces and mount the container's root; raises ``OSError``."""
    namespaces.join(oci["user"])
    if oci["network"]:
        namespaces.join(oci["network"])
    namespaces.unshare(namespaces.CLONE_NEWNS)
    namespaces.mount("none", "/", flags=namespaces.MS_REC | namespaces.MS_SLAVE)
    if oci["hide_control_groups"] and os.path.isdir(_CONTROL_GROUPS):
        namespaces.mount("tmpfs", _CONTROL_GROUPS, "tmpfs")
    directory = oci["directory"]
    layers = {"upperdir": f"{directory}/upper", "workdir": f"{directory}/work"}
    for path in (*layers.values(), oci["root"]):
        os.makedirs(path, exist_ok=True)
    options = [f"lowerdir={_escaped(oci['image'])}"]
    options += [f"{name}={_escaped(path)}" for name, path in layers.items()]
    # Marks of the layer as any user may set them.
    text = ",".join([*options, "userxattr"])
    namespaces.mount("overlay", oci["root"], "overlay", namespaces.MS_NODEV, text)
    for volume in oci["volumes"]:
        _stage(*volume)
    namespaces.adopt_orphans()


def _stage(
    place: str, root: str, inside: str, links: bool, devices: bool, read_only: bool, is_file: bool
) -> None:
    """Put a volume, or a part of one, where the runtime finds it and no pod can exchange it."""
    if is_file:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "a"):
            pass
    else:
        os.makedirs(place, exist_ok=True)
    content = Content(root, inside, place, read_only, links, devices)
    target = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with opened_volume(content) as source:
            namespaces.attach(source, target, namespaces.ATTR_NOSUID)
    finally:
        os.close(target)


def _escaped(path: str) -> str:
    for sign in ("\\", ":", ","):
        path = path.replace(sign, f"\\{sign}")
    return path


def create(oci: dict[str, Any], given: tuple[int, int, int]) -> int:
    """Make the container, with nothing of the user's running yet; returns its first process."""
    directory = oci["directory"]
    words = ["create", "--bundle", directory, "--pid-file", f"{directory}/{_PID}"]
    _run(oci, [*words, oci["identity"]], given)
    with open(f"{directory}/{_PID}") as file:
        return int(file.read())


def start(oci: dict[str, Any]) -> None:
    """Let the container's program run; raises ``OSError``."""
    _run(oci, ["start", oci["identity"]])


def delete(oci: dict[str, Any]) -> None:
    """Remove what the runtime keeps of the container; harmless when there is nothing."""
    with contextlib.suppress(OSError):
        _run(oci, ["delete", "--force", oci["identity"]])


def _run(oci: dict[str, Any], words: list[str], given: tuple[int, int, int] | None = None) -> None:
    """Run the OCI runtime to its end, with the container's streams; its complaint is raised."""
    directory = oci["directory"]
    log = f"{directory}/{_LOG}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(log)
    argv = [*oci["program"], "--root", f"{directory}/state", "--log", log, *words]
    pid = os.posix_spawn(
        argv[0],
        argv,
        {"PATH": oci["path"]},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, given[target], target)
            if given
            else (os.POSIX_SPAWN_OPEN, target, os.devnull, os.O_RDWR, 0)
            for target in range(3)
        ],
    )
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise OSError(_complaint(log) or f"{argv[0]} {words[0]} failed")


def _complaint(log: str) -> str:
    """Return the last thing the runtime wrote, without what some put around the message."""
    try:
        with open(log) as file:
            lines = [line for line in file.read().splitlines() if line]
    except OSError:
        return ""
    if not lines:
        return ""
    last = lines[-1]
    if 'msg="' in last:
        return last.partition('msg="')[2].rstrip('"').replace('\\"', '"')
    return last
