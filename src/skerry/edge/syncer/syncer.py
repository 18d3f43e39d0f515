"""A syncer as a whole: elected at its edge, working in sessions until it is stopped."""

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
            await election.run(self._lead)
            _log.warning("no longer this edge's syncer; standing by")

    async def _lead(self) -> None:
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
