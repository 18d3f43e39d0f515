"""Resource limits by control groups (version 2), where the machine lets the edge make them.

An edge has one group of its own, with one group below it for each attempt to run a container. It is
made below the highest group that this user may write to and whose owner hands controllers on:
the machine's root group for root, the one that a service manager delegated for anybody else. No
process but our own is ever moved, and no controller is switched on where others might not want it.

Found out by doing it: permissions do not tell whether a process may be moved there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from skerry.api.objects import Object
from skerry.kit.log import Logger
from skerry.logic.machinery.quantity import Quantity

# A quota counts in a tenth of a second, as kubelet's.
_PERIOD_MICROSECONDS = 100_000
_MIN_QUOTA_MICROSECONDS = 1_000
# What limits there are can be enforced with, by controller.
_FILES = {"cpu": "cpu.max", "memory": "memory.max"}
_PROCESSES = "cgroup.procs"
_SUBTREE = "cgroup.subtree_control"
_TYPE = "cgroup2"
_TRIAL_SECONDS = 5.0

_log = Logger("agent")


def mounted_at(mounts: str) -> str:
    """Return where control groups of version 2 are mounted, by /proc/self/mountinfo."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ")[:1] == [_TYPE]:
            return before.split(" ")[4].replace("\\040", " ")
    return ""


def own_group(groups: str) -> str:
    """Return the group of version 2 a process is in, by /proc/self/cgroup; empty when in none."""
    for line in groups.splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            return path
    return ""


def candidates(mount: str, own: str) -> list[Path]:
    """Return the groups that one of an edge could be made below, the highest first."""
    top = Path(mount)
    parts = [part for part in own.split("/") if part not in ("", ".", "..")]
    return [top.joinpath(*parts[:number]) for number in range(max(1, len(parts)))]


def limits_of(container: Object) -> dict[str, str]:
    """Return the limits of a container, by resource."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return {name: str(amount) for name, amount in limits.items()}


def settings_of(container: Object, controllers: Iterable[str]) -> dict[str, str]:
    """Return what to write to the files of a container's group."""
    limits, found = limits_of(container), dict[str, str]()
    if "cpu" in limits and "cpu" in controllers:
        thousandths = Quantity.parse(limits["cpu"]).milli_value()
        quota = max(_MIN_QUOTA_MICROSECONDS, thousandths * _PERIOD_MICROSECONDS // 1000)
        found[_FILES["cpu"]] = f"{quota} {_PERIOD_MICROSECONDS}"
    if "memory" in limits and "memory" in controllers:
        found[_FILES["memory"]] = str(Quantity.parse(limits["memory"]).value())
    return found


def unenforced(container: Object, controllers: Iterable[str]) -> list[str]:
    """Return the limits of a container that nothing on this machine keeps."""
    enforced = {name for name in _FILES if name in controllers}
    return sorted(name for name in limits_of(container) if name in _FILES and name not in enforced)


def storage_limit(container: Object) -> int:
    """Return how much a container may write outside its volumes, in bytes; 0 without a limit."""
    amount = limits_of(container).get("ephemeral-storage")
    return 0 if amount is None else Quantity.parse(amount).value()


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """The group of an edge; without a directory there is none, and ``why`` says why not."""

    directory: Path | None = None
    controllers: frozenset[str] = frozenset()
    why: str = ""

    def make(self, uid: str, container: Object, attempt: str) -> str:
        """Return a group with a container's limits, its path; empty when it has none to keep.

        One for each attempt, so that each knows how it ended. A limit that the kernel does not take
        leaves the container without one, which is logged.
        """
        wanted = settings_of(container, self.controllers)
        if self.directory is None or not wanted:
            return ""
        name = container["name"]
        group = self.directory / f"{uid}-{name}-{attempt}"
        try:
            self._remove(f"{uid}-{name}-*", group)
            group.mkdir(exist_ok=True)
            for file, text in wanted.items():
                (group / file).write_text(text)
            # Beyond its memory a container is ended, not swapped; some machines have no swap.
            with contextlib.suppress(OSError):
                (group / "memory.swap.max").write_text("0")
        except OSError as error:
            _log.warning("limits not set", key=f"{uid}/{name}", error=error)
            return ""
        return str(group)

    def was_out_of_memory(self, group: str) -> bool:
        """Tell whether the kernel ended something in a group because of its memory limit."""
        if not group:
            return False
        with contextlib.suppress(OSError, ValueError):
            text = (Path(group) / "memory.events").read_text()
            counts = dict(line.split(" ") for line in text.splitlines())
            return int(counts.get("oom_kill", "0")) > 0
        return False

    def remove(self, uid: str) -> None:
        """Remove the groups of a pod; one that still has a process stays, and does no harm."""
        self._remove(f"{uid}-*")

    def _remove(self, pattern: str, kept: Path | None = None) -> None:
        if self.directory is None:
            return
        for group in self.directory.glob(pattern):
            if group != kept:
                with contextlib.suppress(OSError):
                    group.rmdir()


def found(name: str, proc: Path = Path("/proc/self")) -> ControlGroups:
    """Return the group of the edge *name*, made where it can be."""
    try:
        mount = mounted_at((proc / "mountinfo").read_text())
        own = own_group((proc / "cgroup").read_text())
    except OSError as error:
        return ControlGroups(why=f"control groups cannot be read: {error}")
    if not mount:
        return ControlGroups(why="this machine has no control groups of version 2 (cgroup2)")
    for above in candidates(mount, own):
        if offered := _offered(above):
            return _made(above, name, offered)
    return ControlGroups(
        why=f"no control group between {mount} and {own or '/'} is delegated to this user"
    )


def _offered(group: Path) -> frozenset[str]:
    """Return the controllers that a group hands on to those below it, where one can be made."""
    if not os.access(group, os.W_OK):
        return frozenset()
    try:
        return frozenset((group / _SUBTREE).read_text().split()) & set(_FILES)
    except OSError:
        return frozenset()


def _made(above: Path, name: str, offered: frozenset[str]) -> ControlGroups:
    directory = above / f"skerry-{name}"
    try:
        directory.mkdir(exist_ok=True)
        (directory / _SUBTREE).write_text(" ".join(f"+{name}" for name in sorted(offered)))
        _try_to_move(directory)
    except OSError as error:
        with contextlib.suppress(OSError):
            directory.rmdir()
        return ControlGroups(why=f"{directory} cannot be used: {error.strerror or error}")
    return ControlGroups(directory, offered)


def _try_to_move(directory: Path) -> None:
    """Move a process of ours there and let it end; raises ``OSError``."""
    trial = directory / "trial"
    trial.mkdir(exist_ok=True)
    try:
        moved = subprocess.run(  # noqa: S603 - words of our own
            ["/bin/sh", "-c", 'echo 0 > "$0"', str(trial / _PROCESSES)],
            capture_output=True,
            text=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"a process could not be moved to {directory}") from error
    finally:
        trial.rmdir()
    if moved.returncode:
        raise OSError(f"a process could not be moved: {moved.stderr.strip()}")
