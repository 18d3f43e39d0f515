"""skerry backup and skerry restore."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click

from skerry.app.settings import StoreSettings
from skerry.app.storekeeping import StorekeepingError, backup_store, restore_store
from skerry.cli.options import store_flags


@click.command(epilog="\b\nExample:\n  skerry backup --data-dir .skerry backup.skerry\n")
@store_flags
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(data_dir: Path, store: StoreSettings, file: Path) -> None:
    """Write a consistent copy of a store to FILE, while its server goes on."""
    _run(lambda: asyncio.run(backup_store(store, file)))


@click.command(epilog="\b\nExample:\n  skerry restore --data-dir new backup.skerry\n")
@store_flags
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(data_dir: Path, store: StoreSettings, file: Path) -> None:
    """Fill an empty store from FILE.

    The store gets a new identity and its revisions jump ahead, so that every client relists.
    """
    _run(lambda: asyncio.run(restore_store(store, file)))


def _run(action: Callable[[], str]) -> None:
    try:
        line = action()
    except StorekeepingError as error:
        print(f"skerry: {error}", file=sys.stderr)
        sys.exit(1)
    print(line)
