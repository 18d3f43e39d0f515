"""Wiring: informers feed the tables, ``difference`` enqueues mailboxes, one loop writes to them.

Parts are built in the order in which they depend on each other: queues, the tables whose rows
enqueue, the handlers that write them, the loops that read them. Where two need each other the later
one is given to the earlier as a function, called only once there are events: a row that waits for a
watch has the handlers follow it, and what it shows comes back to the same handlers.

All loops share the tables without a lock, on one event loop. An observer reads the rows of a
mailbox, waits for the server, and compares numbers afterwards: a row that was marked again
meanwhile is evaluated again (``fleet.translation.dirty``). The one lock there is keeps a sweep and
a cut apart, because a cut writes contents before it writes the revision that names them, and to a
sweep in between they would be nobody's.

Of one informer the handlers run in the order of ``_listen``. Guards hear of a placement first, so
that what they hold is known when its rows are marked.

What an export does not offer has no loop: without Rollouts every destination has what its workspace
has now, without LocationConsents nothing is held object by object. Such hubs are of an earlier
version, and behave as that one did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from skerry.api.edge import (
    SYNCER_CONFIG_NAME,
    Mailbox,
)
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.activity import Activities
from skerry.controllers.placement_translator.consent import GrantedPlaces
from skerry.controllers.placement_translator.contents import ContentReader
from skerry.controllers.placement_translator.cutting import (
    CutExecutor,
    CutObserver,
    decide_cut,
    manager_at,
)
from skerry.controllers.placement_translator.decide import decide
from skerry.controllers.placement_translator.events import NAME, EventHandlers
from skerry.controllers.placement_translator.executor import MailboxExecutor
from skerry.controllers.placement_translator.feeds import Feeds, WatchSet
from skerry.controllers.placement_translator.guards import GuardedObjects, ReleasingExecutor
from skerry.controllers.placement_translator.held import (
    HeldObjects,
    HoldsExecutor,
    HoldsObserver,
    ObservedHolds,
    Patience,
    decide_holds,
)
from skerry.controllers.placement_translator.inputs import BY_PLACEMENT, Inputs, Views
from skerry.controllers.placement_translator.marking import TranslatorTables
from skerry.controllers.placement_translator.object_history import (
    HistoryExecutor,
    HistoryObserver,
    ObjectHistory,
    ObjectHistorySettings,
    ObservedObjects,
    decide_history,
)
from skerry.controllers.placement_translator.observe import Observer
from skerry.controllers.placement_translator.paths import WorkspacePaths
from skerry.controllers.placement_translator.settings import TranslatorSettings
from skerry.controllers.placement_translator.startup import Startup, sweep_when_read
from skerry.controllers.placement_translator.status import (
    PlacementProblems,
    StatusObserver,
    decide_status,
    withheld_of,
)
from skerry.controllers.placement_translator.sweeping import Sweeper
from skerry.kit.invariant import InvariantError
from skerry.kit.log import Logger
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.logic.fleet.revision.noted import noted
from skerry.logic.fleet.translation.desired import Desired
from skerry.logic.fleet.translation.difference import Accepted, Difference
from skerry.logic.fleet.translation.dirty import CONFIG, DirtyRows
from skerry.logic.fleet.translation.route import Route
from skerry.logic.fleet.translation.sources import WatchKey
from skerry.logic.fleet.translation.workspaces import CONTENT, PATH, Mailboxes, Scope, Workspaces
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.runtime.client import EVERYWHERE, Client, cluster_of
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.events import EventRecorder
from skerry.runtime.execute import Announce, Executor
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.workqueue import WorkQueue

_STATUS_WORKERS = 4
_CUT_WORKERS = 4
_HISTORY_WORKERS = 2
# Reports of inventory workspaces gather what a burst of changes brings.
_REPORT_WORKERS = 2
_REPORT_SECONDS = 0.2

_log = Logger(NAME)


class PlacementTranslator:
    """Everything that takes part, and the loops: mailboxes, conditions, reports on grants."""

    def __init__(self, views: Views, settings: TranslatorSettings) -> None:
        context = views.everywhere
        self._context = context
        self._settings = settings
        self._granting = views.granting
        self._recorder = EventRecorder(context.client, NAME, metrics=context.metrics)
        self.queue: WorkQueue[Mailbox] = context.queue(NAME)
        self.status_queue: WorkQueue[ObjectRef] = context.queue(f"{NAME}-status")
        self.consent_queue: WorkQueue[ClusterName] = context.queue(f"{NAME}-consent")
        self.cut_queue: WorkQueue[ObjectRef] = context.queue(f"{NAME}-revisions")
        self._inputs = inputs = Inputs(views)
        workspaces = Workspaces(inputs.schema_table)
        self.tables = TranslatorTables(
            workspaces, Route(workspaces), Mailboxes(), DirtyRows(self.queue.add)
        )
        self.consent = GrantedPlaces()
        self.held = HeldObjects(lambda key: self.consent_queue.add_after(key, _REPORT_SECONDS))
        self.problems = PlacementProblems(self._problems_changed)
        self.activities = Activities(context.client.clock.monotonic, self.cut_queue.add_after)
        self._watches = WatchSet()
        self.history_queue: WorkQueue[ObjectRef] = context.queue(f"{NAME}-history")
        self._history = ObjectHistory(self.history_queue.add_after) if views.history else None
        self._handlers = EventHandlers(
            self.tables,
            self._watches,
            self.problems,
            self.consent,
            self.held,
            self.activities,
            slices=lambda placement: inputs.slices.index.by(BY_PLACEMENT, placement),
            locations=inputs.locations.index.objects,
            enqueue_status=self._enqueue_status,
            follow_grants=self._follow_grants,
            history=self._history,
        )
        self.guards = self._guarded(views.exporter)
        self._guarded_workspaces: Informer | None = None
        self._feeds = Feeds(
            context.client, context.ids, context.metrics, self._watches, workspaces, self._handlers
        )
        self._paths = WorkspacePaths(context.client, context.ids, self._handlers.path_read)
        self._contents = ContentReader(
            views.edge.client, self._handlers.content_read, self.tables.dirty.scopes.is_awaited
        )
        self._startup = Startup(
            context.client.for_cluster(SYSTEM_ADMIN),
            context.ids,
            workspaces,
            self._handlers,
            inputs.schemas,
        )
        self._listen()
        # A sweep and a cut are never under way at once.
        self._writing = asyncio.Lock()
        self._sweeper: Sweeper | None = None
        self._loops = self._built_loops(views, (context.recorder or self._recorder).announce)
        if inputs.rollouts is not None:
            self._sweeper = self._new_sweeper(views.edge.client, inputs.rollouts)

    def _built_loops(self, views: Views, announce: Announce) -> list[Controller[Any, Any]]:
        inputs = self._inputs
        found = [self._mailbox_loop(), self._status_loop(announce)]
        if inputs.consents is not None:
            found.append(self._report_loop(inputs.consents, announce))
        if views.history is not None and self._history is not None:
            found.append(self._history_loop(self._history, views.history, views.edge.client))
        if inputs.rollouts is not None:
            found.append(self._cut_loop(views.edge.client))
        return found

    def _guarded(self, exporter: ClusterName | None) -> GuardedObjects:
        return GuardedObjects(
            self.tables.workspaces,
            self.tables.route,
            self._context.client.clock.now,
            self._handlers.mark,
            self._enqueue_status,
            exporter or "",
        )

    def _listen(self) -> None:
        handlers, inputs = self._handlers, self._inputs
        inputs.schemas.add_handler(handlers.schema_changed)
        inputs.locations.add_handler(handlers.location_changed)
        inputs.customizers.add_handler(handlers.customizer_changed)
        inputs.mailboxes.add_handler(handlers.workspace_changed)
        inputs.configs.add_handler(handlers.config_changed)
        inputs.slices.add_handler(handlers.slice_changed)
        inputs.placements.add_handler(self.guards.placement_changed)
        inputs.placements.add_handler(handlers.placement_changed)
        if inputs.guards is not None:
            inputs.guards.add_handler(self._guard_changed)
        if inputs.grants is not None and inputs.consents is not None:
            inputs.grants.add_handler(handlers.grant_changed)
            inputs.consents.add_handler(handlers.consent_changed)
            inputs.consents.add_handler(self._consent_changed)
        # Where the export offers no Rollouts, every destination has what its workspace has now.
        if inputs.rollouts is not None and inputs.revisions is not None:
            inputs.rollouts.add_handler(handlers.rollout_changed)
            inputs.revisions.add_handler(handlers.revision_changed)

    def _consent_changed(self, old: Object | None, new: Object | None) -> None:
        """Enqueue the report: it may be there for the first time, or have a confirmation."""
        about = new or old
        if about is not None:
            self.consent_queue.add(cluster_of(about))

    def _guard_changed(self, old: Object | None, new: Object | None) -> None:
        """Take a guard; from the first one on, follow the labels that guards select by."""
        if self._guarded_workspaces is None and self._granting is not None:
            found = self._granting.tenancy.informer(
                WORKSPACES, transform=lean_workspace, packed=True
            )
            found.add_handler(self.guards.workspace_changed)
            self._guarded_workspaces = found
        self.guards.guard_changed(old, new)

    def _follow_grants(self) -> None:
        """Follow what grants depend on, from the first of them on."""
        granting = self._granting
        if granting is None:
            raise InvariantError("a grant, and no view of what grants depend on")
        workspaces = granting.tenancy.informer(WORKSPACES, transform=lean_workspace, packed=True)
        targets = granting.workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
        workspaces.add_handler(self._handlers.granted_workspace_changed)
        targets.add_handler(self._handlers.sync_target_changed)
        self._startup.grants_depend_on([workspaces, targets])

    def _follow(self, scope: Scope) -> None:
        """Have what rows wait for read, where that does not happen by itself."""
        if isinstance(scope, WatchKey):
            self._handlers.follow(scope)
        elif scope[0] == PATH:
            self._paths.read(scope[1])
        elif scope[0] == CONTENT:
            self._contents.read(scope)

    # -- loops -------------------------------------------------------------------------------

    def _mailbox_loop(self) -> Controller[Any, Any]:
        context, inputs, tables = self._context, self._inputs, self.tables
        accepted: Accepted = {}
        desired = Desired(
            tables.workspaces,
            tables.route,
            tables.mailboxes,
            self.consent,
            lambda *key: inputs.customizers.index.get(Key(*key)),
            lambda *key: inputs.locations.index.get(Key(*key)),
            self._stays,
            self._settings.strict_customization,
            self._settings.withhold_denatured,
            tables.revisions,
        )
        difference = Difference(
            tables.workspaces,
            desired,
            self.consent,
            self.held,
            accepted,
            self._config,
            tables.dirty.scopes,
            tables.dirty.unsettled,
        )
        executor = MailboxExecutor(
            context.client,
            tables,
            self.problems,
            self.held,
            accepted,
            lambda mailbox, item: desired.at(mailbox).senders(item),
            self._follow,
            judged=self.guards.note,
            notes=lambda mailbox: self._note(difference, mailbox),
            metrics=context.metrics,
            dry_run=context.dry_run,
        )
        observer = Observer(
            context.client, difference, tables.dirty, tables.mailboxes, self.guards.judged
        )
        return context.controller(
            NAME,
            Reconciler(observer.observe, decide, executor),
            self.queue,
            inputs.all,
            self._settings.concurrency,
        )

    def _status_loop(self, announce: Announce) -> Controller[Any, Any]:
        context, clock = self._context, self._context.client.clock
        observer = StatusObserver(
            self._inputs.placements, self.problems, self._mailboxes_of, self.guards.book
        )
        executor = ReleasingExecutor(
            context.client,
            NAME,
            self.guards.release,
            metrics=context.metrics,
            dry_run=context.dry_run,
            announce=announce,
        )
        reconciler = Reconciler(
            observer.observe, lambda observed: decide_status(observed, clock.now()), executor
        )
        return context.controller(
            f"{NAME}-status", reconciler, self.status_queue, self._inputs.all, _STATUS_WORKERS
        )

    def _report_loop(self, consents: Informer, announce: Announce) -> Controller[Any, Any]:
        context, clock = self._context, self._context.client.clock
        executor = HoldsExecutor(
            context.client,
            self.held,
            lambda mailbox, items: self._handlers.mark(mailbox, {*items, CONFIG}),
            NAME,
            metrics=context.metrics,
            announce=announce,
            dry_run=context.dry_run,
        )
        reconciler: Reconciler[ClusterName, ObservedHolds] = Reconciler(
            HoldsObserver(self.held, consents, self.consent.path, self._patience()).observe,
            lambda observed: decide_holds(observed, clock.now()),
            executor,
        )
        return context.controller(
            f"{NAME}-consent", reconciler, self.consent_queue, self._inputs.all, _REPORT_WORKERS
        )

    def _patience(self) -> Patience:
        """Have reports wait until rows of their mailboxes are evaluated, for a while (``held``)."""
        return Patience(
            self.tables.dirty.is_settled,
            lambda key: self.consent_queue.add_after(key, _REPORT_SECONDS),
            self._context.client.clock.monotonic,
        )

    def _cut_loop(self, client: Client) -> Controller[Any, Any]:
        context, inputs, tables = self._context, self._inputs, self.tables
        observer = CutObserver(
            context.client,
            tables,
            self.activities,
            lambda ref: inputs.placements.index.get(Key(ref.cluster, "", ref.name)),
            lambda *key: inputs.customizers.index.get(Key(*key)),
            self.cut_queue.add_after,
        )
        executor = CutExecutor(
            client,
            tables,
            NAME,
            self._writing,
            metrics=context.metrics,
            dry_run=context.dry_run,
        )
        reconciler = Reconciler(observer.observe, decide_cut, executor)
        return context.controller(
            f"{NAME}-revisions", reconciler, self.cut_queue, inputs.all, _CUT_WORKERS
        )

    def _history_loop(
        self, history: ObjectHistory, settings: ObjectHistorySettings, client: Client
    ) -> Controller[Any, Any]:
        context, inputs, tables = self._context, self._inputs, self.tables
        inputs.placements.add_handler(history.placement_changed)
        observer = HistoryObserver(
            client,
            history,
            settings.limits,
            lambda ref: inputs.placements.index.get(Key(ref.cluster, "", ref.name)),
            lambda ref: withheld_of(self.problems, ref, list(self._mailboxes_of(ref))),
            lambda ref: len(tables.route.destination.of(ref)),
            lambda cluster, item: manager_at(context.client, tables, cluster, item),
        )
        executor = HistoryExecutor(
            history, client, NAME, metrics=context.metrics, dry_run=context.dry_run
        )
        maker, clock = Maker(NAME, settings.version), client.clock
        reconciler: Reconciler[ObjectRef, ObservedObjects] = Reconciler(
            observer.observe,
            lambda observed: decide_history(observed, maker, clock.now()),
            executor,
        )
        return context.controller(
            f"{NAME}-history", reconciler, self.history_queue, inputs.all, _HISTORY_WORKERS
        )

    def _new_sweeper(self, client: Client, rollouts: Informer) -> Sweeper:
        context, slices = self._context, self._inputs.slices
        executor = Executor(client, NAME, metrics=context.metrics, dry_run=context.dry_run)
        return Sweeper(
            client.for_cluster(EVERYWHERE),
            executor,
            self._writing,
            slices.index.objects,
            rollouts.index.objects,
        )

    async def run(self) -> None:
        """Translate until cancelled; may be run again afterwards, as leadership comes and goes."""
        self.held.forget_released()
        if self._history is not None:
            self._history.clear()
        self.guards.start()
        self.tables.dirty.enqueue_all()
        for placement in self.tables.route:
            self._enqueue_status(placement)
        _log.info("Waiting for caches to sync for placement-translator", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._inputs.wide.run())
            tasks.create_task(self._feeds.run())
            tasks.create_task(self._paths.run())
            tasks.create_task(self._startup.run())
            tasks.create_task(self._recorder.run())
            tasks.create_task(self._contents.run())
            if self._sweeper is not None:
                tasks.create_task(sweep_when_read(self._sweeper, self._inputs.all))
            for loop in self._loops:
                tasks.create_task(loop.run())

    # -- asking ------------------------------------------------------------------------------

    def _config(self, cluster: ClusterName) -> Object | None:
        """Return the SyncerConfig of a mailbox."""
        return self._inputs.configs.index.get(Key(cluster, "", SYNCER_CONFIG_NAME))

    def _note(self, difference: Difference, mailbox: Mailbox) -> str:
        """Return which revisions a mailbox is at, unless its SyncerConfig says so."""
        cluster = self.tables.mailboxes.cluster(mailbox)
        live = self._config(cluster) if cluster is not None else None
        note = difference.note(difference.desired.at(mailbox), live)
        return "" if live is None or noted(live) == note else note

    def _problems_changed(self, placement: ObjectRef) -> None:
        self._enqueue_status(placement)
        if self._history is not None:
            self._history.problems_changed(placement)

    def _enqueue_status(self, placement: ObjectRef) -> None:
        self.status_queue.add_after(placement, self._settings.status_delay_seconds)

    def _stays(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        """Tell whether a mailbox has a copy whose removal nobody has confirmed."""
        cluster = self.tables.mailboxes.cluster(mailbox)
        record = self.tables.workspaces.record(cluster, item) if cluster is not None else None
        there = record is not None and record.projected and not record.being_deleted
        return there and not self.held.is_released(mailbox, item)

    def _mailboxes_of(self, placement: ObjectRef) -> Iterable[Mailbox]:
        """Return the mailboxes there are at a placement's destinations."""
        mailboxes = self.tables.mailboxes
        found = self.tables.route.destination.of(placement)
        return [mailbox for mailbox in found if mailboxes.cluster(mailbox) is not None]


def build(views: Views, settings: TranslatorSettings | None = None) -> PlacementTranslator:
    """Return the placement translator."""
    return PlacementTranslator(views, settings or TranslatorSettings())
