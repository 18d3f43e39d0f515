"""What every kind of server does beside answering."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from skerry.app.keys import ServerKeys, keep_keys, renew_certificates
from skerry.app.restart import restart_on_unavailable
from skerry.app.settings import ServerSettings
from skerry.kit.clock import Clock
from skerry.server.expiry import EventExpiry
from skerry.server.security.key_ring import KeyRing
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store import compaction
from skerry.store.base import Store
from skerry.store.compaction import CompactionPolicy, HistoryBytes

Chore = Coroutine[Any, Any, None]


def server_chores(
    settings: ServerSettings,
    keys: ServerKeys,
    ring: KeyRing,
    dispatcher: Dispatcher,
    clock: Clock,
) -> list[Chore]:
    """Return what runs until the server ends: old Events and old history go, keys are kept up."""
    expiry = EventExpiry(keys.store, clock, timedelta(minutes=settings.event_minutes))
    return [
        restart_on_unavailable("events", expiry.run, clock),
        ring.watch_files(),
        keep_keys(settings, keys, ring, clock),
        renew_certificates(ring, clock),
        _compacting(settings, keys.store, dispatcher, clock),
    ]


def _compacting(
    settings: ServerSettings, store: Store, dispatcher: Dispatcher, clock: Clock
) -> Chore:
    """Return the compaction of *store*, which counts what the dispatcher hands out."""
    policy = CompactionPolicy(
        keep=timedelta(minutes=settings.compaction_minutes),
        max_revisions=settings.compaction_revisions,
        max_bytes=settings.compaction_mib << 20,
    )
    history = HistoryBytes(policy.max_bytes)
    # What was missed had been compacted, and need not be counted.
    dispatcher.observe_all(lambda change: history.add(change.event), reset=lambda: None)
    return compaction.run(store, policy, clock, history)
