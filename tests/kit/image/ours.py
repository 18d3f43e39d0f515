"""The image of ``deploy/Containerfile``, built as its instructions say and with no network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.kit.image.building import Build, Image
from tests.kit.image.containerfile import Stage, parse
from tests.kit.image.debian import debian_base

ROOT = Path(__file__).resolve().parents[3]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"


def stages(**given: str) -> list[Stage]:
    """Return what the Containerfile says with these build arguments."""
    return parse(CONTAINERFILE.read_text(), given)


def built(folder: Path) -> Image:
    """Build the image for edges in *folder*, on a base of Debian packages."""
    base = debian_base(folder / "base")
    build = Build(
        ROOT,
        folder,
        bases={"debian-python": base},
        shown={"/wheels": _wheels()},
        environment={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"},
    )
    return build.image(stages(PYTHON="debian-python"))


def _wheels() -> Path:
    """Return the folder of what is to be installed, which ``make test`` has fetched."""
    environment = Path(sys.prefix)
    done = subprocess.run(
        ["make", "--silent", f"VENV={environment}", f"{environment}/wheels/.complete"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return environment / "wheels"
