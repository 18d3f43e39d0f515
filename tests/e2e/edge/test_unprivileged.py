"""Ports and isolation hold for a user without rights: run as root, the tests are run again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOBODY = 65534
_AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def _interpreter() -> str:
    """Return an interpreter of our version that anybody may run; empty when there is none."""
    # It must be able to start itself again, as every container does.
    trial = "import subprocess, sys; subprocess.run([sys.executable, '-V'], check=True)"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for name in (sys.executable, shutil.which(f"python{version}", path="/usr/bin") or ""):
        done = subprocess.run(
            [*_AS_NOBODY, name, "-c", trial],
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            return name
    return ""


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: the other tests prove it already")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_pods_share_ports_without_any_rights() -> None:
    said = _tried("test_agent.py", "two_pods or two_nodes or config_map_and_follows")
    # Each of the three once as plain processes, once with namespaces where they can be had.
    assert "6 passed" in said or "3 passed, 3 skipped" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: the other tests prove it already")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_pods_are_isolated_without_any_rights() -> None:
    said = _tried(
        "test_isolation.py", "sees_its_image or every_capability or restricted or entered"
    )
    assert "passed" in said or "skipped" in said


def _tried(file: str, chosen: str) -> str:
    """Run tests of the agent as nobody and return what was said of them."""
    interpreter = _interpreter()
    if not interpreter:
        pytest.skip("no interpreter that anybody may run")
    # pytest's own directories are root's alone.
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        os.chown(home, NOBODY, NOBODY)
        done = _tests_as_nobody(interpreter, home, f"tests/unit/edge/agent/{file}", chosen)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout


def _tests_as_nobody(
    interpreter: str, home: Path, file: str, chosen: str
) -> subprocess.CompletedProcess[str]:
    packages = sysconfig.get_path("purelib")
    return subprocess.run(
        [
            *_AS_NOBODY,
            *(interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--basetemp", str(home / "tests"), file, "-k", chosen),
        ],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": f"{ROOT / 'src'}:{packages}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
