"""The hub and its controllers as supervised processes of one data directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from skerry.app.ports import NoPortFree, is_free, lasting_port
from skerry.app.supervised import READY, NotStarted, Supervised
from skerry.kit.secret_files import secret_directory


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
        record = hub_record(self.data_dir) if name == "hub" else self.data_dir / f"{name}.json"
        return Supervised(record, self.data_dir / f"{name}.log")

    def up(self, hub_flags: Sequence[str], provider: str) -> None:
        """Start what does not run: the hub, and the controllers once it answers."""
        secret_directory(self.data_dir)
        if self._process("hub").by_hand:
            raise StackError(
                f"a hub that was started with skerry hub keeps its data in {self.data_dir}; "
                f"first: skerry down --data-dir {self.data_dir}"
            )
        try:
            flags = ["--data-dir", str(self.data_dir), *self._with_lasting_port(hub_flags)]
            self._process("hub").start(["skerry.cli", "hub", *flags, "--ready-fd", READY])
        except (NotStarted, NoPortFree) as error:
            raise StackError(f"the hub did not start: {error}") from error
        if provider:
            flags = ["--kubeconfig", str(self.kubeconfig), "--espw-path", provider]
            self._process("controllers").start(["skerry.cli", "controllers", *flags])

    def _with_lasting_port(self, flags: Sequence[str]) -> list[str]:
        """Have "any port" mean the same one after each restart: others have written it down."""
        given = _flag(flags, "--port")
        if given is None or given.strip() != "0":
            return list(flags)
        address = _flag(flags, "--bind-address") or "127.0.0.1"
        known = urlsplit(self.url).port
        port = known if known and is_free(address, known) else lasting_port(address, self.data_dir)
        # The last one counts.
        return [*flags, "--port", str(port)]

    def down(self) -> None:
        """Stop everything, however the hub was started; harmless when nothing runs."""
        for name in ("controllers", "hub"):
            self._process(name).stop()

    def parts(self) -> list[Part]:
        """Return how each process is."""
        found = []
        for name in ("hub", "controllers"):
            process = self._process(name)
            found.append(Part(name, process.running, process.pid))
        return found


def _flag(words: Sequence[str], name: str) -> str | None:
    """Return the value a flag has among words that another command will read."""
    found = None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == name:
            found = following
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def hub_record(data_dir: Path) -> Path:
    """Return where it is noted which process is the hub of a folder."""
    return data_dir / "hub.json"
