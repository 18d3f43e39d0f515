"""What a command needs beyond the base installation, and the sentence for where it lacks.

A syncer's installation has no server in it. The extras are declared once, in ``pyproject.toml``,
and read here from the metadata of the installation; only the commands that need one ask.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from skerry.cli.printing import show

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
    "envtest": ("hub", "edge"),
    "exec": ("hub",),
    "explain": ("hub",),
    "fleet": ("hub",),
    "grants": ("hub",),
    "history": ("hub",),
    "hub": ("hub",),
    "logs": ("hub",),
    "manifests": ("hub",),
    "port-forward": ("hub",),
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
    described = described_distributions(sys.path)
    if _PROJECT in described:
        text = (described[_PROJECT] / "METADATA").read_text()
        requirements: Sequence[str] = re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)
    else:
        requirements = _requirements()
    complete = any(
        all(
            normalized(name) in described or _is_installed(name)
            for name in packages_of(extra, requirements)
        )
        for extra in extras
    )
    return "" if complete else extras[0]


def described_distributions(places: Sequence[str]) -> dict[str, Path]:
    """Return the folders that describe what is installed below *places*, by normalized name.

    Found by their names: ``importlib.metadata``, which knows of other ways to be installed, takes
    longer to load than a small command to run.
    """
    found: dict[str, Path] = {}
    for place in places:
        if place.endswith("site-packages") and Path(place).is_dir():
            for name in os.listdir(place):
                if name.endswith(".dist-info"):
                    found.setdefault(normalized(name.partition("-")[0]), Path(place, name))
    return found


def normalized(distribution: str) -> str:
    """Return the name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def require_extra(command: str, *extras: str) -> None:
    """End the process with a sentence unless one of *extras* is installed."""
    if extra := missing_extra(extras):
        refuse(command, extra)


def refuse(command: str, extra: str) -> NoReturn:
    """End the process with the sentence that says what to install."""
    show(f"{command} needs pip install '{_PROJECT}[{extra}]'", error=True)
    sys.exit(EXIT_CODE)


def _requirements() -> Sequence[str]:
    """Return what the installation declares; a source tree on a path declares nothing."""
    # Only here, as below: for what cannot be seen by looking.
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
