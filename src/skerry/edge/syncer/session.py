"""One session: from becoming this edge's syncer until that ends.

Builds the tables, connects the event handlers, and runs the three controllers beside what keeps
the tables up. All that survives a session is the journal.

Why sessions: what caches hold is true of one history of one store. When the hub was restored from a
backup, or the edge cluster was set up anew under the same address, objects that are missing were
not deleted, and versions that look older are not. Rather than mend every table, a session ends and
another begins with empty caches; until they are full nothing counts as missing, and the journal
still says which objects are ours.

The controllers share the tables and nothing else. An object that goes down, its status that goes
back, and one that was made at the edge are three keys in three queues, so a hub that does not take
reports holds up no deployment. They meet in ``SyncerState``, whose parts say themselves when they
change; ``EventHandlers`` turns that into keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from skerry.api.refs import ObjectRef
from skerry.edge.syncer.causes import Causes
from skerry.edge.syncer.deletion_budget import DeletionBudget
from skerry.edge.syncer.downsync.execute import DownsyncExecutor
from skerry.edge.syncer.downsync.observe import DownsyncObserver
from skerry.edge.syncer.edge_witness import EdgeWitness
from skerry.edge.syncer.events import EventHandlers
from skerry.edge.syncer.heartbeat import Heartbeat
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.outcomes import Outcomes
from skerry.edge.syncer.reporting import Reporting
from skerry.edge.syncer.state import SyncerSettings, SyncerState
from skerry.edge.syncer.status_writeback import WritebackExecutor, WritebackObserver
from skerry.edge.syncer.tables.edge_cache import EdgeCache
from skerry.edge.syncer.tables.edge_writes import EdgeWrites
from skerry.edge.syncer.tables.mailbox import WatchedMailbox
from skerry.edge.syncer.tables.missing_rights import MissingRights
from skerry.edge.syncer.tables.served_types import ServedTypes
from skerry.edge.syncer.tables.store_identity import Trust, WitnessTransport
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.edge.syncer.tables.syncer_config import ConfigView
from skerry.edge.syncer.upsync import UpsyncExecutor, UpsyncObserver, UpsyncWatches
from skerry.kit.ids import IdSource
from skerry.logic.fleet.syncing.difference import difference
from skerry.logic.fleet.syncing.status_writeback import status_writeback
from skerry.logic.fleet.syncing.upsync import upsync
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import InformerFactory
from skerry.runtime.multiplex import MultiplexedWatches
from skerry.runtime.workqueue import WorkQueue

# What is ready to go back at the same time can travel together.
_WRITEBACK_WORKERS = 8
# An object refused once may be fine in a moment; one refused for an hour is a person's concern.
_BACKOFF = Backoff(min_seconds=0.1, max_seconds=60.0, jitter=0.5)


class Session:
    """Everything of one session; ``run`` it once."""

    def __init__(
        self,
        settings: SyncerSettings,
        hub: Client,
        edge: Client,
        records: SyncRecords,
        ids: IdSource,
        metrics: SyncerMetrics,
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
    ) -> None:
        """*hub* must go through a ``WitnessTransport`` for stores to be distinguished.

        *beside* runs for as long as the session does.
        """
        self._beside = beside
        # Set when the history of the hub or of the edge has changed: the session ends.
        self._over = asyncio.Event()
        self._hub_watches = MultiplexedWatches(hub, ids)
        hub_factory = InformerFactory(
            hub, ids=ids, metrics=metrics.runtime, source=self._hub_watches
        )
        self._edge_factory = InformerFactory(edge, ids=ids, metrics=metrics.runtime)
        trust = Trust(records)

        queue = partial(WorkQueue[ObjectRef], backoff=_BACKOFF, ids=ids, metrics=metrics.runtime)
        self.state = SyncerState(
            settings=settings,
            hub=hub,
            edge=edge,
            ids=ids,
            metrics=metrics,
            mailbox=WatchedMailbox(hub_factory),
            config=ConfigView(hub_factory, records, trust),
            hub_types=ServedTypes(hub, hub_factory, ids),
            trust=trust,
            edge_cache=EdgeCache(self._edge_factory),
            edge_types=ServedTypes(edge, self._edge_factory, ids),
            edge_writes=EdgeWrites(edge.clock),
            rights=MissingRights(edge),
            records=records,
            outcomes=Outcomes(metrics),
            causes=Causes(edge, self._edge_factory),
            budget=DeletionBudget(settings.budget, hub.clock, records),
            down=queue("syncer-down"),
            back=queue("syncer-back"),
            up=queue("syncer-up"),
        )
        self._upsync = UpsyncWatches(self.state, self._edge_factory)
        self._reporting = Reporting(self.state, self._upsync.unknown_types)
        self._edge_witness = EdgeWitness(edge, settings.heartbeat_seconds)
        self._heartbeat = Heartbeat(hub, settings, ids, metrics, self._answers, self._reported)
        self._edge_witness.changed.connect(self._over.set)
        self._events = EventHandlers(
            self.state, self._upsync, report=self._reporting.changed, end=self._over.set
        )
        # Once every part exists, for a handler of one uses the others.
        self._events.connect()
        if isinstance(hub.transport, WitnessTransport):
            hub.transport.report_to(trust.saw_header)

    async def run(self) -> None:
        """Work until cancelled, or until one side turns out not to be the one it was.

        What the caches hold then is of a history that has ended: only fresh ones will do.

        Which object is looked at first does not matter: a key whose type has not been read yet
        finds that in its evidence and deletes nothing, so no controller waits for the watches.
        """
        state = self.state
        self._events.start()
        parts = [
            self._hub_watches.run,
            state.mailbox.run,
            self._edge_factory.run,
            state.config.run,
            state.hub_types.run,
            state.edge_types.run,
            self._reporting.run,
            self._heartbeat.run,
            self._edge_witness.run,
            state.rights.run,
            state.causes.run,
            state.budget.run,
            *self._beside,
            *(controller.run for controller in self._controllers()),
        ]
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(part()) for part in parts]
            await self._over.wait()
            for task in working:
                task.cancel()

    def _answers(self) -> bool:
        return self._edge_witness.answers

    async def _reported(self) -> None:
        """Wait until the hub has heard how what is here fares now.

        In the order in which work comes about: what is read enqueues keys of downsync, and what
        downsync finds enqueues keys of the write-back. The caller sets the limit; a queue that is
        added to all the time would never be idle.
        """
        s = self.state
        await s.config.informer.wait_synced()
        await s.mailbox.wait_synced()
        await s.down.wait_idle()
        # Reports that found no hub try again at longer and longer intervals.
        s.back.hasten()
        await s.back.wait_idle()

    def _controllers(self) -> Iterator[Controller[ObjectRef, Any]]:
        """Yield the three controllers: observe, decide, execute."""
        s, workers = self.state, self.state.settings.workers
        down = Reconciler(DownsyncObserver(s).observe, difference, DownsyncExecutor(s))
        yield self._controller("syncer", down, s.down, workers)
        back = Reconciler(WritebackObserver(s).observe, status_writeback, WritebackExecutor(s))
        yield self._controller("syncer-status", back, s.back, _WRITEBACK_WORKERS * workers)
        observer = UpsyncObserver(s, self._upsync)
        up = Reconciler(observer.observe, upsync, UpsyncExecutor(s, observer))
        yield self._controller("syncer-upsync", up, s.up, workers)

    def _controller(
        self,
        name: str,
        reconciler: Reconciler[ObjectRef, Any],
        queue: WorkQueue[ObjectRef],
        workers: int,
    ) -> Controller[ObjectRef, Any]:
        s = self.state
        return Controller(
            name, reconciler, queue, ids=s.ids, workers=workers, metrics=s.metrics.runtime
        )
