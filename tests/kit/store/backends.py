"""Every way to open a store, behind one face, so that one suite covers them all."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SeededIds
from skerry.store.open import StoreSettings, open_store
from skerry.store.restoring import RestorableStore
from tests.kit.store.etcd_process import EtcdProcess

KINDS = ("memory", "sqlite", "etcd")


class Backend:
    """Opens fresh stores of one kind, and the same one again where data outlives the object."""

    def __init__(self, kind: str, directory: Path, etcd: EtcdProcess | None) -> None:
        self.kind = kind
        self._directory = directory
        self._etcd = etcd
        self._numbers = count()
        self._ids = SeededIds(7)

    @property
    def durable(self) -> bool:
        return self.kind != "memory"

    def fresh(self) -> StoreSettings:
        """Return the settings of a store that does not exist yet."""
        number = next(self._numbers)
        if self._etcd is not None:
            prefix = f"/{self._directory.name}-{number}/"
            return StoreSettings(kind="etcd", etcd_servers=(self._etcd.url,), etcd_prefix=prefix)
        return StoreSettings(
            kind="sqlite" if self.kind == "sqlite" else "memory",
            path=self._directory / f"store-{number}" / "skerry.db",
        )

    async def open(self, settings: StoreSettings | None = None) -> RestorableStore:
        return await open_store(settings or self.fresh(), SystemClock(), self._ids)
