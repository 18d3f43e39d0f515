"""What a hostile program tries from inside a pod; prints what succeeded, as JSON.

Run by the interpreter of a pod, so nothing but the standard library. Each attempt is harmless where
it succeeds, too: files are opened, not written; calls are made with arguments that do nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import socket
import stat
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)
_X86 = os.uname().machine == "x86_64"
found: dict[str, Any] = {}
Targets = dict[str, Any]


def attempt(name: str, action: Callable[[], object]) -> None:
    """Note what an action that must fail did instead."""
    try:
        result = action()
    except OSError as error:
        found[name] = f"refused: {errno.errorcode.get(error.errno or 0, error.errno)}"
    else:
        found[name] = f"SUCCEEDED: {result!r:.200}"


def call(x86: int, other: int, *arguments: object) -> int:
    """Make a system call; raises OSError when it fails."""
    number = x86 if _X86 else other
    result = _LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")
    return int(result)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        content = file.read(64)
    if not content:
        raise OSError(errno.ENODATA, "empty")
    return content


def listed(path: str) -> list[str]:
    names = os.listdir(path)
    if not names:
        raise OSError(errno.ENODATA, "empty")
    return names


def opened_for_writing(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY))
    return "opened"


def files(targets: Targets) -> None:
    for path in targets["files"]:
        attempt(f"read {path}", partial(read, path))
    for path in targets["folders"]:
        attempt(f"list {path}", partial(listed, path))
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_rsa_key"):
        attempt(f"read {path}", partial(read, path))
    for path in ("/boot", "/var/log", "/var/lib/dpkg", "/usr/local/etc", "/home", "/root/.ssh"):
        attempt(f"list {path}", partial(listed, path))
    for path in ("/usr/bin/env", "/etc/ld.so.cache", sys.executable, *targets["read_only"]):
        attempt(f"write {path}", partial(opened_for_writing, path))
    attempt("create in /usr", lambda: os.mkdir("/usr/made"))
    attempt("link a program", lambda: os.link("/usr/bin/env", "/data/env"))
    attempt("remount", lambda: mount(b"none", b"/usr", None, 0x20))
    for path in targets["read_only"]:
        attempt(f"remove {path}", partial(os.unlink, path))
        attempt(f"chmod {path}", partial(os.chmod, path, 0o777))
        attempt(f"rename {path}", partial(os.rename, path, f"{path}.old"))
        attempt(f"link {path}", partial(os.link, path, "/data/linked"))


def kernel() -> None:
    for name in ("sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/drop_caches"):
        attempt(f"write /proc/{name}", partial(opened_for_writing, f"/proc/{name}"))
    attempt("write sysrq", lambda: opened_for_writing("/proc/sysrq-trigger"))
    for name in ("kcore", "kallsyms", "keys", "cmdline", "config.gz", "timer_list", "iomem"):
        attempt(f"read /proc/{name}", partial(read, f"/proc/{name}"))
    attempt("chmod in /proc", lambda: os.chmod("/proc/cpuinfo", 0o666))
    attempt("write in /sys", lambda: os.mkdir("/sys/made"))
    for path in ("/sys/firmware", "/sys/fs", "/sys/class", "/sys/kernel/debug", "/dev/mem"):
        attempt(f"list {path}", partial(listed, path))
    attempt("device node", lambda: os.mknod("/data/sda", stat.S_IFBLK | 0o666, os.makedev(8, 0)))
    attempt("memory device", lambda: os.mknod("/data/mem", stat.S_IFCHR | 0o666, os.makedev(1, 1)))


def mount(source: bytes, target: bytes, kind: bytes | None, flags: int) -> str:
    result = _LIBC.mount(source, target, kind, ctypes.c_ulong(flags), None)
    if result < 0:
        raise OSError(ctypes.get_errno(), "mount")
    return "mounted"


def calls() -> None:
    attempt("mount tmpfs", lambda: mount(b"tmpfs", b"/data/place", b"tmpfs", 0))
    attempt("mount proc", lambda: mount(b"proc", b"/data/place", b"proc", 0))
    attempt("bind mount", lambda: mount(b"/usr", b"/data/place", None, 0x1000))
    attempt("unmount a mask", lambda: unmounted(b"/proc/sys"))
    attempt("pivot_root", lambda: call(155, 41, b"/data", b"/data/place"))
    attempt("open_tree", lambda: call(428, 428, -100, b"/", 1))
    attempt("fsopen", lambda: call(430, 430, b"tmpfs", 0))
    for name, flag in (("user", 0x10000000), ("mount", 0x00020000), ("time", 0x80)):
        attempt(f"unshare {name}", partial(call, 272, 97, flag))
    attempt("clone into a namespace", lambda: cloned(0x10000000))
    attempt("clone3", lambda: call(435, 435, None, 0))
    attempt("setns", lambda: call(308, 268, os.open("/proc/self/ns/net", os.O_RDONLY), 0))
    attempt("open by handle", lambda: call(304, 265, -100, None, 0))
    attempt("add a key", lambda: call(248, 217, b"user", b"x", b"y", 1, -3))
    attempt("bpf", lambda: call(321, 280, 0, None, 0))
    attempt("perf", lambda: call(298, 241, None, 0, -1, -1, 0))
    attempt("io_uring", lambda: call(425, 425, 1, None))
    attempt("userfaultfd", lambda: call(323, 282, 0))
    attempt("load a module", lambda: call(313, 273, -1, b"", 0))
    attempt("reboot", lambda: call(169, 142, 0, 0, 0, None))
    attempt("set the time", lambda: call(227, 112, 0, None))
    attempt("set the host name", lambda: call(170, 161, b"x", 1))
    attempt("raw sockets of the hypervisor", lambda: socket.socket(40, socket.SOCK_STREAM).close())
    attempt("ciphers of the kernel", lambda: socket.socket(38, socket.SOCK_SEQPACKET).close())
    attempt("type into a terminal", lambda: call(16, 29, 0, 0x5412, b"x"))
    attempt("another personality", lambda: call(135, 92, 0x0400000))


def escalated() -> None:
    """Try again as root of a user namespace, where that can be had."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        found.clear()
        users, groups = f"0 {os.geteuid()} 1", f"0 {os.getegid()} 1"
        try:
            call(272, 97, 0x10000000 | 0x00020000)
            for name, text in (("setgroups", "deny"), ("uid_map", users), ("gid_map", groups)):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        except OSError:
            os._exit(0)
        attempt("mount proc", lambda: mount(b"proc", b"/data/place", b"proc", 0))
        attempt("mount sysfs", lambda: mount(b"sysfs", b"/data/place", b"sysfs", 0))
        for path in (b"/proc/sys", b"/proc/kallsyms", b"/usr", b"/usr/local/etc"):
            attempt(f"unmount {path.decode()}", partial(unmounted, path))
        attempt("remount /usr", lambda: mount(b"none", b"/usr", None, 0x1020))
        attempt("remount /proc/sys", lambda: mount(b"none", b"/proc/sys", None, 0x1020))
        with contextlib.suppress(OSError):
            mount(b"/proc", b"/data/place", None, 0x5000)
        attempt("core pattern", lambda: opened_for_writing("/proc/sys/kernel/core_pattern"))
        again = "/data/place/sys/kernel/core_pattern"
        attempt("core pattern elsewhere", lambda: opened_for_writing(again))
        attempt("set the host name", lambda: call(170, 161, b"x", 1))
        attempt("memory of the first", lambda: read("/proc/1/mem"))
        attempt("root of the first", lambda: listed("/proc/1/root"))
        os.write(write_end, json.dumps(found).encode())
        os._exit(0)
    os.close(write_end)
    with open(read_end) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    for name, result in (json.loads(text) if text else {}).items():
        found[f"as root of a namespace: {name}"] = result


