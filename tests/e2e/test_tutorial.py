"""The tutorial's own commands, run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.kit.ports import free_ports

_PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "two-edges.md"
# A page that fails half-way leaves no syncer behind.
_ENDING = "trap 'jobs -p | xargs -r kill 2>/dev/null || true' EXIT"
_BLOCK = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_tutorial_works_as_printed(tmp_path: Path) -> None:
    script = "\n".join(_BLOCK.findall(_PAGE.read_text()))
    for printed, free in zip(("18091", "18092"), map(str, free_ports(2)), strict=True):
        script = script.replace(printed, free)
    # Jobs are named by number in the last block, which an interactive shell allows.
    ended = subprocess.run(
        ["bash", "-eumo", "pipefail", "-c", f"{_ENDING}\n{script}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "KUBECONFIG": str(tmp_path / "edges.kubeconfig"),
        },
    )
    try:
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        assert "Hello from the north!" in ended.stdout
        assert "Hello from the south!" in ended.stdout
    finally:
        _clean_up(tmp_path)


def _clean_up(directory: Path) -> None:
    """Stop what a tutorial that failed half-way left running."""
    skerry = [sys.executable, "-m", "skerry.cli"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "KUBECONFIG": str(directory / "edges.kubeconfig"),
    }
    for command in (
        ["down", "--data-dir", "hub"],
        ["edge", "delete", "north"],
        ["edge", "delete", "south"],
    ):
        subprocess.run(
            [*skerry, *command], cwd=directory, env=environment, check=False, capture_output=True
        )
