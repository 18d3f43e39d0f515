"""Opening paths that somebody else may change meanwhile, without leaving where they belong.

A volume is written to by pods: any name in it may become a link that leads elsewhere between a
check and the use. So a path is never checked as text and used later. It is opened, once, by the
kernel's own rule (``openat2``), and whatever follows works on the descriptor. Where the kernel or a
sandbox around us does not know that call, the path is walked name by name, and every link is
refused.

For processes that run below the agent too, so nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import stat

# linux/openat2.h
_NO_MAGIC_LINKS = 0x02
_NO_LINKS = 0x04
_BENEATH = 0x08
_IN_ROOT = 0x10
# The same number on every architecture: it is younger than the common table.
_SYS_OPENAT2 = 437
# The kernel asks for this when a rename elsewhere made it lose its place.
_TRIES = 16

_library = ctypes.CDLL(None, use_errno=True)


class LeadsOut(OSError):
    """A path that is not inside the directory it belongs to; the text says which and why."""


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def parts_of(path: str) -> list[str]:
    """Return the names a relative path consists of; raises ``LeadsOut`` for any other path."""
    if path.startswith("/"):
        raise LeadsOut(errno.EXDEV, "the path is absolute", path)
    if "\0" in path:
        raise LeadsOut(errno.EINVAL, "the path holds a zero byte", path.replace("\0", "\\0"))
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise LeadsOut(errno.EXDEV, "the path contains '..'", path)
    return parts


class Resolver:
    """Opens paths below a directory: by ``openat2`` if the *kernel* knows it, else name by name."""

    def __init__(self, *, kernel: bool) -> None:
        self._kernel = kernel

    def open(self, root: int, path: str, flags: int = os.O_PATH, *, links: bool = False) -> int:
        """Return a descriptor of *path* below the open directory *root*; raises ``LeadsOut``.

        With *links*, links that stay below are followed where the kernel can tell; else none is.
        """
        text = "/".join(parts_of(path)) or "."
        if not self._kernel:
            return _walked(root, text, flags)
        resolve = _BENEATH | _NO_MAGIC_LINKS | (0 if links else _NO_LINKS)
        return _opened(root, text, flags, resolve)

    def open_in_root(self, root: int, path: str, flags: int = os.O_PATH) -> int:
        """Return a descriptor of *path* as a process whose root directory is *root* would open it.

        Links are followed as that process would follow them, so none leads out.
        """
        if not self._kernel:
            return _walked(root, "/".join(parts_of(path.lstrip("/"))) or ".", flags)
        return _opened(root, path, flags, _IN_ROOT | _NO_MAGIC_LINKS)

    def directory(self, root: int, path: str, mode: int = 0o755, *, links: bool = False) -> int:
        """Return a descriptor of a directory below *root*, made where it is missing."""
        parts = parts_of(path)
        found = self.open(root, ".", os.O_PATH | os.O_DIRECTORY)
        for number, part in enumerate(parts):
            above = "/".join(parts[: number + 1])
            try:
                inner = self.open(root, above, os.O_PATH | os.O_DIRECTORY, links=links)
            except FileNotFoundError:
                # In the directory that is open, whatever its name leads to by now.
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, mode, dir_fd=found)
                inner = self.open(root, above, os.O_PATH | os.O_DIRECTORY, links=links)
            finally:
                os.close(found)
            found = inner
        return found

    def place(self, root: int, path: str, *, directory: bool) -> int:
        """Return a descriptor of a place to mount on, made where it is missing, below *root*.

        As ``open_in_root`` for what is there; what is missing is made in the directory above it
        that was opened.
        """
        parts = [part for part in path.split("/") if part not in ("", ".")]
        found = self.open_in_root(root, ".", os.O_PATH | os.O_DIRECTORY)
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            wanted = "/".join(parts[: number + 1])
            kind = os.O_PATH if is_last and not directory else os.O_PATH | os.O_DIRECTORY
            try:
                inner = self.open_in_root(root, wanted, kind)
            except FileNotFoundError:
                if is_last and not directory:
                    made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                    os.close(os.open(part, made, 0o644, dir_fd=found))
                else:
                    os.mkdir(part, 0o755, dir_fd=found)
                inner = self.open_in_root(root, wanted, kind)
            finally:
                os.close(found)
            found = inner
        return found


def kind_of(descriptor: int) -> str:
    """Return what a descriptor is of, in the words of ``hostPath.type``."""
    mode = os.fstat(descriptor).st_mode
    kinds = {
        stat.S_IFDIR: "Directory",
        stat.S_IFREG: "File",
        stat.S_IFSOCK: "Socket",
        stat.S_IFCHR: "CharDevice",
        stat.S_IFBLK: "BlockDevice",
    }
    return kinds.get(stat.S_IFMT(mode), "")


@functools.cache
def resolver() -> Resolver:
    """Return the resolver of this machine."""
    return Resolver(kernel=kernel_resolves())


def kernel_resolves() -> bool:
    """Tell whether ``openat2`` can be called here; old kernels and some sandboxes lack it."""
    try:
        root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.close(_called(root, ".", os.O_PATH, _BENEATH))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def _opened(root: int, path: str, flags: int, resolve: int) -> int:
    for _ in range(_TRIES):
        try:
            return _called(root, path, flags, resolve)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                continue
            if error.errno in (errno.EXDEV, errno.ELOOP):
                why = "it leads out of its directory" if error.errno == errno.EXDEV else "a link"
                raise LeadsOut(error.errno, f"the path is refused: {why}", path) from error
            raise
    raise LeadsOut(errno.EAGAIN, "the path changes while it is opened", path)


def _called(root: int, path: str, flags: int, resolve: int) -> int:
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    found = _library.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(root),
        os.fsencode(path),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return int(found)


def _walked(root: int, path: str, flags: int) -> int:
    """Open name by name; no link is followed, so nothing can be swapped under us."""
    parts = parts_of(path)
    found = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found)
            os.close(found)
            found = inner
            _refuse_link(found, path)
        last = parts[-1] if parts else "."
        opened = os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found)
    except OSError as error:
        if error.errno == errno.ELOOP and not isinstance(error, LeadsOut):
            raise LeadsOut(errno.ELOOP, "the path is refused: a link", path) from error
        raise
    finally:
        os.close(found)
    try:
        _refuse_link(opened, path)
    except OSError:
        os.close(opened)
        raise
    return opened


def _refuse_link(descriptor: int, path: str) -> None:
    if stat.S_ISLNK(os.fstat(descriptor).st_mode):
        raise LeadsOut(errno.ELOOP, "the path is refused: a link", path)
