"""skerry certificates rotate-ca, rotate-signing-key and status.

Both rotations have an overlap: the first run has the server sign with a new key and accept both,
``--finish`` ends that. The commands edit the files of the data directory and ask the running
server to use them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import click

from skerry.app.key_files import (
    KeyFileError,
    add_authority,
    add_signing_key,
    authorities,
    keep_authorities,
    keep_signing_keys,
    signing_keys,
)
from skerry.cli.key_client import KeyClient, asking, server_flags
from skerry.cli.printing import show

_finish_flag = click.option(
    "--finish", is_flag=True, help="End the overlap: accept what the present key signed alone."
)


@dataclass(frozen=True, slots=True)
class _Rotation:
    """How one kind of key is rotated: its files, and what to say."""

    kind: str
    what: str
    names: Callable[[Path], list[str]]
    add: Callable[[Path], str]
    keep: Callable[[Path, Collection[str]], list[str]]
    begun: str

    def begin(self, client: KeyClient, folder: Path) -> None:
        """Have the server sign with a key that it did not use before."""
        status = client.step("reload")[self.kind]
        if status["old"]:
            raise KeyFileError(
                f"a rotation is under way: {self.what} {', '.join(status['old'])} is still "
                "accepted; end it with --finish"
            )
        not_new = (status["current"], *status["retired"])
        waiting = [name for name in self.names(folder) if name not in not_new]
        waiting = waiting or status["pending"]
        name = waiting[0] if waiting else self._added(client, folder)
        client.step("use", kind=self.kind, name=name)
        show(f"{self.what} {name} signs from now on; the one before is still accepted")
        show(self.begun)

    def _added(self, client: KeyClient, folder: Path) -> str:
        if not self.names(folder):
            raise KeyFileError(f"{folder} is not there; name the server's folder with --data-dir")
        name = self.add(folder)
        show(f"added {self.what} {name} to {folder}")
        client.step("reload")
        return name

    def finish(self, client: KeyClient, folder: Path) -> None:
        """Have the server accept the present key alone, and remove the others."""
        status = client.step("dropOld", kind=self.kind)[self.kind]
        show(f"{self.what} {status['current']} is accepted alone")
        kept = {status["current"], *status["pending"]}
        removed = self.keep(folder, kept) if self.names(folder) else []
        if removed:
            show(f"removed from {folder}: {', '.join(removed)}")


_CA = _Rotation(
    "authority",
    "authority",
    authorities,
    add_authority,
    keep_authorities,
    "Clients that trust either authority trust the server. Give out the new bundle (ca.crt), wait "
    "until every certificate of the old authority was renewed, then: "
    "skerry certificates rotate-ca --finish",
)
_SIGNING = _Rotation(
    "signing",
    "signing key",
    signing_keys,
    add_signing_key,
    keep_signing_keys,
    "Tokens of the old key hold until they end. Then: "
    "skerry certificates rotate-signing-key --finish",
)


@click.command(
    "rotate-ca",
    epilog="""\b
Examples:
  skerry certificates rotate-ca --data-dir .skerry
  skerry certificates rotate-ca --data-dir .skerry --finish      some weeks later

Several hubs over one etcd: the first run names the hubs that lack the new
authority. Copy ca.crt and ca.key to each of them, then run it again.
""",
)
@server_flags
@_finish_flag
def rotate_ca(data_dir: Path, kubeconfig: Path | None, finish: bool) -> None:
    """Have a new certificate authority sign, and accept the old one until --finish.

    The server goes on, and so do its clients: its certificate is signed by the new
    authority, which the old one vouches for.
    """
    _run("skerry certificates rotate-ca", _CA, data_dir, kubeconfig, finish=finish)


@click.command(
    "rotate-signing-key",
    epilog="""\b
Examples:
  skerry certificates rotate-signing-key --data-dir .skerry
  skerry certificates rotate-signing-key --data-dir .skerry --finish

Several hubs over one etcd: copy sa.key to the hubs that the first run names,
then run it again.
""",
)
@server_flags
@_finish_flag
def rotate_signing_key(data_dir: Path, kubeconfig: Path | None, finish: bool) -> None:
    """Sign ServiceAccount tokens with a new key, and accept the old one until --finish."""
    _run("skerry certificates rotate-signing-key", _SIGNING, data_dir, kubeconfig, finish=finish)


@click.command(epilog="\b\nExample:\n  skerry certificates status --data-dir .skerry\n")
@server_flags
def status(data_dir: Path, kubeconfig: Path | None) -> None:
    """Say which keys sign and which are accepted, and which servers have them."""
    with asking("skerry certificates status", data_dir, kubeconfig) as client:
        found = client.status()
        for rotation in (_CA, _SIGNING):
            keys = found[rotation.kind]
            show(f"{rotation.what:12} {keys['current']} signs")
            for name in keys["old"]:
                show(f"{'':12} {name} is accepted")
        for server in found["servers"]:
            show(f"{'server':12} {server['name']}")


def _run(
    command: str, rotation: _Rotation, data_dir: Path, kubeconfig: Path | None, *, finish: bool
) -> None:
    with asking(command, data_dir, kubeconfig) as client:
        act = rotation.finish if finish else rotation.begin
        act(client, data_dir / "pki")