def unmounted(path: bytes) -> str:
    if _LIBC.umount2(path, 2) < 0:
        raise OSError(ctypes.get_errno(), "umount2")
    return "unmounted"


def cloned(flags: int) -> int:
    # As fork, in namespaces of its own.
    result = call(56, 220, flags | 17, None, None, None, None)
    if result == 0:
        os._exit(0)
    os.waitpid(result, 0)
    return int(result)


def processes(targets: Targets) -> None:
    pid = targets["agent"]
    own = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    found["processes"] = f"{len(own)}"
    if pid not in own:
        attempt("signal the agent", lambda: os.kill(pid, 0))
        attempt("environment of the agent", lambda: read(f"/proc/{pid}/environ"))
    first = 1
    attempt("environment of the first", lambda: read(f"/proc/{first}/environ"))
    attempt("memory of the first", lambda: read(f"/proc/{first}/mem"))
    attempt("files of the first", lambda: os.readlink(f"/proc/{first}/fd/0"))
    attempt("root of the first", lambda: listed(f"/proc/{first}/root"))
    attempt("program of the first", lambda: opened_for_writing(f"/proc/{first}/exe"))
    attempt("read the program of the first", lambda: read(f"/proc/{first}/exe"))
    attempt("trace the first", lambda: call(101, 117, 16, first, None, None))
    attempt("namespaces of the first", lambda: os.readlink(f"/proc/{first}/ns/mnt"))
    with open(f"/proc/{first}/cmdline", "rb") as file:
        found["command of the first"] = file.read().strip(b"\0").decode()
    found["variables"] = " ".join(sorted(os.environ))


def connections(targets: Targets) -> None:
    def connect(address: str) -> str:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as peer:
            peer.connect(address)
        return "connected"

    attempt("an abstract socket", lambda: connect(f"\0{targets['abstract']}"))
    attempt("a socket of the machine", lambda: connect(targets["socket"]))
    attempt("the loopback of the machine", lambda: dialled("127.0.0.1", targets["port"]))
    for host in ("127.0.0.1", "localhost", "127.9.9.9", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"):
        attempt(f"{host} by the proxy", partial(tunnelled, host, targets["port"]))


def tunnelled(host: str, port: int) -> str:
    """Ask the way out to lead back into the machine."""
    proxy = os.environ["http_proxy"].rpartition("@")[2]
    with contextlib.closing(socket.create_connection((proxy.split(":")[0], 3128), 5)) as way:
        way.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        answer = way.recv(100)
    if b" 200 " not in answer:
        raise OSError(errno.EACCES, answer.decode())
    return answer.decode()


def dialled(host: str, port: int) -> str:
    with contextlib.closing(socket.create_connection((host, port), 2)):
        return "connected"


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def main() -> None:
    targets = json.loads(sys.argv[1])
    inherited = {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2}
    # The one that lists them is gone already.
    found["descriptors"] = f"{sum(map(is_open, inherited))}"
    os.makedirs("/data/place", exist_ok=True)
    files(targets)
    kernel()
    escalated()
    calls()
    processes(targets)
    connections(targets)
    with open("/proc/self/status") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    found["status"] = {
        name: lines[name]
        for name in ("Uid", "Gid", "Groups", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
