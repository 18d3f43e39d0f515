"""The syncer of an embedded edge: a supervised process in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from skerry.api.objects import Object
from skerry.app.kubeconfig_files import ADMIN_CONTEXT
from skerry.app.supervised import Supervised
from skerry.kit.secret_files import secret_directory, write_secret


@dataclass(frozen=True, slots=True)
class EdgeSyncer:
    """Keeps one edge in step with its mailbox for as long as it runs."""

    edge: str
    home: Path
    edge_kubeconfig: Path

    @property
    def process(self) -> Supervised:
        return Supervised(self.home / "process.json", self.home / "syncer.log")

    @property
    def _credential(self) -> Path:
        return self.home / "hub.kubeconfig"

    @property
    def mailbox(self) -> str:
        """The address of the mailbox the edge was given to dial; empty when it was given none."""
        if not self._credential.exists():
            return ""
        config = yaml.safe_load(self._credential.read_text())
        return str(config["clusters"][0]["cluster"]["server"])

    @property
    def _flags(self) -> Path:
        return self.home / "flags.json"

    def join(self, credential: Object, flags: Sequence[str] = ()) -> None:
        """Take the kubeconfig by which the edge begins at its hub, in place of any before it.

        *flags* are further ones for the syncer, at every start. It keeps its key: where that has a
        certificate already, nothing is asked for anew.
        """
        secret_directory(self.home)
        self._flags.write_text(json.dumps(list(flags)))
        write_secret(self._credential, yaml.safe_dump(credential, sort_keys=False).encode())

    def command(self) -> list[str]:
        """Return the words that run the syncer."""
        further = json.loads(self._flags.read_text()) if self._flags.exists() else []
        return [
            *("skerry.cli", "syncer"),
            *("--from-kubeconfig", str(self._credential)),
            *("--to-kubeconfig", str(self.edge_kubeconfig)),
            *("--to-context", ADMIN_CONTEXT),
            *("--sync-target-name", self.edge, "--data-dir", str(self.home / "data")),
            *further,
        ]

    def start(self) -> None:
        """Run the syncer, detached. Harmless when it runs already, or has no hub to dial."""
        if self.mailbox:
            self.process.start(self.command())

    def stop(self) -> None:
        """End the syncer; harmless when it does not run."""
        self.process.stop()
