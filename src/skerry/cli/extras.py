"""What a command needs beyond the base installation, and the sentence for where it lacks.

A syncer's installation has no server in it. The extras are declared once, in ``pyproject.toml``,
and read here from the metadata of the installation; only the commands that need one ask.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

EXIT_CODE = 3
"""Of a command that lacks its packages: what it was asked is right, the installation is not."""

# Any of these extras is enough for the command. What is not named needs none.
EXTRAS_OF_COMMANDS: dict[str, tuple[str, ...]] = {
    "backup": ("hub", "edge"),
    "certificates": ("hub", "edge"),
    "console": ("hub",),
    "controllers": ("hub",),
    "demo": ("all",),
    "diff": ("hub",),
    "docs": ("all",),
    "explain": ("hub",),
    "fleet": ("hub",),
    "grants": ("hub",),
    "history": ("hub",),
    "hub": ("hub",),
    "manifests": ("hub",),
    "query": ("hub",),
    "restore": ("hub", "edge"),
    "rollout": ("hub",),
    "scheduler": ("scheduler",),
    "secrets": ("hub", "edge"),
    "serve": ("hub", "edge"),
    "up": ("hub",),
    "whatif": ("hub",),
}

_PROJECT = "skerry"
# "numpy>=2.0; extra == 'hub'" and "skerry[hub,edge]; extra == 'all'", as installations record them.
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w, -]+)\])?[^;]*;\s*extra == ['\"](?P<extra>[\w-]+)['\"]"
)


def packages_of(extra: str, requirements: Sequence[str]) -> Iterator[str]:
    """Yield the distributions that *requirements* name for *extra*, those of its extras too."""
    for text in requirements:
        found = _REQUIREMENT.fullmatch(text)
        if found is None or found["extra"] != extra:
            continue
        if found["name"] == _PROJECT:
            for inner in (found["extras"] or "").split(","):
                yield from packages_of(inner.strip(), requirements)
        else:
            yield found["name"]


def missing_extra(extras: Sequence[str]) -> str:
    """Return the extra to install, where none of *extras* is complete; empty where one is."""
    if not extras:
        return ""
    requirements = _requirements()
    complete = any(
        all(_is_installed(name) for name in packages_of(extra, requirements)) for extra in extras
    )
    return "" if complete else extras[0]


def require_extra(command: str, *extras: str) -> None:
    """End the process with a sentence unless one of *extras* is installed."""
    if extra := missing_extra(extras):
        refuse(command, extra)


def refuse(command: str, extra: str) -> NoReturn:
    """End the process with the sentence that says what to install."""
    print(f"{command} needs pip install '{_PROJECT}[{extra}]'", file=sys.stderr)
    sys.exit(EXIT_CODE)


def _requirements() -> Sequence[str]:
    """Return what the installation declares; a source tree on a path declares nothing."""
    # Only here, as below: loading it takes longer than a plugin of kubectl has.
    from importlib import metadata

    try:
        return metadata.requires(_PROJECT) or []
    except metadata.PackageNotFoundError:
        return []


def _is_installed(distribution: str) -> bool:
    from importlib import metadata

    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
