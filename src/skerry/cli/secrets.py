"""skerry secrets: the keys that Secrets are encrypted with in the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skerry.app.key_files import (
    DEFAULT_FILE,
    KeyFileError,
    add_encryption_key,
    encryption_keys,
    keep_encryption_keys,
)
from skerry.cli.key_client import KeyClient, asking, server_flags
from skerry.cli.options import FILE
from skerry.cli.printing import show, show_progress

_KIND = "encryption"
_key_file_flag = click.option(
    "--encryption-key-file",
    "key_file",
    type=FILE,
    help=f"The server's key file  [default: DATA-DIR/pki/{DEFAULT_FILE}]",
)


@click.group()
def secrets() -> None:
    """Rotate the keys that Secrets are encrypted with in the store."""


@secrets.command(
    epilog="""\b
Examples:
  skerry secrets rotate --data-dir .skerry
  skerry secrets drop-old-keys --data-dir .skerry

Several hubs over one etcd: the first run adds a key to this hub's key file and
names the hubs that lack it. Copy the file to each of them, then run it again.
"""
)
@server_flags
@_key_file_flag
def rotate(data_dir: Path, kubeconfig: Path | None, key_file: Path | None) -> None:
    """Encrypt every Secret with a new key, while the server runs.

    A run that was interrupted is continued by the next one. Old keys are kept until
    skerry secrets drop-old-keys.
    """
    with asking("skerry secrets rotate", data_dir, kubeconfig) as client:
        status = client.step("reload")[_KIND]
        if not status["current"] or status["rewritten"]:
            _begin(client, status, key_file or data_dir / "pki" / DEFAULT_FILE)
        _rewrite(client)


def _begin(client: KeyClient, status: dict[str, Any], file: Path) -> None:
    """Have the server use a key that was not in use before."""
    not_new = {status["current"], *status["old"], *status["retired"]}
    waiting = [name for name in encryption_keys(file) if name not in not_new]
    if waiting or status["pending"]:
        name = (waiting or status["pending"])[0]
    elif file.exists() or file.absolute() == Path(status["file"]):
        name = add_encryption_key(file)
        show(f"added key {name} to {file}")
        client.step("reload")
    else:
        raise KeyFileError(
            f"{file} is not there; run this beside the server's key file {status['file']}, "
            "or add a line 'name: base64 key' to that file yourself"
        )
    client.step("use", kind=_KIND, name=name)
    show(f"key {name} encrypts from now on")


def _rewrite(client: KeyClient) -> None:
    """Rewrite page by page, saying how far it is."""
    total = int(client.status()["secrets"])
    examined = rewritten = 0
    after, more = "", True
    while more:
        done = client.step("rewrite", after=after)
        examined, rewritten = examined + done["examined"], rewritten + done["rewritten"]
        after, more = done["after"], bool(done["after"])
        show_progress(f"examined {examined} of {max(total, examined)} Secrets", last=not more)
    status = client.status()[_KIND]
    show(f"rewrote {rewritten} Secrets with key {status['current']}")
    if not status["rewritten"]:
        raise KeyFileError("some Secrets were written with an old key meanwhile; run this again")
    if status["old"]:
        show(f"old keys: {', '.join(status['old'])} (skerry secrets drop-old-keys)")


@secrets.command(
    "drop-old-keys", epilog="\b\nExample:\n  skerry secrets drop-old-keys --data-dir .skerry\n"
)
@server_flags
@_key_file_flag
def drop_old_keys(data_dir: Path, kubeconfig: Path | None, key_file: Path | None) -> None:
    """Drop the keys that no Secret is encrypted with any more.

    The server makes sure of that, and forgets the history that needs them. Backups from
    before still do: keep the old keys with them.
    """
    file = key_file or data_dir / "pki" / DEFAULT_FILE
    with asking("skerry secrets drop-old-keys", data_dir, kubeconfig) as client:
        status = client.step("dropOld", kind=_KIND)[_KIND]
        show(f"Secrets need key {status['current']} alone")
        removed = keep_encryption_keys(file, {status["current"], *status["pending"]})
        if removed:
            show(f"removed from {file}: {', '.join(removed)}")


@secrets.command(epilog="\b\nExample:\n  skerry secrets status --data-dir .skerry\n")
@server_flags
def status(data_dir: Path, kubeconfig: Path | None) -> None:
    """Say which keys encrypt Secrets, and which servers have them."""
    with asking("skerry secrets status", data_dir, kubeconfig) as client:
        found = client.status()
        keys = found[_KIND]
        show(f"current key   {keys['current'] or 'none: Secrets are stored unencrypted'}")
        show(f"old keys      {', '.join(keys['old']) or 'none'}")
        show(f"unused keys   {', '.join(keys['pending']) or 'none'}")
        show(f"rewritten     {'yes' if keys['rewritten'] else 'no'}")
        for server in found["servers"]:
            show(f"server        {server['name']} has {', '.join(server['keys'][_KIND])}")
