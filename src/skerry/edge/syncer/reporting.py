"""How things stand, written on the SyncerConfig: when it changed, and now and then anyway.

Not a controller of a queue: there is one key, and it is due by the clock as well as by changes.

Reads what the other parts keep (outcomes, causes, the deletion budget, whose store answers, the
disk) and writes the status of one SyncerConfig, the main one. Where there is none, nothing can be
reported: the next round tries again.

What is written is a difference to the object in the cache, and to what was reported last. Our own
write comes back over the watch and causes one more round, which has to find nothing new: a field
that never compares equal would be written for ever, once a second. A hub of an earlier version
drops fields that it does not know, so compared with the object alone they would be such fields. A
report that failed leaves ``_reported`` as it was; its numbers are written by the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from skerry.api.edge import EDGE_FIELD_MANAGER
from skerry.api.errors import ApiError
from skerry.edge.syncer.state import SyncerState
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.syncing.conditions import (
    MAX_HELD_CLUSTERS,
    MAX_HELD_NAMES,
    HeldDeletions,
    Objects,
    Standing,
    report,
)
from skerry.logic.fleet.syncing.deletion_budget import question as deletions_question
from skerry.runtime.execute import Executor
from skerry.runtime.transport import TransportError

# Changes come in bursts; people read the last state of one.
_GATHER_SECONDS = 1.0
# The heartbeat shown here is for people; the Lease is for machines. The SyncerConfig is large
# and comes back over the watch, so it is reported less often than the Lease is renewed.
_MIN_SECONDS = 60.0
_INTERVALS = 10


class Reporting:
    """Writes conditions and the time of the last heartbeat."""

    def __init__(self, state: SyncerState, unknown_kinds: Callable[[], list[str]]) -> None:
        self._s = state
        self._executor = Executor(state.hub, EDGE_FIELD_MANAGER, metrics=state.metrics.runtime)
        self._unknown_kinds = unknown_kinds
        self._changed = asyncio.Event()
        self._reported: Standing | None = None
        self._log = Logger("syncer-report")

    def changed(self) -> None:
        """Have the state reported soon."""
        self._changed.set()

    def standing(self) -> Standing:
        """Return how things stand now; sets the gauges that are made of the same facts."""
        s = self._s
        held = s.budget.verdict
        question = s.trust.question(s.settings.name)
        s.metrics.held.set(held.held)
        s.metrics.identity_changed.set(1 if question else 0)
        return Standing(
            edge=s.settings.name,
            objects=Objects(
                wanted=s.outcomes.wanted,
                applied=s.outcomes.applied,
                refused=s.outcomes.refused,
                unhealthy=s.causes.unwell,
            ),
            troubled=dict(s.outcomes.troubled),
            identity_changed=question,
            deletions_held=deletions_question(s.settings.budget, held, s.settings.name),
            held=self._held(),
            unknown_kinds=self._unknown_kinds(),
            disk_failing=s.records.failure,
        )

    def _held(self) -> HeldDeletions | None:
        """Return what waits for a person: all of it by number, the first of it by name."""
        budget = self._s.budget
        if budget.verdict.allowed:
            return None
        names = tuple(ref.text for ref in budget.held(MAX_HELD_NAMES))
        owners = budget.owners(MAX_HELD_CLUSTERS)
        return HeldDeletions(budget.verdict.held, budget.verdict.name, names, owners)

    async def run(self) -> None:
        """Report until cancelled.

        With a *beat* everything is written that the object in the cache lacks, and the time. That
        is due once per interval, whether or not anything changed; a beat that the hub did not take
        is due again at once, after the time in which changes are gathered.
        """
        clock = self._s.hub.clock
        interval = max(_MIN_SECONDS, _INTERVALS * self._s.settings.heartbeat_seconds)
        reported = -interval
        while True:
            due = reported + interval - clock.monotonic()
            changed = await self._wait(due)
            await clock.sleep(_GATHER_SECONDS)
            # Before the state is read: what changes while it is written is another change.
            self._changed.clear()
            beat = not changed or clock.monotonic() - reported >= interval
            if await self._write(beat=beat) and beat:
                reported = clock.monotonic()

    async def _wait(self, seconds: float) -> bool:
        """Wait for a change or until *seconds* have passed; tell which."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _write(self, *, beat: bool) -> bool:
        """Write what is new; returns whether the hub took it, or there was nothing new."""
        config = self._s.config.main() if self._s.config.configured else None
        if config is None:
            return False
        now = rfc3339(self._s.hub.clock.now())
        standing = self.standing()
        # A hub of an earlier version drops what it does not know; that is no reason to repeat it.
        plan = report(config, standing, now, beat=beat, before=None if beat else self._reported)
        try:
            await self._executor.execute(plan)
            self._reported = standing
        except (ApiError, TransportError) as error:
            self._log.debug("report not written", error=error)
            self._changed.set()
            return False
        return True
