"""Which system calls containers may make: the default profile (``RuntimeDefault``).

Listed is what programs of all kinds use; any other call fails as if it were not permitted, and one
that is younger than this list as if the kernel did not know it, so that libraries do without. Not
listed is what changes the machine or widens what a container can reach: mounts, namespaces, kernel
modules and programs in the kernel, other people's keys, clocks, swap, raw ports, tracing of the
kernel, rings that do calls unseen.

Pure data, and its form for OCI runtimes; ``seccomp_filter`` makes the kernel's form.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
_CLONE_NEW = (
    0x02000000 | 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
)
_CLONE_NEWTIME = 0x80  # of unshare; in the flags of clone these bits are a signal
_TIOCSTI = 0x5412
_AF_ALG, _AF_VSOCK = 38, 40
# Of personality(2): Linux, Linux with 32-bit names, both without randomization of addresses, and
# the question which one it is.
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)

_FILES = (
    "access chdir chmod chown chroot close close_range copy_file_range creat dup dup2 dup3 "
    "faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown "
    "fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstatfs "
    "fsync ftruncate futimesat getcwd getdents getdents64 getxattr lchown lgetxattr link "
    "linkat listxattr llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod "
    "mknodat name_to_handle_at newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 "
    "pwritev pwritev2 read readahead readlink readlinkat readv removexattr rename renameat "
    "renameat2 rmdir sendfile setxattr splice stat statfs statx symlink symlinkat sync "
    "sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes "
    "vmsplice write writev cachestat"
)
_PROCESSES = (
    "alarm arch_prctl capget capset execve execveat exit exit_group fork get_robust_list "
    "get_thread_area getegid geteuid getgid getgroups getitimer getpgid getpgrp getpid "
    "getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid kcmp "
    "kill modify_ldt pause pidfd_getfd pidfd_open pidfd_send_signal prctl prlimit64 "
    "process_madvise process_mrelease process_vm_readv process_vm_writev ptrace rseq "
    "sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr "
    "sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr "
    "sched_setparam sched_setscheduler sched_yield seccomp set_robust_list set_thread_area "
    "set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority "
    "setregid setresgid setresuid setreuid setrlimit setsid setuid tgkill time times tkill "
    "vfork wait4 waitid landlock_add_rule landlock_create_ruleset landlock_restrict_self "
    "membarrier getcpu"
)
_SIGNALS = (
    "restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn "
    "rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sigaltstack signalfd signalfd4"
)
_MEMORY = (
    "brk get_mempolicy madvise mbind memfd_create memfd_secret mincore mlock mlock2 mlockall "
    "mmap mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free "
    "pkey_mprotect remap_file_pages set_mempolicy set_mempolicy_home_node shmat shmctl shmdt "
    "shmget"
)
_WAITING = (
    "clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl "
    "epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 futex futex_requeue futex_wait "
    "futex_waitv futex_wake gettimeofday inotify_add_watch inotify_init inotify_init1 "
    "inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit "
    "ioprio_get ioprio_set nanosleep poll ppoll pselect6 select timer_create timer_delete "
    "timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime "
    "timerfd_settime"
)
_TALKING = (
    "accept accept4 bind connect getpeername getrandom getsockname getsockopt listen "
    "mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget "
    "msgrcv msgsnd pipe pipe2 recvfrom recvmmsg recvmsg semctl semget semop semtimedop "
    "sendmmsg sendmsg sendto setsockopt shutdown socketpair sysinfo uname"
)
ALLOWED: tuple[str, ...] = tuple(
    sorted({*f"{_FILES} {_PROCESSES} {_SIGNALS} {_MEMORY} {_WAITING} {_TALKING}".split()})
)


class Condition(NamedTuple):
    """When a call is allowed, by one of its arguments; else it fails with ``error``.

    * ``none of``: no bit of ``values[0]`` is set in it
    * ``one of``: it is one of ``values``
    * ``not``: it is none of ``values``
    """

    argument: int
    rule: Literal["none of", "one of", "not"]
    values: tuple[int, ...]
    error: int = EPERM


CONDITIONS: Mapping[str, Condition] = {
    # No namespaces: in one of its own a process has every right there is.
    "clone": Condition(0, "none of", (_CLONE_NEW,)),
    "unshare": Condition(0, "none of", (_CLONE_NEW | _CLONE_NEWTIME,)),
    # Nothing is typed into a terminal by whoever only shares it.
    "ioctl": Condition(1, "not", (_TIOCSTI,)),
    "personality": Condition(0, "one of", _PERSONALITIES),
    # Sockets to a machine's hypervisor, and to the kernel's ciphers.
    "socket": Condition(0, "not", (_AF_ALG, _AF_VSOCK), EAFNOSUPPORT),
}
# Its flags are in memory, where a filter cannot look; libraries then use clone.
UNKNOWN: tuple[str, ...] = ("clone3",)
# The youngest call this list was made with an eye to; the same number on every machine.
YOUNGEST = 462

_ALLOW = "SCMP_ACT_ALLOW"
_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


def oci_profile(machine: str) -> dict[str, Any]:
    """Return the profile as an OCI runtime's ``linux.seccomp``."""
    calls: list[dict[str, Any]] = [{"names": list(ALLOWED), "action": _ALLOW}]
    for name, condition in CONDITIONS.items():
        calls += [
            {"names": [name], "action": _ALLOW, "args": [argument]}
            for argument in _oci_arguments(condition)
        ]
    calls.append({"names": list(UNKNOWN), "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS})
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "architectures": [_ARCHITECTURES[machine]] if machine in _ARCHITECTURES else [],
        "syscalls": calls,
    }


def _oci_arguments(condition: Condition) -> list[dict[str, Any]]:
    """Return comparisons of which one must hold; a runtime allows only one an argument a rule."""
    index, values = condition.argument, condition.values
    if condition.rule == "none of":
        return [{"index": index, "value": values[0], "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    if condition.rule == "one of":
        return [{"index": index, "value": value, "op": "SCMP_CMP_EQ"} for value in values]
    found: list[dict[str, Any]] = [{"index": index, "value": values[0], "op": "SCMP_CMP_LT"}]
    for below, above in itertools.pairwise(values):
        found += [
            {"index": index, "value": value, "op": "SCMP_CMP_EQ"}
            for value in range(below + 1, above)
        ]
    return [*found, {"index": index, "value": values[-1], "op": "SCMP_CMP_GT"}]
