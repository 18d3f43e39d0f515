"""What ``make`` says on a machine that lacks something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _made(tmp_path: Path, python: str = "python3", *words: str) -> subprocess.CompletedProcess[str]:
    # These tests may themselves be run by make, of which the one they run must know nothing.
    outside = {k: v for k, v in os.environ.items() if k not in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS")}
    return subprocess.run(
        ["make", *(words or ["demo"]), f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT, env=outside, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def _error_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one sentence; make itself adds a line about the failure."""
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_missing_python_is_reported_in_one_sentence(tmp_path: Path) -> None:
    printed = _error_line(_made(tmp_path, "/nonexistent/python3"))
    assert printed.startswith("skerry needs Python 3.11 or newer, and /nonexistent/python3 was not")
    assert "make demo PYTHON=" in printed


def test_a_python_that_is_too_old_is_reported_in_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    forged = "import sys; sys.version_info = (3, 9); sys.version = '3.9.1 (x)'; exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{forged}" "$2"\n')
    old.chmod(0o755)
    assert (
        _error_line(_made(tmp_path, str(old))) == "skerry needs Python 3.11 or newer; this is 3.9.1"
    )


def test_a_python_without_venv_is_reported_in_one_sentence(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    forged = "import sys; sys.modules['ensurepip'] = None; exec(sys.argv[1])"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{forged}" "$2"\n')
    bare.chmod(0o755)
    assert "install its venv module" in _error_line(_made(tmp_path, str(bare)))


def test_the_demo_installs_what_it_runs_with_and_the_tests_add_to_it(tmp_path: Path) -> None:
    printed = _made(tmp_path, "python3", "--dry-run", "demo").stdout
    assert "requirements/run.txt" in printed
    assert "requirements/dev.txt" not in printed
    both = _made(tmp_path, "python3", "--dry-run", "demo", "test").stdout
    assert both.count("requirements/run.txt") == both.count("requirements/dev.txt") == 1
    assert both.index("requirements/run.txt") < both.index("requirements/dev.txt")
