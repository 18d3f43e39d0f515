"""Giving up rights, as system calls: what a program is left with when it begins.

For processes that run below the agent, so nothing but the standard library. Every function raises
``OSError``: a program that keeps a right it should not have must not be started.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION = 0x20080522
_CAPABILITIES = 64
_CLOSE_RANGE_CLOEXEC = 4
_SYS_CLOSE_RANGE = 436
_MAX_DESCRIPTOR = 0x7FFFFFFF
_INSTRUCTION_BYTES = 8

_library = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


class Rights(NamedTuple):
    """What a program is left with. None leaves a user or a group as it is."""

    user: int | None = None
    group: int | None = None
    groups: Sequence[int] | None = None
    capabilities: Collection[int] = ()
    no_new_privileges: bool = False
    # A seccomp filter as the kernel wants it, in hexadecimal; empty for none.
    seccomp: str = ""


def rights_from(fields: Mapping[str, Any]) -> Rights:
    """Return rights that went through JSON."""
    return Rights(**fields)


def become(rights: Rights) -> None:
    """Leave this process with *rights* and no others; the order is the kernel's.

    A filter takes the right to be set before that is given up, or the promise to gain no more;
    capabilities go before the user does, who could not drop them any more.
    """
    if rights.no_new_privileges:
        promise_no_new_privileges()
    if rights.seccomp:
        set_filter(bytes.fromhex(rights.seccomp))
    _limit_capabilities(rights.capabilities, bounded=rights.no_new_privileges)
    if rights.groups is not None:
        os.setgroups(rights.groups)
    if rights.group is not None:
        os.setresgid(rights.group, rights.group, rights.group)
    if rights.user is not None:
        os.setresuid(rights.user, rights.user, rights.user)
    _keep_capabilities(rights.capabilities if os.geteuid() == 0 else ())


def _limit_capabilities(kept: Collection[int], *, bounded: bool) -> None:
    """Let no program that this process becomes or starts have others than *kept*.

    That takes a right which not everybody has. Who has promised to gain nothing is *bounded* by
    what is given up here anyway.
    """
    _call("prctl", _library.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
    for number in range(_CAPABILITIES):
        if number in kept:
            continue
        present = _library.prctl(_PR_CAPBSET_READ, number, 0, 0, 0)
        if present < 0:
            return  # the kernel knows no more
        if present:
            try:
                _call("prctl", _library.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0))
            except PermissionError:
                if not bounded:
                    raise
                return


def _keep_capabilities(kept: Collection[int]) -> None:
    """Give up every capability but *kept*; none is passed on but by the rule for root."""
    header = _Header(_CAPABILITY_VERSION, 0)
    held = (_Data * 2)()
    _call("capget", _library.capget(ctypes.byref(header), ctypes.byref(held)))
    for half in range(2):
        bits = sum(1 << number % 32 for number in kept if number // 32 == half)
        # What one does not have one cannot keep.
        bits &= held[half].permitted
        held[half].effective = held[half].permitted = bits
        held[half].inheritable = 0
    _call("capset", _library.capset(ctypes.byref(header), ctypes.byref(held)))


def promise_no_new_privileges() -> None:
    """Gain no rights by any program from now on, set-user-ID or not."""
    _call("prctl", _library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def set_filter(program: bytes) -> None:
    """Let the kernel judge every system call from now on by a seccomp filter."""
    wanted = _Program(len(program) // _INSTRUCTION_BYTES, program)
    result = _library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(wanted))
    _call("seccomp", result)


def opened_group(path: str) -> int:
    """Return what a process of ours enters a control group by, whoever it is then; -1 for none."""
    if not path:
        return -1
    return os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)


def own_group() -> int:
    """Return what this process's present control group is entered by; raises ``OSError``."""
    with open("/proc/self/mountinfo") as file:
        mounts = [line.split(" - ") for line in file]
    (place,) = {before.split(" ")[4] for before, after in mounts if after.startswith("cgroup2 ")}
    with open("/proc/self/cgroup") as file:
        (path,) = (line.rstrip("\n")[3:] for line in file if line.startswith("0::"))
    return opened_group(place + path)


def enter_group(opened: int) -> None:
    """Put this process, and whatever it starts, into a control group that was opened."""
    if opened >= 0:
        os.write(opened, b"0")


def set_dumpable(value: bool) -> None:
    """Let others of the same user look into this process, or not.

    Those of a container may be the same user: through a helper of ours they would reach its memory,
    its rights and the machine's interpreter (``/proc/PID/exe``).
    """
    _call("prctl", _library.prctl(_PR_SET_DUMPABLE, int(value), 0, 0, 0))


def close_at_exec(first: int = 3) -> None:
    """Have every descriptor from *first* on closed when a program begins."""
    wanted = (ctypes.c_uint(first), ctypes.c_uint(_MAX_DESCRIPTOR))
    flag = ctypes.c_uint(_CLOSE_RANGE_CLOEXEC)
    if _library.syscall(ctypes.c_long(_SYS_CLOSE_RANGE), *wanted, flag) == 0:
        return
    for name in os.listdir("/proc/self/fd"):
        if int(name) >= first and os.path.exists(f"/proc/self/fd/{name}"):
            os.set_inheritable(int(name), False)


def hide_arguments(title: bytes = b"init") -> None:
    """Show another command line: the true one names paths of the machine."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if start and end > start:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, title, min(len(title), end - start - 1))


def knows_seccomp() -> bool:
    """Tell whether the kernel takes filters: it answers to a null one that it cannot read it."""
    _library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, None)
    return ctypes.get_errno() == 14  # EFAULT


def _call(name: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
