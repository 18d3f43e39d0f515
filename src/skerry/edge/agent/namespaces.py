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

# In the order in which they are entered. The user namespace first: it gives the right to enter the
# others. Mounts last: opening the others takes the machine's /proc.
KINDS = ("user", "ipc", "uts", "net", "pid", "mnt")

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REC = 0x4000
MS_SLAVE = 0x80000

_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
# For mount_setattr; the same values as of mount(2) by chance.
ATTR_RDONLY = 0x1
ATTR_NOSUID = 0x2
ATTR_NODEV = 0x4
_OPEN_TREE_CLONE = 1
_MOVE_FROM_AND_TO_DESCRIPTORS = 0x4 | 0x40
# The same numbers on every architecture: they are younger than the common table.
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_SYS_PIVOT_ROOT = {"x86_64": 155}.get(platform.machine(), 41)

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


def attach(source: int, target: int, attributes: int) -> None:
    """Show what *source* is open at, with what is mounted below it, at what *target* is open at.

    Both are descriptors, so neither can be exchanged on the way; *attributes* hold before anybody
    can see it.
    """
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE
    tree = _library.syscall(
        ctypes.c_long(_SYS_OPEN_TREE), ctypes.c_int(source), b"", ctypes.c_uint(flags)
    )
    _checked(tree, "open_tree")
    try:
        _set_attributes(tree, attributes)
        result = _library.syscall(
            ctypes.c_long(_SYS_MOVE_MOUNT),
            ctypes.c_int(tree),
            b"",
            ctypes.c_int(target),
            b"",
            ctypes.c_uint(_MOVE_FROM_AND_TO_DESCRIPTORS),
        )
        _checked(result, "move_mount")
    finally:
        os.close(tree)


def seal(path: int) -> None:
    """Make one mount read-only, and none below it."""
    _set_attributes(path, ATTR_RDONLY, recursive=False)


def _set_attributes(path: int, attributes: int, *, recursive: bool = True) -> None:
    # struct mount_attr: attr_set, attr_clr, propagation, userns_fd.
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    result = _library.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(path),
        b"",
        ctypes.c_uint(flags),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
    _checked(result, "mount_setattr")


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


def identity_namespace(user: int, group: int) -> int:
    """Return a user namespace in which whoever we are is *user* and *group*, and nobody else is.

    Made by a child that ends at once, before anybody could look into it.
    """
    users, groups = f"{user} {os.geteuid()} 1", f"{group} {os.getegid()} 1"
    reader, writer = os.pipe()
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(CLONE_NEWUSER)
            _write("/proc/self/uid_map", users)
            _write("/proc/self/gid_map", groups)
        except OSError as error:
            os.write(writer, str(error).encode())
        else:
            os.write(writer, b"made")
            os.close(go)
            os.read(wait, 1)
        os._exit(0)
    os.close(writer)
    os.close(wait)
    try:
        said = os.read(reader, 4096)
        if said != b"made":
            raise OSError(said.decode() or "a user namespace could not be made")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(go)
        os.close(reader)
        os.waitpid(child, 0)


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
