"""Somebody at a terminal, with kubectl and its plugins."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Printed:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class Person:
    """Somebody with kubectl, its plugins and a kubeconfig."""

    def __init__(self, folder: Path, kubeconfig: Path, programs: Path) -> None:
        self.folder = folder
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "kubeconfig"),
        }
        (folder / "kubeconfig").write_bytes(kubeconfig.read_bytes())

    def __call__(self, words: str, code: int = 0) -> Printed:
        done = subprocess.run(
            words.split(), cwd=self.folder, env=self._environment,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return Printed(done.returncode, done.stdout, done.stderr)

    def lines(self, words: str) -> list[str]:
        return self(words).out.splitlines()

    @property
    def workspace(self) -> str:
        return self("kubectl ws current --short").out.strip()
