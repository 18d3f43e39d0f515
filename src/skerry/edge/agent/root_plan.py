"""What a container of a built-in image sees, planned as a list of steps.

Nothing of the machine is seen unless it is listed here: its programs and libraries, the few files
in ``/etc`` that they read, the interpreter, and what the image's entry in the catalogue names; all
read-only. The rest is the container's own: an empty root, ``/tmp``, a home, devices that harm
nobody, a ``/proc`` of its own processes in which nothing of the machine can be written, and its
volumes at exactly the paths it names.

A mount may lie where the machine has nothing. Then the directories above it are *opened*: each
becomes the container's own and shows the machine's entries one by one, because an ordinary user may
make no directory below ``/usr``, not even in a layer over it.

Pure: the machine is asked through ``Machine``. The steps are data, which ``container_root``
performs inside a root and nowhere else, and which become the arguments of ``bubblewrap``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

_MAX_LINKS = 40
# Programs and libraries, wherever systems keep them. Some are links to others.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/nix/store", "/gnu/store"),
)
# Settings of the machine's own services, which may hold passwords.
_HIDDEN = ("/usr/etc", "/usr/local/etc")
# What programs read in /etc to work at all: names, libraries, locales, certificates to trust.
_ETC = (
    *("alternatives", "bash.bashrc", "bindresvport.blacklist", "ca-certificates"),
    *("ca-certificates.conf", "crypto-policies", "debian_version", "ethertypes", "fonts"),
    *("gai.conf", "host.conf", "inputrc", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("locale.alias", "locale.conf", "localtime", "magic", "mime.types", "nsswitch.conf"),
    *("os-release", "perl", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs"),
    *("pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "rpc", "services", "shells"),
    *("skel", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)
_ETC_BEGINNINGS = ("java-", "python3")
_LINKS = {"/etc/mtab": "/proc/mounts", "/var/lock": "/run/lock", "/var/run": "/run"}
_FOLDERS = {
    **dict.fromkeys(("/etc", "/home", "/media", "/mnt", "/opt", "/run", "/run/lock"), 0o755),
    **dict.fromkeys(("/srv", "/sys", "/var", "/var/cache", "/var/lib", "/var/log"), 0o755),
    "/proc": 0o555,
    "/root": 0o711,
    "/tmp": 0o1777,  # noqa: S108 - its own
    "/var/tmp": 0o1777,  # noqa: S108 - its own
}
_USERS = (
    "root:x:0:0:root:/root:/bin/sh\n"
    "daemon:x:1:1:daemon:/usr/sbin:/bin/false\n"
    "www-data:x:33:33:www-data:/var/www:/bin/false\n"
    "nobody:x:65534:65534:nobody:/:/bin/false\n"
)
_GROUP = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nnogroup:x:65534:\n"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
# What of /proc, besides processes, is shown; read-only, like everything that is not a process.
_PROC_SHOWN = frozenset(
    {
        *("cgroups", "cpuinfo", "crypto", "devices", "diskstats", "filesystems", "loadavg"),
        *("meminfo", "misc", "partitions", "pressure", "stat", "swaps", "sys", "sysvipc"),
        *("uptime", "version", "vmstat", "zoneinfo"),
    }
)
# What of /sys programs ask for: how many processors and which memory, nothing to write to.
_SYS_SHOWN = (
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/kernel/mm/transparent_hugepage",
)
# No volume is put over these: what they hold keeps the container in.
_KEPT = ("/proc", "/sys")

Kind = Literal["directory", "file", "link", ""]
Action = Literal[
    "root", "folder", "link", "file", "show", "device", "mount", "mask", "freeze", "volume", "seal"
]


class Machine(Protocol):
    """What there is on the machine; links are not followed."""

    def kind(self, path: str) -> Kind:
        """Return what *path* is; empty when there is nothing, or nothing that may be seen."""

    def link(self, path: str) -> str:
        """Return where a link leads, as it is written."""

    def names(self, path: str) -> Sequence[str]:
        """Return the names in a directory; none when it may not be read."""


class Content(NamedTuple):
    """A volume at a path of the container; see ``runtime.Volume``."""

    root: str
    inside: str
    path: str
    read_only: bool
    links: bool
    devices: bool


class Wanted(NamedTuple):
    """What a container asks for. ``shown`` and ``private`` are paths of the machine: more to be
    shown, and what never is."""

    volumes: Sequence[Content] = ()
    shown: Sequence[str] = ()
    private: Sequence[str] = ()
    read_only: bool = False
    limit_bytes: int = 0
    """Most that the container writes outside its volumes; 0 leaves it to the kernel."""

    control_group: str = ""
    """The container's own control group, where programs look for their limits."""


