"""Wiring: three loops over shared caches.

The loops have queues of their own because they differ in urgency: a mailbox that is missing keeps
an edge out, a heartbeat that is late makes one look dead, and numbers may wait. All three are
enqueued by the same Workspaces and SyncTargets, which are therefore watched once.

    mailbox-controller              by SyncTarget: its Workspace, the mark and the APIBinding
    mailbox-controller-heartbeats   by mailbox: the time and the duration of the Lease in it
    mailbox-controller-standings    by mailbox: what its SyncerConfig reports

Of an edge nothing is remembered but when its numbers were passed on (``PassedOn``): after a restart
some are passed on sooner than they would have been. Everything else is compared with what is there.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from skerry.api.edge import HEARTBEAT_LEASE, SYNCER_CONFIGS, Mailbox
from skerry.api.kcp.resources import API_BINDINGS, SYNC_TARGETS, WORKSPACES
from skerry.controllers.mailbox import relay, standing
from skerry.controllers.mailbox.decide import decide
from skerry.controllers.mailbox.events import (
    BY_CONTENT,
    BY_UID,
    NAME,
    by_content,
    by_uid,
    enqueue_on_binding,
    enqueue_on_sync_target,
    enqueue_on_workspace,
    lean_binding,
)
from skerry.controllers.mailbox.logging_executor import MailboxExecutor
from skerry.controllers.mailbox.observe import Observed, Observer, Provider
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.heartbeat import LEASES, lean_lease
from skerry.logic.fleet.placement.records import lean_mailbox, lean_sync_target
from skerry.runtime.client import Selection
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.workqueue import WorkQueue

# The first mailbox controller's own default. A mailbox is few requests, and they come seldom.
WORKERS = 4
_HEARTBEATS = Selection(fields=f"metadata.name={HEARTBEAT_LEASE}")

_log = Logger()


@dataclass(frozen=True, slots=True)
class Views:
    """Where the controller reads, and the client it writes with.

    ``base`` reaches every workspace and has no cluster of its own; ``provider`` follows the
    provider workspace; ``everywhere`` sees the Leases of all workspaces, None where nobody may.
    """

    base: ControllerContext
    provider: InformerFactory
    workload: InformerFactory
    edge: InformerFactory
    everywhere: InformerFactory | None


class MailboxController:
    """The three loops, mailboxes, heartbeats and standings, and what they share."""

    def __init__(self, views: Views, provider: Provider, *, workers: int = WORKERS) -> None:
        self._views = views
        workload, edge = views.workload, views.edge
        self._targets = workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
        self._workspaces = views.provider.informer(WORKSPACES, transform=lean_mailbox, packed=True)
        self._bindings = edge.informer(API_BINDINGS, transform=lean_binding, packed=True)
        self._targets.index.add_index(BY_UID, by_uid)
        self._workspaces.index.add_index(BY_CONTENT, by_content)
        self.queue: WorkQueue[Mailbox] = views.base.queue(NAME)
        self._mailboxes = self._mailbox_loop(provider, workers)
        self._heartbeats = self._heartbeat_loop()
        self._standings = self._standing_loop()

    def _mailbox_loop(self, provider: Provider, workers: int) -> Controller[Mailbox, Observed]:
        base = self._views.base
        observer = Observer(provider, base.client, self._targets, self._workspaces, self._bindings)
        executor = MailboxExecutor(
            base.client, self._mailbox_name, metrics=base.metrics, dry_run=base.dry_run
        )
        self._targets.add_handler(enqueue_on_sync_target(self.queue.add))
        self._workspaces.add_handler(enqueue_on_workspace(self.queue.add))
        self._bindings.add_handler(enqueue_on_binding(self._workspaces, self.queue.add))
        reconciler = Reconciler(observer.observe, decide, executor)
        return base.controller(NAME, reconciler, self.queue, self._informers(), workers)

    def _heartbeat_loop(self) -> Controller[relay.MailboxContent, relay.Heartbeat] | None:
        """Return the loop for heartbeats; None where Leases of all workspaces cannot be seen."""
        base, everywhere = self._views.base, self._views.everywhere
        if everywhere is None:
            return None
        leases = everywhere.informer(LEASES, _HEARTBEATS, transform=lean_lease, packed=True)
        queue: WorkQueue[relay.MailboxContent] = base.queue(f"{NAME}-heartbeats")
        leases.add_handler(relay.enqueue_on_lease(queue.add))
        self._workspaces.add_handler(relay.enqueue_on_mailbox(queue.add))
        clock = base.client.clock
        times = relay.RelayTimes(clock)
        self._targets.add_handler(times.sync_target_changed)
        observer = relay.HeartbeatObserver(leases, self._workspaces, self._targets, times.age)
        reconciler = Reconciler(
            observer.observe,
            lambda observed: relay.decide(observed, clock.now()),
            relay.HeartbeatExecutor(base.client, NAME, metrics=base.metrics, dry_run=base.dry_run),
        )
        return base.controller(
            f"{NAME}-heartbeats",
            reconciler,
            queue,
            [*self._informers(), leases],
            relay.WORKERS,
        )

    def _standing_loop(self) -> Controller[relay.MailboxContent, standing.Standing]:
        base = self._views.base
        configs = self._views.edge.informer(
            SYNCER_CONFIGS, transform=standing.lean_config, packed=True
        )
        name = f"{NAME}-standings"
        queue: WorkQueue[relay.MailboxContent] = base.queue(name)
        configs.add_handler(standing.enqueue_on_report(queue.add))
        self._workspaces.add_handler(relay.enqueue_on_mailbox(queue.add))
        clock = base.client.clock
        passed_on = standing.PassedOn(clock)
        self._targets.add_handler(passed_on.sync_target_changed)
        observer = standing.StandingObserver(
            configs, self._workspaces, self._targets, passed_on.due
        )
        reconciler = Reconciler(
            observer.observe,
            lambda observed: standing.decide(observed, clock.now()),
            base.executor(NAME, overlay=passed_on),
        )
        return base.controller(name, reconciler, queue, [*self._informers(), configs])

    def _informers(self) -> list[Informer]:
        return [self._targets, self._workspaces, self._bindings]

    def _mailbox_name(self, content: str) -> str:
        """Return the mailbox with that content, for the log; empty where it has gone meanwhile."""
        found = self._workspaces.index.by(BY_CONTENT, content)
        return str(found[0]["metadata"]["name"]) if found else ""

    async def run(self) -> None:
        """Work until cancelled.

        The loops wait for their informers by themselves; it is waited here for the log line alone.
        """
        for informer in self._informers():
            await informer.wait_synced()
        _log.info("Informers synced", v=2)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mailboxes.run())
            if self._heartbeats is not None:
                tasks.create_task(self._heartbeats.run())
            tasks.create_task(self._standings.run())
            if self._views.base.recorder is not None:
                tasks.create_task(self._views.base.recorder.run())
