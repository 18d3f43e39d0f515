"""Wiring: four loops over one index, built in the order in which parts depend on each other.

The index comes first, since all loops read it and the handlers alone write it. Then whatever the
observers ask beside it: the slices with our own writes on top, the cache of what was found. Then
handlers, which enqueue; then the loops, which begin to read only when they run.

The loops share the index and the cache without any lock. All of it happens on one event loop, and
an observer that must not see two moments waits for nothing between its first and its last look.

Which informers there are depends on what the edge export offers. Before LocationGrants existed
there were none, so a hub of that version has open Locations, and no loop for its reports. Workspace
objects are followed from the first placement on that asks for them, since a hub has many of them:
until they are read, whoever depends on their labels waits, for what is not known is not absent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    PLACEMENT_REVISIONS,
    ROLLOUT_APPROVALS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
    STATUS_QUERIES,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.authors import unverified
from skerry.controllers.edge_scheduler.consent import (
    ConsentExecutor,
    ConsentObserver,
    ConsentState,
    InventoryKey,
    ObservedConsent,
    decide_consent,
)
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.events import EventHandlers
from skerry.controllers.edge_scheduler.guard_status import (
    GuardObserver,
    GuardReports,
    ObservedGuard,
    decide_guard,
)
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.history import Members
from skerry.controllers.edge_scheduler.history_writer import HistoryWriter, recording_of
from skerry.controllers.edge_scheduler.logging_executor import LoggingExecutor
from skerry.controllers.edge_scheduler.observe import BY_PLACEMENT, NAME, Observer, slice_owners
from skerry.controllers.edge_scheduler.observed import Observation, Recording
from skerry.controllers.edge_scheduler.placement_cache import PlacementCache
from skerry.controllers.edge_scheduler.rollouts import (
    ContentFrozen,
    RolloutInformers,
    RolloutState,
    lean_revision,
    revision_owners,
)
from skerry.controllers.edge_scheduler.status import ObservedStatus, StatusObserver, decide_status
from skerry.controllers.edge_scheduler.status_pace import StatusPace
from skerry.kit.log import Logger
from skerry.logic.fleet.guards.freeze import CONTENT, Frozen
from skerry.logic.fleet.history.reasons import why_joined, why_left
from skerry.logic.fleet.history.record import Maker
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.fleet.placement.consent_record import lean_record
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.grants import lean_grant
from skerry.logic.fleet.placement.pages import MAX_DESTINATIONS
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target
from skerry.logic.fleet.placement.slices import (
    lean_slice,
    slice_as_written,
    slice_fingerprint,
)
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.logic.fleet.rollout.clocks import Elapsed
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import Informer, InformerFactory, Transform
from skerry.runtime.workqueue import WorkQueue
from skerry.runtime.write_overlay import InformerOverlay
from skerry.scheduler.placement import location_chooser

# Writes in flight: enough to keep a hub of two cores busy from afar, few enough to be fair.
WORKERS = 16
_STATUS_WORKERS = 4
# Reports of inventory workspaces gather what a burst of changes does to them.
_CONSENT_WORKERS = 2
_CONSENT_AFTER_SECONDS = 0.1
# So do reports of guards.
_GUARD_WORKERS = 1
_GUARD_AFTER_SECONDS = 0.1

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Views:
    """Where the scheduler reads: the views of three exports, and of Workspaces if need be.

    ``has_grants``: the edge export offers LocationGrants. Where it does not, as one of a previous
    version, there are none, and every Location is open. ``has_guards`` says the same of
    PlacementGuards, ``has_rollouts`` and ``has_queries`` of what rollouts need. ``provider`` is
    the logical cluster of the provider workspace, whose guards are for all. ``history``: None where
    no decisions are recorded.
    """

    edge: ControllerContext
    scheduling: InformerFactory
    workload: InformerFactory
    tenancy: InformerFactory
    has_grants: bool = True
    has_guards: bool = True
    provider: str = ""
    history: HistorySettings | None = None
    has_rollouts: bool = True
    has_queries: bool = True


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """How decisions are recorded: how much of them placements keep, and in whose name.

    Absent where the edge export does not offer DecisionRecords, as one of a previous version.
    ``verified``: the hub itself says who changed an object, and overwrites what clients say.
    """

    limits: Limits = field(default_factory=Limits)
    version: str = ""
    verified: bool = True


class EdgeScheduler:
    """The loops for slices, status and consent, and what they share."""

    def __init__(
        self,
        views: Views,
        *,
        workers: int = WORKERS,
        max_destinations: int = MAX_DESTINATIONS,
        floor: bool = True,
        print_line: Callable[[str], None] | None = None,
    ) -> None:
        """*print_line* gets a line for people about each placement that is reconciled.

        *max_destinations* is how many a slice may hold. Without *floor* only guards hold anything.
        """
        self._views = views
        self._print_line = print_line
        edge = views.edge
        self.index = DestinationTable(location_chooser)
        self.queue: WorkQueue[ObjectRef] = edge.queue(NAME)
        self.status_queue: WorkQueue[ObjectRef] = edge.queue(f"{NAME}-status")
        self._statuses = StatusPace(self.queue, self.status_queue, edge.client.clock)
        self.consent_queue: WorkQueue[InventoryKey] = edge.queue(f"{NAME}-consent")
        self.guard_queue: WorkQueue[ObjectRef] = edge.queue(f"{NAME}-guards")
        self._consent = ConsentState(self.index, self._enqueue_consent)
        guards_now = GuardState(self.index, edge.client.clock.now, views.provider, floor=floor)
        self._guards = GuardReports(guards_now, self._enqueue_guard)
        self._workspaces: Informer | None = None
        self._workspaces_asked_for = asyncio.Event()
        members = Members()
        placements, slices = edge.factory.informer(EDGE_PLACEMENTS), self._slices_informer(members)
        self._history = self._history_writer(members, slices)
        overlay = InformerOverlay(
            slices, project=slice_as_written, fingerprint_of=slice_fingerprint
        )
        self._informers: list[Informer] = []
        rollouts = self._rollouts_informers()
        self._cache = PlacementCache(
            self._consent, self._guards.state, self._rollouts(rollouts) if rollouts else None
        )
        self._handlers = self._event_handlers(overlay)
        self._observer = Observer(
            self.index,
            placements,
            overlay,
            self._cache,
            edge.client,
            max_destinations,
            self._recording if self._history is not None else None,
        )
        grants, guards = self._grants(), self._guards_informer()
        if self._cache.rollouts is not None:
            self._cache.rollouts.changed(self._handlers.rollout_changed)
        optional = [*(grants or ()), guards, *(rollouts or ())]
        informers = [each for each in optional if each is not None]
        informers += [*self._inventory(), slices, placements]
        self._informers = informers
        slices.add_handler(self._handlers.slice_changed)
        placements.add_handler(self._handlers.placement_changed)
        self._slices = self._slice_loop(overlay, informers, workers, max_destinations, floor=floor)
        self._status = self._status_loop(informers)
        self._reports = self._report_loops(grants, guards, placements, informers)

    def _event_handlers(self, overlay: InformerOverlay) -> EventHandlers:
        return EventHandlers(
            self.index,
            overlay.take_echo,
            self._cache.causes,
            self.queue.add,
            self._statuses.enqueue,
            self._follow_workspaces,
            self._consent.enqueue,
            self._guards,
            is_started=self._is_started,
            verified=self._views.history is None or self._views.history.verified,
        )

    def _slice_loop(
        self,
        overlay: InformerOverlay,
        informers: list[Informer],
        workers: int,
        max_destinations: int,
        *,
        floor: bool,
    ) -> Controller[ObjectRef, Observation]:
        edge = self._views.edge
        executor = LoggingExecutor(
            edge.client,
            overlay,
            self._cache,
            self._reconciling,
            self._history,
            metrics=edge.metrics,
            dry_run=edge.dry_run,
            announce=edge.recorder.announce if edge.recorder is not None else None,
        )
        reconciler: Reconciler[ObjectRef, Observation] = Reconciler(
            self._observe,
            lambda observed: decide(observed, max_destinations, floor=floor),
            executor,
        )
        return edge.controller(NAME, reconciler, self.queue, informers, workers)

    def _status_loop(self, informers: list[Informer]) -> Controller[ObjectRef, ObservedStatus]:
        edge = self._views.edge
        clock = edge.client.clock
        observer = StatusObserver(
            self._observer.placement, self._cache.result, self._statuses.wait_quiet
        )
        reconciler = Reconciler(
            observer.observe,
            lambda observed: decide_status(observed, clock.now()),
            edge.executor(NAME),
        )
        return edge.controller(
            f"{NAME}-status", reconciler, self.status_queue, informers, _STATUS_WORKERS
        )

    def _report_loops(
        self,
        grants: tuple[Informer, Informer] | None,
        guards: Informer | None,
        placements: Informer,
        informers: list[Informer],
    ) -> list[Controller[Any, Any]]:
        """Return the loops of reports, of what the edge export offers."""
        found: list[Controller[Any, Any]] = []
        if grants is not None:
            found.append(self._consent_loop(*grants, informers))
        if guards is not None:
            found.append(self._guard_loop(guards, placements, informers))
        return found

    def _consent_loop(
        self, grants: Informer, consents: Informer, informers: list[Informer]
    ) -> Controller[InventoryKey, ObservedConsent]:
        edge = self._views.edge
        clock = edge.client.clock
        observer = ConsentObserver(
            self._consent, grants, consents, self._knows_workspaces, self._observer.placement
        )
        executor = ConsentExecutor(
            edge.client,
            self._consent,
            self.queue.add,
            NAME,
            metrics=edge.metrics,
            announce=edge.recorder.announce if edge.recorder is not None else None,
            dry_run=edge.dry_run,
        )
        reconciler = Reconciler(
            observer.observe, lambda observed: decide_consent(observed, clock.now()), executor
        )
        return edge.controller(
            f"{NAME}-consent", reconciler, self.consent_queue, informers, _CONSENT_WORKERS
        )

    def _guard_loop(
        self, guards: Informer, placements: Informer, informers: list[Informer]
    ) -> Controller[ObjectRef, ObservedGuard]:
        edge = self._views.edge
        clock = edge.client.clock
        observer = GuardObserver(
            self._guards,
            self.index,
            guards,
            placements,
            self._has_rollout,
            self._knows_workspaces,
        )
        reconciler = Reconciler(
            observer.observe,
            lambda observed: decide_guard(observed, clock.now()),
            edge.executor(NAME),
        )
        return edge.controller(
            f"{NAME}-guards", reconciler, self.guard_queue, informers, _GUARD_WORKERS
        )

    def _guards_informer(self) -> Informer | None:
        """Follow PlacementGuards, if there can be any."""
        if not self._views.has_guards:
            return None
        guards = self._views.edge.factory.informer(PLACEMENT_GUARDS, transform=lean_grant)
        guards.add_handler(self._handlers.guard_changed)
        return guards

    def _rollouts_informers(self) -> RolloutInformers | None:
        """Follow Rollouts, their revisions and approvals, if there can be any."""
        if not self._views.has_rollouts:
            return None
        factory = self._views.edge.factory
        found = RolloutInformers(
            factory.informer(ROLLOUTS),
            factory.informer(PLACEMENT_REVISIONS, transform=lean_revision),
            factory.informer(ROLLOUT_APPROVALS),
            factory.informer(STATUS_QUERIES) if self._views.has_queries else None,
        )
        for informer in (found.revisions, found.approvals):
            informer.index.add_index(BY_PLACEMENT, revision_owners)
        return found

    def _rollouts(self, informers: RolloutInformers) -> RolloutState:
        clock = self._views.edge.client.clock

        def labels(ref: ObjectRef) -> Mapping[str, str]:
            location = self.index.inventory.location(ref)
            return {} if location is None else location.labels

        elapsed = Elapsed(clock.now, clock.monotonic)
        return RolloutState(
            informers, elapsed, clock.now, labels, self._content_frozen, self._guards.state.goes
        )

    def _content_frozen(self, ref: ObjectRef) -> ContentFrozen | None:
        """Return what says until when guards freeze content at Locations; None: nothing does."""
        placement = self._observer.placement(ref)
        if placement is None:
            return None
        guards = self._guards.state.of(ref, placement)
        frozen = Frozen(guards, self._views.edge.client.clock.now())
        return (lambda labels: frozen.stopping(CONTENT, labels).until) if frozen else None

    def _has_rollout(self, ref: ObjectRef) -> bool:
        rollouts = self._cache.rollouts
        return rollouts is not None and rollouts.rollout(ref) is not None

    def _grants(self) -> tuple[Informer, Informer] | None:
        """Follow LocationGrants and LocationConsents, if there can be any."""
        if not self._views.has_grants:
            return None
        factory, handlers = self._views.edge.factory, self._handlers
        consents = factory.informer(LOCATION_CONSENTS, transform=lean_record)
        grants = factory.informer(LOCATION_GRANTS, transform=lean_grant)
        consents.add_handler(handlers.consent_changed)
        grants.add_handler(handlers.grant_changed)
        return grants, consents

    def _history_writer(self, members: Members, slices: Informer) -> HistoryWriter | None:
        settings, edge = self._views.history, self._views.edge
        if settings is None:
            return None
        return HistoryWriter(
            edge.client,
            Maker(NAME, settings.version),
            members,
            slices.index.objects,
            metrics=edge.metrics,
            dry_run=edge.dry_run,
            limits=settings.limits,
            verified=settings.verified,
        )

    def _recording(self, ref: ObjectRef, placement: Object) -> Recording | None:
        if self._history is None:
            return None
        return recording_of(
            self._history,
            partial(why_joined, self.index, ref),
            partial(why_left, self.index, ref),
            placement,
        )

    def _is_started(self) -> bool:
        """Tell whether events are changes, and not what was there when we started."""
        return bool(self._informers) and all(each.synced.is_set() for each in self._informers)

    def _slices_informer(self, members: Members) -> Informer:
        transform = members.lean if self._views.history is not None else lean_slice
        slices = self._views.edge.factory.informer(SINGLE_PLACEMENT_SLICES, transform=transform)
        slices.index.add_index(BY_PLACEMENT, slice_owners)
        return slices

    def _inventory(self) -> list[Informer]:
        views, handlers = self._views, self._handlers
        location: Transform = lean_location
        target: Transform = lean_sync_target
        if not handlers.verified:
            location, target = unverified(location), unverified(target)
        locations = views.scheduling.informer(LOCATIONS, transform=location, packed=True)
        targets = views.workload.informer(SYNC_TARGETS, transform=target, packed=True)
        locations.add_handler(handlers.location_changed)
        targets.add_handler(handlers.sync_target_changed)
        return [locations, targets]

    async def run(self) -> None:
        """Work until cancelled; may be run again afterwards, as leadership comes and goes."""
        self._consent.begin()
        self._cache.begin()
        if self._history is not None:
            self._history.clear()
        _log.info("starting controller", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._slices.run())
            tasks.create_task(self._status.run())
            for loop in self._reports:
                tasks.create_task(loop.run())
            if self._views.edge.recorder is not None:
                tasks.create_task(self._views.edge.recorder.run())
            tasks.create_task(self._enqueue_when_workspaces_are_known())
            tasks.create_task(self._statuses.run())

    async def _enqueue_when_workspaces_are_known(self) -> None:
        await self._workspaces_asked_for.wait()
        if self._workspaces is not None:
            await self._workspaces.wait_synced()
        for placement in self.index.placements():
            if self._asks_for_workspaces(placement.ref):
                self.queue.add(placement.ref)
        self._consent.enqueue(self.index.consent.inventories())
        for guard in self._guards.state.guards:
            self._enqueue_guard(guard.ref)

    def _asks_for_workspaces(self, ref: ObjectRef) -> bool:
        """Tell whether the answer for a placement depends on Workspace objects."""
        placement = self.index.placement(ref)
        asks = placement is not None and placement.workspaces is not None
        return asks or bool(self._guards.state.guards) or self.index.is_governed(ref)

    def _knows_workspaces(self) -> bool:
        return self._workspaces is not None and self._workspaces.synced.is_set()

    async def _observe(self, ref: ObjectRef) -> Observation | None:
        """Observe a placement, once the workspaces it asks about are known and its pace allows."""
        if not self._knows_workspaces() and self._asks_for_workspaces(ref):
            # What is not known yet is not absent; the placement is enqueued again.
            return None
        wait = self._history.wait_seconds(ref) if self._history is not None else 0.0
        if wait:
            self.queue.add_after(ref, wait)
            return None
        return await self._observer.observe(ref)

    def _enqueue_consent(self, key: InventoryKey) -> None:
        self.consent_queue.add_after(key, _CONSENT_AFTER_SECONDS)

    def _enqueue_guard(self, ref: ObjectRef) -> None:
        self.guard_queue.add_after(ref, _GUARD_AFTER_SECONDS)

    def _reconciling(self, ref: ObjectRef) -> None:
        if self._print_line is not None:
            self._print_line(f"reconciling EdgePlacement {ref.name} in Workspace {ref.cluster}")
        self._statuses.enqueue(ref)

    def _follow_workspaces(self) -> None:
        """Watch Workspaces from the first placement on that asks for their labels."""
        if self._workspaces is None:
            self._workspaces = self._views.tenancy.informer(
                WORKSPACES, transform=lean_workspace, packed=True
            )
            self._workspaces.add_handler(self._handlers.workspace_changed)
            self._workspaces_asked_for.set()
