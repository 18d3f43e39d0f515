"""One session: from becoming this edge's syncer until that ends.

Builds the caches, says which event wakes which key, and runs everything side by side. All that
survives a session is the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from skerry.api.edge import ACCEPT_STORE_IDENTITY, APPROVE_DELETIONS, EDGE_FIELD_MANAGER
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.config import ConfigView
from skerry.edge.syncer.downsync import Downsync
from skerry.edge.syncer.edge_view import EdgeView
from skerry.edge.syncer.edge_witness import EdgeWitness
from skerry.edge.syncer.gate import DeletionGate
from skerry.edge.syncer.heartbeat import Heartbeat
from skerry.edge.syncer.mailbox import WatchedMailbox
from skerry.edge.syncer.memory import Memory
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.outcomes import Outcomes
from skerry.edge.syncer.reporting import Reporting
from skerry.edge.syncer.returning import Returning
from skerry.edge.syncer.rights import MissingRights
from skerry.edge.syncer.served import Served
from skerry.edge.syncer.state import SyncerSettings, SyncerState
from skerry.edge.syncer.trust import Trust, WitnessTransport
from skerry.edge.syncer.upsync import Upsync
from skerry.kit.ids import IdSource
from skerry.logic.fleet.syncing.projection import OURS
from skerry.logic.machinery.plan import NOTHING
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.execute import Executor
from skerry.runtime.informer import InformerFactory
from skerry.runtime.multiplex import MultiplexedWatches
from skerry.runtime.workqueue import WorkQueue

# An object refused once may be fine in a moment; one refused for an hour is a person's concern.
_RETURNING = 8
_BACKOFF = Backoff(min_seconds=0.1, max_seconds=60.0, jitter=0.5)


class Session:
    """Everything of one session; ``run`` it once."""

    def __init__(
        self,
        settings: SyncerSettings,
        hub: Client,
        edge: Client,
        memory: Memory,
        ids: IdSource,
        metrics: SyncerMetrics,
    ) -> None:
        """*hub* must go through a ``WitnessTransport`` for stores to be told apart."""
        self._hub_watches = MultiplexedWatches(hub, ids)
        self._hub_factory = InformerFactory(
            hub, ids=ids, metrics=metrics.runtime, source=self._hub_watches
        )
        self._edge_factory = InformerFactory(edge, ids=ids, metrics=metrics.runtime)
        trust = Trust(memory, self._trust_changed)
        queues = [
            WorkQueue[ObjectRef](name, backoff=_BACKOFF, ids=ids, metrics=metrics.runtime)
            for name in ("syncer-down", "syncer-back", "syncer-up")
        ]
        self.state = SyncerState(
            settings=settings,
            hub=hub,
            edge=edge,
            ids=ids,
            metrics=metrics,
            memory=memory,
            trust=trust,
            gate=DeletionGate(settings.budget, hub.clock, self._gate_changed, memory.edge_uid),
            outcomes=Outcomes(metrics, self._report),
            config=ConfigView(self._hub_factory, memory, trust, self._config_changed),
            mailbox=WatchedMailbox(
                self._hub_factory, self._mailbox_changed, self._mailbox_completed
            ),
            view=EdgeView(self._edge_factory, self._edge_changed),
            rights=MissingRights(edge, self._right_granted),
            served_hub=Served(hub, self._hub_factory, ids, self._types_changed),
            served_edge=Served(edge, self._edge_factory, ids, self._edge_types_changed),
            down=queues[0],
            back=queues[1],
            up=queues[2],
        )
        self._down = Downsync(self.state)
        self._back = Returning(self.state)
        self._up = Upsync(self.state, self._edge_factory)
        self._reporting = Reporting(self.state, self._up.unknown)
        self._heartbeat = Heartbeat(hub, settings, ids, metrics)
        self._store = trust.known
        self._answering = ""
        self._configured = False
        self._over = asyncio.Event()
        self._edge_witness = EdgeWitness(edge, settings.heartbeat_seconds, self._over.set)
        if isinstance(hub.transport, WitnessTransport):
            hub.transport.tell = trust.saw_header

    async def run(self) -> None:
        """Work until cancelled, or until one side turns out to be another one than it was.

        What the caches hold then is of a history that is no longer told: only fresh ones will do.
        """
        state = self.state
        self._follow()
        self._add(state.memory.all_placed())
        parts = [
            self._hub_watches.run,
            state.mailbox.run,
            self._edge_factory.run,
            state.config.run,
            state.served_hub.run,
            state.served_edge.run,
            self._reporting.run,
            self._heartbeat.run,
            self._edge_witness.run,
            state.rights.run,
            *(controller.run for controller in self._controllers()),
        ]
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(part()) for part in parts]
            await self._over.wait()
            for task in working:
                task.cancel()

    def _controllers(self) -> Iterable[Controller[ObjectRef, None]]:
        s = self.state
        workers = s.settings.workers
        steps = (
            ("syncer", s.down, self._down.reconcile, workers),
            # What is ready to go back at the same time can travel together.
            ("syncer-status", s.back, self._back.reconcile, _RETURNING * workers),
            ("syncer-upsync", s.up, self._up.reconcile, workers),
        )
        for name, queue, reconcile, count in steps:
            executor = Executor(s.edge, EDGE_FIELD_MANAGER, metrics=s.metrics.runtime)
            # The step is observed, decided and executed in one place: nothing is left to decide.
            reconciler: Reconciler[ObjectRef, None] = Reconciler(
                reconcile, lambda _: NOTHING, executor
            )
            yield Controller(
                name,
                reconciler,
                queue,
                ids=s.ids,
                workers=count,
                metrics=s.metrics.runtime,
            )

    # Which event wakes which key.

    def _add(self, refs: Iterable[ObjectRef]) -> None:
        for ref in refs:
            self.state.down.add(ref)

    def _mailbox_changed(self, ref: ObjectRef, old: Object | None, new: Object | None) -> None:
        s = self.state
        if new is None and s.memory.was_placed(ref) and s.trust.trusted:
            s.gate.name((ref,), s.memory.placed_count)
        if s.config.scope.covers(ref) or s.memory.was_placed(ref):
            s.down.add(ref)
            if old is not None and new is not None:
                s.back.add_after(ref, s.settings.return_seconds)
        if old is None or new is None:
            self._up.name_touched(ref)

    def _mailbox_completed(self, kind: GroupResource) -> None:
        """A type was read completely: what it lacks of our records may have to go."""
        s = self.state
        ours = [ref for ref in s.memory.all_placed() if ref.group_resource == kind]
        missing = [ref for ref in ours if s.mailbox.get(ref) is None]
        if missing and s.trust.trusted and s.config.configured:
            s.gate.name(missing, s.memory.placed_count)
        self._add(ours)
        self._up.touch(kind)
        self._accept_if_harmless()

    def _edge_changed(self, ref: ObjectRef, old: Object | None, new: Object | None) -> None:
        s = self.state
        self._down.edge_touched(ref, old, new)
        if s.memory.was_placed(ref) or s.mailbox.get(ref) is not None:
            s.down.add(ref)
            s.back.add_after(ref, s.settings.return_seconds)
        elif new is not None and new.get(OURS):
            s.down.add(ref)  # a record was lost: the hub is told of an object nobody answers for

    def _config_changed(self) -> None:
        s = self.state
        s.gate.approve(s.config.annotation(APPROVE_DELETIONS))
        if s.trust.current and s.config.annotation(ACCEPT_STORE_IDENTITY) == s.trust.current:
            s.trust.accept()
        self._follow()
        dropped = [ref for ref in s.memory.all_placed() if not s.config.scope.covers(ref)]
        if dropped and s.trust.trusted and s.config.configured:
            s.gate.name(dropped, s.memory.placed_count)
        self._add(dropped)
        if s.config.configured and not self._configured:
            # Types read before the SyncerConfig was have said what they lack to deaf ears.
            for kind in s.config.scope.types():
                if s.mailbox.synced(kind):
                    self._mailbox_completed(kind)
        self._configured = s.config.configured
        # What came into scope only now was seen before without being wanted.
        self._add(ref for ref in s.mailbox.refs() if not s.memory.was_placed(ref))
        self._up.adjust()
        self._expect()
        self._report()

    def _expect(self) -> None:
        """Say which types the mailbox should have, for a hub that tells of none by itself."""
        s = self.state
        named = s.config.scope.unserved(())
        upsynced = [gvr for gvr in self._up.followed() if gvr.group_resource in named]
        s.served_hub.expect([*s.config.scope.types().values(), *upsynced])

    def _follow(self) -> None:
        """Follow the types the scope names, as far as the mailbox has them."""
        s = self.state
        types = s.config.scope.types()
        if s.served_hub.known:
            types = {kind: gvr for kind, gvr in types.items() if s.served_hub.find(gvr)}
        s.mailbox.follow(types)

    def _types_changed(self) -> None:
        self._follow()
        self._up.touch_all()
        for ref in self.state.memory.all_raised():
            self.state.up.add(ref)
        self._report()

    def _edge_types_changed(self) -> None:
        s = self.state
        self._add(
            ref for ref, outcome in list(s.outcomes.troubled.items()) if outcome.state == "Waiting"
        )
        self._up.adjust()
        self._expect()
        self._report()

    def _right_granted(self, kind: GroupResource, namespace: str) -> None:
        self._add(
            ref
            for ref, outcome in list(self.state.outcomes.troubled.items())
            if outcome.reason == "EdgeForbidden"
            and (ref.group_resource, ref.namespace) == (kind, namespace)
        )

    def _gate_changed(self) -> None:
        self._add(self.state.gate.candidates)
        self._report()

    def _trust_changed(self) -> None:
        if not hasattr(self, "state"):
            return  # the first store is met while the session is put together
        trust = self.state.trust
        if self._answering and trust.current != self._answering:
            self._over.set()
        self._answering = trust.current
        if trust.trusted:
            self._add(self.state.memory.all_placed())
            if self._store != trust.known:
                self._store = trust.known
                self._up.forget_content()
        self._report()

    def _accept_if_harmless(self) -> None:
        """Accept another store that wants everything we placed: nothing hangs on it."""
        s = self.state
        if s.trust.trusted or not s.config.configured:
            return
        kinds = s.config.scope.types()
        if not all(s.mailbox.synced(kind) for kind in kinds):
            return
        lost = (r for r in s.memory.all_placed() if s.mailbox.get(r) is None)
        if next(lost, None) is None and all(map(s.config.scope.covers, s.memory.all_placed())):
            s.trust.accept()

    def _report(self) -> None:
        if hasattr(self, "_reporting"):
            self._reporting.changed()
