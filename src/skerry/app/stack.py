"""The hub and its controllers as supervised processes of one data directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from skerry.app.supervised import READY, NotStarted, Supervised


class StackError(Exception):
    """What did not start or stop, in a sentence."""


@dataclass(frozen=True, slots=True)
class Part:
    """How one process of the stack is."""

    name: str
    running: bool
    pid: int


@dataclass(frozen=True, slots=True)
class Stack:
    """A hub and its controllers."""

    data_dir: Path

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def url(self) -> str:
        """Where the hub answers; empty before its first start."""
        if not self.kubeconfig.exists():
            return ""
        config = yaml.safe_load(self.kubeconfig.read_text())
        clusters = {each["name"]: each["cluster"] for each in config["clusters"]}
        return str(clusters.get("base", {}).get("server", ""))

    def _process(self, name: str) -> Supervised:
        return Supervised(self.data_dir / f"{name}.json", self.data_dir / f"{name}.log")

    def up(self, hub_flags: Sequence[str], provider: str) -> None:
        """Start what does not run: the hub, and the controllers once it answers."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = ["--data-dir", str(self.data_dir), *hub_flags]
        try:
            self._process("hub").start(["skerry.cli", "hub", *flags, "--ready-fd", READY])
        except NotStarted as error:
            raise StackError(f"the hub did not start: {error}") from error
        if provider:
            flags = ["--kubeconfig", str(self.kubeconfig), "--espw-path", provider]
            self._process("controllers").start(["skerry.cli", "controllers", *flags])

    def down(self) -> None:
        """Stop everything; harmless when nothing runs."""
        for name in ("controllers", "hub"):
            self._process(name).stop()

    def parts(self) -> list[Part]:
        """Return how each process is."""
        found = []
        for name in ("hub", "controllers"):
            process = self._process(name)
            found.append(Part(name, process.running, process.pid))
        return found
