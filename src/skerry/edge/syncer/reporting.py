"""How things stand, written on the SyncerConfig: when it changed, and now and then anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skerry.api.edge import SYNCER_CONFIGS
from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.edge.syncer.state import SyncerState
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.syncing.conditions import Standing, conditions, same_conditions
from skerry.runtime.client import WriteOptions
from skerry.runtime.transport import TransportError

_OPTIONS = WriteOptions(field_manager="skerry-syncer")
# Changes come in bursts; people read the last state of one.
_GATHER_SECONDS = 1.0
# The heartbeat shown here is for people; the Lease is for machines. The SyncerConfig is large
# and comes back over the watch, so it is told less often than the Lease is renewed.
_SHORTEST_SECONDS = 60.0
_INTERVALS = 10


class Reporting:
    """Writes conditions and the time of the last heartbeat."""

    def __init__(self, state: SyncerState, unknown_kinds: Callable[[], list[str]]) -> None:
        self._s = state
        self._unknown_kinds = unknown_kinds
        self._changed = asyncio.Event()
        self._log = Logger("syncer-report")

    def changed(self) -> None:
        """Have a look taken soon."""
        self._changed.set()

    def standing(self) -> Standing:
        """Return how things stand now."""
        s = self._s
        held = "" if s.gate.verdict.allowed else s.gate.verdict.message
        question = s.trust.question()
        s.metrics.held.set(len(s.gate.candidates) if held else 0)
        s.metrics.identity_changed.set(1 if question else 0)
        return Standing(
            applied=s.outcomes.applied,
            troubled=dict(s.outcomes.troubled),
            identity_changed=question,
            deletions_held=held,
            unknown_kinds=self._unknown_kinds(),
            disk_failing=s.memory.journal.failure,
        )

    async def run(self) -> None:
        """Report until cancelled."""
        clock = self._s.hub.clock
        interval = max(_SHORTEST_SECONDS, _INTERVALS * self._s.settings.heartbeat_seconds)
        told = -interval
        while True:
            due = told + interval - clock.monotonic()
            changed = await self._wait(due)
            await clock.sleep(_GATHER_SECONDS)
            self._changed.clear()
            beat = not changed or clock.monotonic() - told >= interval
            if await self._tell(beat=beat) and beat:
                told = clock.monotonic()

    async def _wait(self, seconds: float) -> bool:
        """Wait for a change or until *seconds* have passed; tell which."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _tell(self, *, beat: bool) -> bool:
        """Write what is new; returns whether the hub took it or had nothing to be told."""
        config = self._s.config.main() if self._s.config.configured else None
        if config is None:
            return False
        now = rfc3339(self._s.hub.clock.now())
        status = config.get("status") or {}
        before = status.get("conditions") or []
        made = conditions(self.standing(), before, now)
        change: Object = {}
        if not same_conditions(before, made):
            change["conditions"] = made
        if beat:
            change["lastSyncerHeartbeatTime"] = now
        if not change:
            return True
        try:
            await self._s.hub.patch(
                SYNCER_CONFIGS,
                config["metadata"]["name"],
                {"status": change},
                subresource="status",
                quiet=True,
                options=_OPTIONS,
            )
        except (ApiError, TransportError) as error:
            self._log.debug("report not written", error=error)
            self._changed.set()
            return False
        return True
