"""Linux namespaces and mounts, as system calls.

For processes that run below the agent (``python -I -S``), so nothing but the standard library.
Every function raises ``OSError`` that names the call and what it was about.
"""

from __future__ import annotations

import ctypes
import os
import platform

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_BIND = 0x1000
MS_REC = 0x4000
MS_SLAVE = 0x80000

_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAPBSET_DROP = 24
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
# The same number on every architecture: it is younger than the common table.
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155}.get(platform.machine(), 41)
# What containers usually may: change owners and users, signal. Not: mount, route, trace.
_CAPABILITIES_KEPT = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31})
_CAPABILITIES = 41

_library = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, call: str, about: str = "") -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}", about or None)


def unshare(flags: int) -> None:
    """Leave the namespaces *flags* name for new ones."""
    _checked(_library.unshare(flags), "unshare")


def join(path: str) -> None:
    """Enter the namespace that *path* stands for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        join_descriptor(descriptor)
    finally:
        os.close(descriptor)


def join_descriptor(descriptor: int) -> None:
    """Enter an open namespace."""
    _checked(_library.setns(descriptor, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount; see mount(2)."""
    result = _library.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(result, "mount", target)


def bind(source: str, target: str, *, read_only: bool) -> None:
    """Show *source*, with what is mounted below it, at *target*, which must exist."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        _make_read_only(target)


def _make_read_only(path: str) -> None:
    # struct mount_attr: attr_set, attr_clr, propagation, userns_fd.
    attributes = (ctypes.c_uint64 * 4)(_MOUNT_ATTR_RDONLY, 0, 0, 0)
    result = _library.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(path),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _checked(result, "mount_setattr", path)


def change_root(path: str) -> None:
    """Make *path*, a mount, the root, and let go of the old one."""
    os.chdir(path)
    result = _library.syscall(ctypes.c_long(_SYS_PIVOT_ROOT), b".", b".")
    _checked(result, "pivot_root", path)
    # The old root now lies on top of the new one, in the same place.
    _checked(_library.umount2(b".", _MNT_DETACH), "umount2", path)
    os.chdir("/")


def set_host_name(name: str) -> None:
    """Name the machine, in this namespace."""
    text = os.fsencode(name)
    _checked(_library.sethostname(text, ctypes.c_size_t(len(text))), "sethostname", name)


def die_with_parent() -> None:
    """Be killed when the parent ends."""
    _checked(_library.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of whatever descendants leave behind."""
    _checked(_library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def drop_capabilities() -> None:
    """Let programs this process becomes or starts have no more rights than containers usually."""
    for number in range(_CAPABILITIES):
        if number not in _CAPABILITIES_KEPT:
            # A kernel that does not know the number has nothing to drop.
            _library.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def map_identities(pid: int, user: int, group: int) -> None:
    """Say who is who in the user namespace of process *pid*, which made it and waits.

    root keeps everybody as they are. Anybody else can be root there, and nobody besides.
    """
    if user == 0:
        # All but the last: by a map of all of them, programs take a namespace for the machine.
        users = groups = "0 0 4294967294"
    else:
        users, groups = f"0 {user} 1", f"0 {group} 1"
        _write(f"/proc/{pid}/setgroups", "deny")
    _write(f"/proc/{pid}/uid_map", users)
    _write(f"/proc/{pid}/gid_map", groups)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
