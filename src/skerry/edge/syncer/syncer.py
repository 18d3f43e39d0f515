"""A syncer as a whole: elected at its edge, working in sessions until it is stopped.

The Lease of the election is at the edge and not at the hub: what two syncers must not both write is
the edge, and an edge goes on while its hub is away. It is another Lease than that of ``heartbeat``,
which is in the mailbox and is about the edge.

Leadership may come and go in one process, and sessions within a leadership; the journal outlives
both. A process that stands by has the journal open and writes nothing to it. When a leadership ends
the journal is flushed, so that what the edge has answered is on disk and not only the intents.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.session import Session
from skerry.edge.syncer.state import SyncerSettings
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.runtime.client import Client
from skerry.runtime.election import LeaderElection, Terms

# Slower than a controller's: a syncer that died is restarted with the same identity, which takes
# the Lease back at once; only another machine has to wait this long.
TERMS = Terms(lease_seconds=30, renew_seconds=20.0, retry_seconds=5.0)

_log = Logger("syncer")


class Syncer:
    """Runs sessions while this process holds the edge's Lease."""

    def __init__(
        self,
        settings: SyncerSettings,
        hub: Client,
        edge: Client,
        records: SyncRecords,
        *,
        ids: IdSource,
        metrics: SyncerMetrics | None = None,
        terms: Terms = TERMS,
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
    ) -> None:
        """*beside* runs while this is the edge's syncer, and no other one is."""
        self._settings = settings
        self._hub, self._edge = hub, edge
        self._records = records
        self._ids = ids
        self._metrics = metrics or SyncerMetrics()
        self._terms = terms
        self._beside = beside
        # The session at work, for those who look from outside; None while another syncer works.
        self.session: Session | None = None

    async def run(self) -> None:
        """Work until cancelled; waits while another syncer works for this edge."""
        while True:
            election = LeaderElection(
                self._edge,
                f"skerry-syncer-{self._settings.name}",
                self._settings.lock_namespace,
                self._settings.identity,
                ids=self._ids,
                terms=self._terms,
                metrics=self._metrics.runtime,
            )
            # A new candidate each time: what the last one knew of the Lease is out of date.
            await election.run(self._lead)
            _log.warning("no longer this edge's syncer; standing by")

    async def _lead(self) -> None:
        """Run one session after the other until cancelled, which is how a leadership ends."""
        try:
            while True:
                self.session = Session(
                    self._settings,
                    self._hub,
                    self._edge,
                    self._records,
                    self._ids,
                    self._metrics,
                    self._beside,
                )
                await self.session.run()
                _log.info("hub or edge was replaced; reading everything anew", v=0)
        finally:
            self.session = None
            await self._records.flush()
