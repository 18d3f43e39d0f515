"""Backing up and restoring a store from the outside."""

from __future__ import annotations

from pathlib import Path

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.store import backup as backups
from skerry.store.base import StoreError
from skerry.store.open import StoreSettings, open_for_backup, open_store


class StorekeepingError(Exception):
    """Why a backup or restore did not happen, in a sentence."""


async def backup_store(settings: StoreSettings, file: Path) -> str:
    """Back up the store to *file*; return what to tell the user."""
    clock, ids = SystemClock(), SystemIds()
    try:
        store = await open_for_backup(settings, clock, ids)
        try:
            summary = await backups.backup(store, file, clock)
        finally:
            await store.close()
    except (StoreError, OSError) as error:
        raise StorekeepingError(f"backup to {file}: {error}") from error
    return f"backed up {summary.objects} objects at revision {summary.revision} to {file}"


async def restore_store(settings: StoreSettings, file: Path) -> str:
    """Restore the store from *file*; return what to tell the user."""
    clock, ids = SystemClock(), SystemIds()
    try:
        store = await open_store(settings, clock, ids, unfinished=True)
        try:
            summary = await backups.restore(store, file, ids)
        finally:
            await store.close()
    except (StoreError, OSError) as error:
        raise StorekeepingError(f"restore from {file}: {error}") from error
    return f"restored {summary.objects} objects from {file}"
