"""An environment with what one extra installs and nothing else, made without a network.

The distributions are those of the running environment, which was installed by the same hashes;
copying their files is what an installer does. skerry itself is built as a wheel and installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOCKS = ROOT / "requirements"
_PINNED = re.compile(r"^(([A-Za-z0-9._-]+)==[^\\\n]+?) *\\?$", re.M)
MEGABYTE = 1 << 20


def locked(name: str) -> list[str]:
    """Return the distributions of ``requirements/<name>.txt``."""
    return [found[1] for found in _PINNED.findall((LOCKS / f"{name}.txt").read_text())]


def pins(name: str) -> set[str]:
    """Return the same with versions and markers."""
    return {found[0] for found in _PINNED.findall((LOCKS / f"{name}.txt").read_text())}


def built_wheel(folder: Path) -> Path:
    """Build the wheel of this source into *folder*, by the backend of the lock."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("skerry-*.whl")
    return wheel


def light_environment(folder: Path, lock: str = "base") -> Path:
    """Make a virtual environment of *lock* and skerry in *folder*; return its ``bin``."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    for name in locked(lock):
        _copy_distribution(name, site_packages(folder))
    wheel = built_wheel(folder / "dist")
    pip(folder, "install", "--no-deps", "--no-index", str(wheel))
    shutil.rmtree(folder / "dist")
    return folder / "bin"


def pip(environment: Path, *words: str) -> None:
    """Run pip of the tests on *environment*, which has none."""
    python = str(environment / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


def installed_megabytes(environment: Path) -> float:
    """Return what the installation takes, bytecode included."""
    files = site_packages(environment).rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file()) / MEGABYTE


def _copy_distribution(name: str, target: Path) -> None:
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return  # a marker of the lock leaves it out on this machine; pip check would miss it
    for file in distribution.files or []:
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or not source.is_file():
            continue
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / file)
