"""A base image made of the Debian packages of this machine: their files, and those they depend on.

The same as a base from a registry for what matters here: an interpreter, a shell, a C library, and
nothing else of the machine. The plan, which file goes where, is made and checked before a file is
copied.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

PACKAGES = ("base-files", "coreutils", "dash", "libc-bin", "libstdc++6", "python3-venv")
# Nobody reads them in a container.
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info",
             "usr/share/lintian", "usr/share/bug", "var", "boot", "dev", "proc", "sys")  # fmt: skip
# Debian keeps these names as links into /usr.
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_FIELDS = "${Package}\\t${Provides}\\t${Pre-Depends}, ${Depends}\\n"


def debian_base(root: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Make a root file system of *packages* in *root*, which must not exist yet."""
    missing = [name for name in packages if name not in _dependencies()]
    assert not missing, f"not installed: {missing}; tests/install-packages installs them"
    listed = subprocess.run(
        ["dpkg-query", "-L", *closure(packages, _dependencies())],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    plan = planned(listed)
    root.mkdir(parents=True)
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for source, target in plan.items():
        _copy(Path(source), root / target)
    for name in ("dev", "proc", "sys", "tmp", "run", "etc", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    return root


def closure(packages: Iterable[str], depends: Mapping[str, Sequence[Sequence[str]]]) -> list[str]:
    """Return *packages* and all they need, of each alternative the first that is installed."""
    found: dict[str, None] = {}
    waiting = list(packages)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        for alternatives in depends.get(name, ()):
            waiting += [other for other in alternatives if other in depends][:1]
    return sorted(found)


def planned(listed: Iterable[str]) -> dict[str, str]:
    """Return where each listed path goes below the new root; folders come with their files."""
    plan: dict[str, str] = {}
    for text in listed:
        path = PurePosixPath(text)
        if not text.startswith("/") or ".." in path.parts:
            continue  # dpkg's own remarks, such as about diversions
        parts = path.parts[1:]
        if not parts or any("/".join(parts).startswith(f"{out}/") for out in _LEFT_OUT):
            continue
        if parts[0] in _MERGED:
            parts = ("usr", *parts)
        plan[text] = "/".join(parts)
    return plan


def _copy(source: Path, target: Path) -> None:
    if source.is_symlink():
        if not target.is_symlink() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source.readlink())
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _dependencies() -> dict[str, list[list[str]]]:
    """Return what each installed package needs, as alternatives; by names of packages alone."""
    printed = subprocess.run(
        ["dpkg-query", "-W", "-f", _FIELDS], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    providers = {other: name for name, provided, _ in rows for other in _names(provided, ",")}
    providers |= {name: name for name, _, _ in rows}
    return {
        name: [
            [providers[other] for other in _names(each, "|") if other in providers]
            for each in needed.split(",")
        ]
        for name, _, needed in rows
    }


def _names(text: str, separator: str) -> list[str]:
    return [re.split(r"[ :(]", part.strip())[0] for part in text.split(separator) if part.strip()]
