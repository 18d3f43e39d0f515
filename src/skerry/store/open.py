"""Which store, and how to reach it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.store.base import Store, StoreError
from skerry.store.restoring import UNFINISHED, RestorableStore

Kind = Literal["sqlite", "memory", "etcd"]


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where the objects are kept."""

    kind: Kind = "sqlite"
    """``sqlite``: one file, one server. ``etcd``: several servers. ``memory``: nothing survives."""

    path: Path = Path("skerry.db")
    """The SQLite file; its folder is created. Unused by the others."""

    etcd_servers: tuple[str, ...] = ("http://127.0.0.1:2379",)
    """Client URLs of the etcd members; tried in turn when one does not answer."""

    etcd_prefix: str = "/skerry/"
    """Below which key of etcd everything lies, so that several hubs can share a cluster."""

    etcd_ca: Path | None = None
    """PEM file of the authorities that vouch for etcd; None: those of the system."""

    etcd_cert: Path | None = None
    """PEM file of the client certificate shown to etcd; needs ``etcd_key``."""

    etcd_key: Path | None = None
    """PEM file of the client certificate's key."""

    etcd_user: str = ""
    """User to authenticate as with ``etcd_password``; empty: no password authentication."""

    etcd_password: str = field(default="", repr=False)
    """Password of ``etcd_user``."""

    etcd_max_txn_ops: int = 128
    """Operations in one etcd transaction; etcd's ``--max-txn-ops``, whose default is 128."""

    etcd_timeout_seconds: float = 10.0
    """How long a request waits for etcd, a change of leader included, before it is given up."""


async def open_store(
    settings: StoreSettings, clock: Clock, ids: IdSource, *, unfinished: bool = False
) -> RestorableStore:
    """Open the store that *settings* name, creating it when it is new.

    A store whose restore was begun and never finished is refused unless *unfinished* is allowed.
    """
    store = await _openers[settings.kind](settings, clock, ids)
    if store.identity.startswith(UNFINISHED) and not unfinished:
        await store.close()
        raise StoreError(
            "a restore into this store was begun but not finished; "
            "remove its data and restore the backup again"
        )
    return store


async def open_for_backup(settings: StoreSettings, clock: Clock, ids: IdSource) -> Store:
    """Open a store to look at while a server may be using it."""
    if settings.kind != "sqlite":
        return await open_store(settings, clock, ids)
    from skerry.store.sqlite import SqliteStore

    return await SqliteStore.open_read_only(settings.path)


async def _open_memory(settings: StoreSettings, clock: Clock, ids: IdSource) -> RestorableStore:
    from skerry.store.memory import MemoryStore

    return MemoryStore(ids.uid())


async def _open_sqlite(settings: StoreSettings, clock: Clock, ids: IdSource) -> RestorableStore:
    from skerry.store.sqlite import SqliteStore

    return await SqliteStore.open(settings.path, ids)


async def _open_etcd(settings: StoreSettings, clock: Clock, ids: IdSource) -> RestorableStore:
    # Imported only here: grpcio costs 75 ms and 30 MB.
    from skerry.store.etcd import EtcdStore
    from skerry.store.etcd_client import EtcdOptions

    options = EtcdOptions(
        servers=settings.etcd_servers,
        ca=settings.etcd_ca,
        cert=settings.etcd_cert,
        key=settings.etcd_key,
        user=settings.etcd_user,
        password=settings.etcd_password,
        timeout_seconds=settings.etcd_timeout_seconds,
    )
    return await EtcdStore.open(
        options,
        clock,
        ids,
        prefix=settings.etcd_prefix,
        max_txn_ops=settings.etcd_max_txn_ops,
    )


_openers: dict[Kind, Callable[[StoreSettings, Clock, IdSource], Awaitable[RestorableStore]]] = {
    "memory": _open_memory,
    "sqlite": _open_sqlite,
    "etcd": _open_etcd,
}