class Step(NamedTuple):
    """One thing to do inside the root; ``path`` is the container's, ``source`` the machine's.

    * ``root``: the root itself; ``text`` says how large it may become
    * ``folder``: a directory of mode ``mode``
    * ``link``: a link to ``text``
    * ``file``: a file that holds ``text``
    * ``show``: ``source``, with what is mounted below it, read-only
    * ``device``: a device of the machine
    * ``mount``: a fresh file system of the kind ``source``, with the options ``text``
    * ``mask``: nothing, where something is
    * ``freeze``: read-only from now on, where it is
    * ``volume``: ``content``
    * ``seal``: the root itself read-only
    """

    action: Action
    path: str
    source: str = ""
    text: str = ""
    mode: int = 0
    content: Content | None = None


class BadMountPath(ValueError):
    """A volume cannot be put where it is wanted; the text says why."""


def root_plan(machine: Machine, wanted: Wanted) -> list[Step]:
    """Return the steps that make what a container sees; raises ``BadMountPath``."""
    shown = _shown(machine, wanted)
    places = _Places(machine, shown)
    volumes = [item._replace(path=places.resolved(item.path)) for item in wanted.volumes]
    for before, item in zip(wanted.volumes, volumes, strict=True):
        _refuse_kept(before.path, item.path)
    opened = frozenset(folder for item in volumes for folder in places.opened(item.path))
    steps = [Step("root", "/", text=_size(wanted.limit_bytes))]
    steps += [Step("folder", path, mode=mode) for path, mode in sorted(_FOLDERS.items())]
    steps += [Step("link", path, text=target) for path, target in sorted(_LINKS.items())]
    steps += [Step("file", "/etc/passwd", text=_USERS), Step("file", "/etc/group", text=_GROUP)]
    for path in shown:
        steps += _show(machine, path, opened)
    steps += [Step("mask", path) for path in _masks(machine, shown, wanted)]
    steps += [*_processes(machine), *_system(machine, wanted.control_group), *_devices()]
    # Shorter paths first, so that mounts within mounts are seen.
    steps += [
        Step("volume", item.path, content=item)
        for item in sorted(volumes, key=lambda item: item.path.count("/"))
    ]
    return [*steps, Step("seal", "/")] if wanted.read_only else steps


def _size(limit_bytes: int) -> str:
    return f"size={limit_bytes}" if limit_bytes else ""


def _shown(machine: Machine, wanted: Wanted) -> list[str]:
    """Return the paths of the machine that are seen, none of them below another."""
    etc = [f"/etc/{name}" for name in _ETC]
    etc += [f"/etc/{n}" for n in machine.names("/etc") if n.startswith(_ETC_BEGINNINGS)]
    asked = [posixpath.normpath(path) for path in wanted.shown if path.startswith("/")]
    found: list[str] = []
    for path in sorted({*_SYSTEM, *etc, *asked} - {"/"}):
        if machine.kind(path) and not any(is_below(path, other) for other in found):
            found.append(path)
    return found


def is_below(path: str, folder: str) -> bool:
    """Tell whether *path* is *folder* or lies in it, by their names alone."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class _Places:
    """Where paths of the container lead, as it will see them."""

    def __init__(self, machine: Machine, shown: Sequence[str]) -> None:
        self._machine = machine
        self._shown = shown

    def resolved(self, path: str) -> str:
        """Return a container path with its links followed, but for those in volumes."""
        waiting, found, links = path.split("/"), "/", 0
        while waiting:
            part = waiting.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                found = posixpath.dirname(found)
                continue
            place = posixpath.join(found, part)
            target = self._link(place)
            if target is None:
                found = place
                continue
            links += 1
            if links > _MAX_LINKS:
                raise BadMountPath(f"mountPath {path}: too many links on the way")
            waiting = target.split("/") + waiting
            found = "/" if target.startswith("/") else found
        return found

    def _link(self, place: str) -> str | None:
        if place in _LINKS:
            return _LINKS[place]
        if self._of_machine(place) and self._machine.kind(place) == "link":
            return self._machine.link(place)
        return None

    def _of_machine(self, place: str) -> str:
        """Return the shown path that *place* belongs to; empty when it is the container's own."""
        return next((folder for folder in self._shown if is_below(place, folder)), "")

    def opened(self, path: str) -> Iterator[str]:
        """Yield the directories that must be the container's own for *path* to have a place."""
        folder = self._of_machine(path)
        if not folder or path == folder or self._machine.kind(path):
            return
        parent = posixpath.dirname(path)
        while is_below(parent, folder):
            yield parent
            parent = posixpath.dirname(parent)


