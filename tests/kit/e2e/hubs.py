"""Hubs of the tests, and a shell in which people's command blocks run as they are written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.kit.ports import free_ports

_READY = re.compile(r"skerry hub ready at (https://\S+)")
_BIN = Path(sys.executable).parent
_SKERRY = str(_BIN / "skerry")


class Hub:
    """One ``skerry hub`` process; *program* is what is run instead of ``skerry``."""

    def __init__(self, directory: Path, *flags: str, program: Sequence[str] = (_SKERRY,)) -> None:
        self._program = program
        self.directory = directory
        self.data_dir = directory / "data"
        self.flags = flags
        self.url = ""
        self._port = str(free_ports(1)[0])
        self._process: subprocess.Popen[str] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def log(self) -> str:
        return (self.directory / "hub.log").read_text()

    def start(self) -> Hub:
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "hub.log").open("a") as log:
            self._process = subprocess.Popen(
                [*self._program, "hub", "--data-dir", str(self.data_dir),
                 "--port", self._port, *self.flags],
                stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        ready = _READY.search(self._process.stdout.readline())
        assert ready is not None, f"the hub did not start: {self.log}"
        self.url = ready[1]
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        code = self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code


class Shell:
    """A shell with kubectl, its plugins, and a kubeconfig of its own."""

    def __init__(self, kubeconfig: Path, home: Path, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = home / "kubeconfig"
        self.kubeconfig.write_bytes(kubeconfig.read_bytes())
        self.environment = {
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "HOME": str(home),
            "KUBECONFIG": str(self.kubeconfig),
        }

    def __call__(self, script: str, *, code: int = 0) -> str:
        """Run *script*; return what it printed, errors included."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, f"{script}\nexit code {done.returncode}\n{done.stdout}"
        return done.stdout
