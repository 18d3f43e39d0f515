"""Programs below bubblewrap, for machines where a user may not make namespaces but it may.

Containers see what ``root_plan`` says, have processes of their own and the machine's network, and
begin without any capability. The plan becomes arguments in the process that then becomes
bubblewrap: volumes are opened there and passed as descriptors, which nobody can exchange.

Runs below the agent, so nothing but the standard library.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skerry.edge.agent.container_root import opened_volume
from skerry.edge.agent.root_plan import Content, Step, is_below, steps_from

_TRIAL_SECONDS = 5.0
_OWN = ("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL")
_DEVICES = "/dev"
_IDENTITY = ("--unshare-user", "--uid", "{}", "--gid", "{}")

Keep = Callable[[Content], int]
"""Opens a volume and returns a descriptor that bubblewrap inherits."""


def works(program: str, *, users: bool) -> bool:
    """Tell whether bubblewrap can do here what containers need; the only sure way is to try.

    It must take volumes as descriptors, which older ones cannot; with *users*, be somebody else.
    """
    identity = [word.format(1000) for word in _IDENTITY] if users else []
    shown = os.open("/usr", os.O_PATH)
    words = [program, *_OWN, *identity, "--ro-bind-fd", str(shown), "/usr", "--proc", "/proc"]
    words += [word for name in ("bin", "lib", "lib64") for word in _as_on_machine(f"/{name}")]
    try:
        tried = subprocess.run(  # noqa: S603 - a program the administrator installed
            [*words, "--", "/usr/bin/env", "true"],
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
            pass_fds=(shown,),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        os.close(shown)
    return tried.returncode == 0


def _as_on_machine(path: str) -> Sequence[str]:
    if os.path.islink(path):
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind-try", path, path)


def arguments(wrapped: Mapping[str, Any], seccomp: int, keep: Keep) -> list[str]:
    """Return the options of bubblewrap for a container; raises ``ValueError``."""
    words = ["--clearenv", *_OWN]
    if wrapped["identity"]:
        pair = iter(wrapped["identity"])
        words += [word if word != "{}" else str(next(pair)) for word in _IDENTITY]
    steps = steps_from(wrapped["steps"])
    _refuse_nested(steps)
    for step in steps:
        if step.path == _DEVICES:
            words += ["--dev", _DEVICES]
        # Everything that belongs there comes with it, but for what the container mounts.
        elif step.content is not None or not is_below(step.path, _DEVICES):
            words += _WORDS[step.action](step, keep)
    if seccomp >= 0:
        words += ["--seccomp", str(seccomp)]
    return words


def _refuse_nested(steps: Sequence[Step]) -> None:
    """Refuse a volume inside one that pods write to: bubblewrap finds the place by its name."""
    volumes = [step for step in steps if step.content is not None]
    for step in volumes:
        for other in volumes:
            outer = other.content
            if other is step or outer is None or outer.links:
                continue
            if is_below(step.path, other.path):
                raise ValueError(f"{step.path} lies in the volume at {other.path}")


def _volume(step: Step, keep: Keep) -> list[str]:
    if step.content is None:
        raise ValueError(f"a volume without content at {step.path}")
    option = "--ro-bind-fd" if step.content.read_only else "--bind-fd"
    return [option, str(keep(step.content)), step.path]


def _mount(step: Step, keep: Keep) -> list[str]:
    if step.source == "tmpfs":
        mode = next((o[5:] for o in step.text.split(",") if o.startswith("mode=")), "755")
        return ["--perms", mode.zfill(4), "--tmpfs", step.path]
    return ["--proc", step.path] if step.source == "proc" else []


def _mask(step: Step, keep: Keep) -> list[str]:
    if os.path.isdir(step.path):
        return ["--tmpfs", step.path, "--remount-ro", step.path]
    return ["--ro-bind-try", os.devnull, step.path]


def _freeze(step: Step, keep: Keep) -> list[str]:
    if step.path == "/sys":
        return ["--remount-ro", step.path]
    # In /proc: the machine's own is the same, but for processes.
    return ["--ro-bind-try", step.path, step.path]


_WORDS: Mapping[str, Callable[[Step, Keep], list[str]]] = {
    "root": lambda step, keep: [],
    "folder": lambda step, keep: ["--perms", f"{step.mode:04o}", "--dir", step.path],
    "link": lambda step, keep: ["--symlink", step.text, step.path],
    "file": lambda step, keep: ["--ro-bind-data", str(_text(step.text)), step.path],
    "show": lambda step, keep: ["--ro-bind-try", step.source, step.path],
    "mount": _mount,
    "mask": _mask,
    "freeze": _freeze,
    "volume": _volume,
    "seal": lambda step, keep: ["--remount-ro", "/"],
}


def _text(text: str) -> int:
    """Return a descriptor that reads as *text*."""
    return _in_memory("text", text.encode())


def _in_memory(name: str, content: bytes) -> int:
    found = os.memfd_create(name, 0)
    os.write(found, content)
    os.lseek(found, 0, os.SEEK_SET)
    return found


def become(wrapped: Mapping[str, Any], task: Mapping[str, Any]) -> None:
    """Become bubblewrap with a program below it; returns only by raising ``OSError``."""
    filter_ = task["rights"]["seccomp"]
    seccomp = _in_memory("filter", bytes.fromhex(filter_)) if filter_ else -1
    try:
        words = arguments(wrapped, seccomp, _kept)
    except ValueError as error:
        raise OSError(22, f"bubblewrap cannot mount this: {error}") from error
    for name, value in task["environment"].items():
        words += ["--setenv", name, value]
    words += ["--chdir", task["directory"]]
    # By a descriptor: everybody on the machine can see arguments, and variables may be secret. And
    # no variable of the container's for bubblewrap itself, whose loader would obey it.
    options = _in_memory("arguments", b"".join(os.fsencode(word) + b"\0" for word in words))
    argv = [wrapped["program"], "--args", str(options), "--", *task["argv"]]
    os.execve(argv[0], argv, {})  # noqa: S606 - our purpose


def _kept(content: Content) -> int:
    with opened_volume(content) as found:
        # Bound by what is open, not by a name; duplicated without closing at exec.
        kept = os.dup(found)
        os.set_inheritable(kept, True)
        return kept