def _refuse_kept(asked: str, resolved: str) -> None:
    for kept in _KEPT:
        if is_below(resolved, kept):
            raise BadMountPath(f"mountPath {asked}: nothing can be mounted inside {kept}")


def _show(machine: Machine, path: str, opened: Iterable[str]) -> Iterator[Step]:
    """Yield how a path of the machine is shown; an opened directory by its entries in turn."""
    if machine.kind(path) == "link":
        yield Step("link", path, text=machine.link(path))
    elif path in opened and machine.kind(path) == "directory":
        yield Step("folder", path, mode=0o755)
        for name in machine.names(path):
            yield from _show(machine, posixpath.join(path, name), opened)
    elif machine.kind(path):
        yield Step("show", path, path)


def _masks(machine: Machine, shown: Sequence[str], wanted: Wanted) -> Iterator[str]:
    """Yield what lies below a shown path and is not to be seen all the same."""
    for path in sorted({*_HIDDEN, *map(posixpath.normpath, wanted.private)}):
        if machine.kind(path) and any(is_below(path, folder) for folder in shown):
            yield path


def _processes(machine: Machine) -> Iterator[Step]:
    """Yield a /proc in which only the container's own processes can be changed.

    To the kernel the root user of an edge that root runs is the machine's: the permissions of
    /proc/sys would let it through. So nothing but processes is writable, whatever it may be.
    """
    yield Step("mount", "/proc", "proc")
    for name in proc_names(machine.names("/proc")):
        yield Step("freeze" if name in _PROC_SHOWN else "mask", f"/proc/{name}")


def proc_names(names: Iterable[str]) -> list[str]:
    """Return what of /proc is about the machine: neither a process nor a link to one."""
    own = {"mounts", "net", "self", "thread-self"}
    return sorted(name for name in names if not name.isdigit() and name not in own)


def masked_and_frozen(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return which paths in /proc are hidden and which read-only, as OCI runtimes want them."""
    found = proc_names(names)
    masked = [f"/proc/{name}" for name in found if name not in _PROC_SHOWN]
    return masked, [f"/proc/{name}" for name in found if name in _PROC_SHOWN]


def _system(machine: Machine, control_group: str) -> Iterator[Step]:
    yield Step("mount", "/sys", "tmpfs", "mode=755")
    for path in _SYS_SHOWN:
        if machine.kind(path) == "directory":
            yield Step("show", path, path)
    if control_group:
        yield Step("show", "/sys/fs/cgroup", control_group)
    yield Step("freeze", "/sys")


def _devices() -> Iterator[Step]:
    yield Step("mount", "/dev", "tmpfs", "mode=755,size=64m")
    for name in _DEVICES:
        yield Step("device", f"/dev/{name}", f"/dev/{name}")
    yield Step("mount", "/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=620")
    yield Step("mount", "/dev/shm", "tmpfs", "mode=1777,size=64m")  # noqa: S108 - its own
    yield Step("mount", "/dev/mqueue", "mqueue")
    for name, target in _DEVICE_LINKS.items():
        yield Step("link", f"/dev/{name}", text=target)


def sys_shown() -> tuple[str, ...]:
    """Return what of /sys a container sees."""
    return _SYS_SHOWN


def steps_from(items: Iterable[Sequence[object]]) -> list[Step]:
    """Return steps that went through JSON."""
    found = []
    for item in items:
        step = Step(*item)  # type: ignore[arg-type]
        content = None if step.content is None else Content(*step.content)
        found.append(step._replace(content=content))
    return found
