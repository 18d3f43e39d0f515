"""Makes what a container sees, by a plan; see ``root_plan``.

In a mount namespace of its own, by the first process of a process namespace. Every step is done
inside the root: places are opened as a process whose root it is would open them, so that a link in
a volume cannot have anything mounted or made elsewhere; and what is mounted is what was opened.
Nothing here needs rights on the machine.

Runs below the agent, so nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence

from skerry.edge.agent import namespaces
from skerry.edge.agent.beneath import resolver
from skerry.edge.agent.root_plan import Content, Step

_HARMLESS = namespaces.MS_NOSUID | namespaces.MS_NODEV
_QUIET = _HARMLESS | namespaces.MS_NOEXEC
_SHOWN = namespaces.ATTR_RDONLY | namespaces.ATTR_NOSUID | namespaces.ATTR_NODEV
_FLAGS = {
    "tmpfs": _HARMLESS,
    "proc": _QUIET,
    "mqueue": _QUIET,
    # Terminals are devices.
    "devpts": namespaces.MS_NOSUID | namespaces.MS_NOEXEC,
}
# A kernel without them has no use for their places.
_OPTIONAL = ("devpts", "mqueue")


def build(root: str, steps: Sequence[Step]) -> None:
    """Make *root*, a directory, a mount with everything the plan says; raises ``OSError``."""
    namespaces.mount("none", "/", flags=namespaces.MS_REC | namespaces.MS_SLAVE)
    first, *others = steps
    options = ",".join(filter(None, ("mode=755", first.text)))
    namespaces.mount("tmpfs", root, "tmpfs", _HARMLESS, options)
    with _opened(root, os.O_DIRECTORY) as top:
        for step in others:
            try:
                _ACTIONS[step.action](top, step)
            except OSError as error:
                # Whoever reads it knows the container's paths, not this process's descriptors.
                raise OSError(error.errno, error.strerror, step.path) from error


@contextlib.contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[int]:
    found = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    try:
        yield found
    finally:
        os.close(found)


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _place(top: int, path: str, *, directory: bool) -> contextlib.AbstractContextManager[int]:
    return _closing(resolver().place(top, path, directory=directory))


def _is_directory(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def _folder(top: int, step: Step) -> None:
    with _place(top, step.path, directory=True) as place:
        # By its path: a descriptor that only names something cannot be changed through.
        os.chmod(f"/proc/self/fd/{place}", step.mode)


def _link(top: int, step: Step) -> None:
    above, name = os.path.split(step.path)
    with _place(top, above, directory=True) as place:
        os.symlink(step.text, name, dir_fd=place)


def _file(top: int, step: Step) -> None:
    above, name = os.path.split(step.path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with _place(top, above, directory=True) as place:
        opened = os.open(name, flags, 0o644, dir_fd=place)
    with open(opened, "w") as output:
        output.write(step.text)


def _show(top: int, step: Step) -> None:
    try:
        found = os.open(step.source, os.O_PATH | os.O_CLOEXEC)
    except (PermissionError, FileNotFoundError):
        return  # what may not be looked at is not shown
    with _closing(found):
        _attach(top, step.path, found, _SHOWN)


def _device(top: int, step: Step) -> None:
    with _opened(step.source) as found:
        _attach(top, step.path, found, namespaces.ATTR_NOSUID)


def _attach(top: int, path: str, source: int, attributes: int) -> None:
    with _place(top, path, directory=_is_directory(source)) as place:
        namespaces.attach(source, place, attributes)


def _mount(top: int, step: Step) -> None:
    with _place(top, step.path, directory=True) as place:
        os.fchdir(place)
        try:
            namespaces.mount(step.source, ".", step.source, _FLAGS[step.source], step.text)
        except OSError:
            if step.source not in _OPTIONAL:
                raise


def _existing(top: int, path: str) -> int | None:
    """Open what is there; None when nothing is, and so nothing is left to hide."""
    with contextlib.suppress(FileNotFoundError):
        return resolver().open_in_root(top, path)
    return None


def _mask(top: int, step: Step) -> None:
    found = _existing(top, step.path)
    if found is None:
        return
    with _closing(found) as place:
        if _is_directory(place):
            os.fchdir(place)
            flags = _QUIET | namespaces.MS_RDONLY
            namespaces.mount("tmpfs", ".", "tmpfs", flags, "size=4k,mode=555")
            return
        with _opened(os.devnull) as nothing:
            namespaces.attach(nothing, place, namespaces.ATTR_RDONLY)


def _freeze(top: int, step: Step) -> None:
    found = _existing(top, step.path)
    if found is None:
        return
    with _closing(found) as place:
        namespaces.attach(place, place, _SHOWN)


def _volume(top: int, step: Step) -> None:
    content = step.content
    if content is None:
        raise ValueError(f"a volume without content at {step.path}")
    attributes = namespaces.ATTR_NOSUID
    attributes |= 0 if content.devices else namespaces.ATTR_NODEV
    attributes |= namespaces.ATTR_RDONLY if content.read_only else 0
    with opened_volume(content) as found:
        _attach(top, step.path, found, attributes)


@contextlib.contextmanager
def opened_volume(content: Content) -> Iterator[int]:
    """Open a volume, or a part of it, and nothing else whatever its names lead to by now."""
    with _opened(content.root) as root:
        if not content.inside:
            yield root
            return
        with _closing(resolver().open(root, content.inside, links=content.links)) as found:
            yield found


def _seal(top: int, step: Step) -> None:
    namespaces.seal(top)


_ACTIONS: Mapping[str, Callable[[int, Step], None]] = {
    "folder": _folder,
    "link": _link,
    "file": _file,
    "show": _show,
    "device": _device,
    "mount": _mount,
    "mask": _mask,
    "freeze": _freeze,
    "volume": _volume,
    "seal": _seal,
}
