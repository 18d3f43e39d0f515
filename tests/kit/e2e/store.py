"""The store of a server that is not running, opened from outside."""

from __future__ import annotations

from pathlib import Path

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.store.open import StoreSettings, open_store


async def compact(data_dir: Path) -> None:
    """Forget all history of the store in *data_dir*, as a night's compaction would."""
    settings = StoreSettings(kind="sqlite", path=data_dir / "store.db")
    store = await open_store(settings, SystemClock(), SystemIds())
    await store.compact(await store.revision())
    await store.close()
