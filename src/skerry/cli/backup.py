"""skerry backup and skerry restore."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click

from skerry.app.settings import StoreSettings
from skerry.app.storekeeping import KeyChoice, StorekeepingError, backup_store, restore_store
from skerry.cli.options import EXISTING_FILE, store_flags
from skerry.cli.printing import show

_encryption_key_file = click.option(
    "--encryption-key-file",
    type=EXISTING_FILE,
    help="The server's encryption keys, when they are not in DATA-DIR/pki.",
)


@click.command(
    epilog="""\b
Examples:
  skerry backup --data-dir .skerry --passphrase-file passphrase.txt hub.backup
  skerry backup --data-dir .skerry --without-keys objects.backup
"""
)
@store_flags
@_encryption_key_file
@click.option(
    "--passphrase-file",
    type=EXISTING_FILE,
    help="Take keys and certificates along, and encrypt everything with this passphrase.",
)
@click.option(
    "--without-keys",
    is_flag=True,
    help="Objects only, Secrets as they are stored; keep DATA-DIR/pki safe elsewhere.",
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(
    data_dir: Path,
    store: StoreSettings,
    encryption_key_file: Path | None,
    passphrase_file: Path | None,
    without_keys: bool,
    file: Path,
) -> None:
    """Write a consistent copy of a server to FILE, while it goes on.

    Say which: with keys and certificates, all of it encrypted (--passphrase-file), or the
    objects alone (--without-keys). Without its keys a restored hub is one that its edges do
    not accept.
    """
    if (passphrase_file is None) != without_keys:
        raise click.UsageError(
            "say which: --passphrase-file FILE (keys and certificates are in the backup, all of "
            "it encrypted) or --without-keys (objects only)"
        )
    choice = KeyChoice(_passphrase(passphrase_file), encryption_key_file)
    _run(lambda: asyncio.run(backup_store(store, data_dir, file, choice)))


@click.command(
    epilog="""\b
Examples:
  skerry restore --data-dir new --passphrase-file passphrase.txt hub.backup
  cp -a saved/pki new/pki; skerry restore --data-dir new objects.backup
  skerry restore --data-dir new --new-keys objects.backup
"""
)
@store_flags
@_encryption_key_file
@click.option("--passphrase-file", type=EXISTING_FILE, help="Passphrase of the backup.")
@click.option(
    "--new-keys",
    is_flag=True,
    help="Make a hub with new keys: edges and users must join again, and Secrets that were "
    "encrypted are left out.",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(
    data_dir: Path,
    store: StoreSettings,
    encryption_key_file: Path | None,
    passphrase_file: Path | None,
    new_keys: bool,
    file: Path,
) -> None:
    """Fill an empty store from FILE, and its keys from a backup that has them.

    The store gets a new identity and its revisions jump ahead, so that every client relists.
    A hub without the keys it had is refused unless --new-keys asks for one.
    """
    choice = KeyChoice(_passphrase(passphrase_file), encryption_key_file, new_keys)
    _run(lambda: asyncio.run(restore_store(store, data_dir, file, choice)))


def _passphrase(file: Path | None) -> bytes | None:
    """Return the passphrase in *file*; the end of its line is no part of it."""
    if file is None:
        return None
    found = file.read_bytes().rstrip(b"\r\n")
    if not found:
        raise click.UsageError(f"--passphrase-file {file}: the file is empty")
    return found


def _run(action: Callable[[], str]) -> None:
    try:
        line = action()
    except StorekeepingError as error:
        show(f"skerry: {error}", error=True)
        sys.exit(1)
    show(line)
