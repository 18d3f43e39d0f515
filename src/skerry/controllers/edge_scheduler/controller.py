"""Wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
)
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.consent import (
    ConsentExecutor,
    ConsentObserver,
    ConsentState,
    InventoryKey,
    ObservedConsent,
    decide_consent,
)
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.keys import NAME, Waking
from skerry.controllers.edge_scheduler.observe import BY_PLACEMENT, Observed, Observer, slice_owners
from skerry.controllers.edge_scheduler.status import ObservedStatus, StatusObserver, decide_status
from skerry.controllers.edge_scheduler.telling import SliceExecutor
from skerry.controllers.edge_scheduler.written import WrittenSlices
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.consent_record import lean_record
from skerry.logic.fleet.placement.grants import lean_grant
from skerry.logic.fleet.placement.index import PlacementIndex
from skerry.logic.fleet.placement.records import lean_location, lean_sync_target
from skerry.logic.fleet.placement.slices import DESTINATIONS_PER_SLICE, lean_slice
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.logic.machinery.plan import Plan
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.workqueue import WorkQueue
from skerry.scheduler.placement import location_chooser

# Writes in flight: enough to keep a hub of two cores busy from afar, few enough to be fair.
WORKERS = 16
_STATUS_WORKERS = 4
# Slices are what others wait for: the status follows when a burst of changes has passed, a little
# later so that it is written once, and at the latest when a person begins to wonder.
_STATUS_AFTER_SECONDS = 0.2
_STATUS_LATEST_SECONDS = 10.0
# Reports of inventory workspaces gather what a burst of changes does to them.
_CONSENT_WORKERS = 2
_CONSENT_AFTER_SECONDS = 0.1

_log = Logger(NAME)


@dataclass(frozen=True, slots=True)
class Views:
    """Where the scheduler reads: the views of three exports, and of Workspaces if need be.

    ``has_grants``: the edge export offers LocationGrants. Where it does not, as one of a previous
    version, there are none, and every Location is open.
    """

    edge: ControllerContext
    scheduling: InformerFactory
    workload: InformerFactory
    tenancy: InformerFactory
    has_grants: bool = True


class EdgeScheduler:
    """The loops for slices, status and consent, and what they share."""

    def __init__(
        self,
        views: Views,
        *,
        workers: int = WORKERS,
        per_slice: int = DESTINATIONS_PER_SLICE,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """*tell* gets a line for people about each placement that is looked at."""
        self._per_slice = per_slice
        self._views = views
        self._tell = tell
        edge = views.edge
        self.index = PlacementIndex(location_chooser)
        self.queue: WorkQueue[ObjectRef] = edge.queue(NAME)
        self.status_queue: WorkQueue[ObjectRef] = edge.queue(f"{NAME}-status")
        self.consent_queue: WorkQueue[InventoryKey] = edge.queue(f"{NAME}-consent")
        self._consent = ConsentState(self.index, self._look_at_consent)
        self._workspaces: Informer | None = None
        self._workspaces_asked_for = asyncio.Event()
        # Placements whose status is to be looked at, in order.
        self._untold: dict[ObjectRef, None] = {}
        self._anything_untold = asyncio.Event()
        placements, slices = edge.factory.informer(EDGE_PLACEMENTS), self._slices_informer()
        written = WrittenSlices(lambda: slices.resource_version)
        self._waking = Waking(
            self.index,
            written,
            self.queue.add,
            self._look_at_status,
            self._follow_workspaces,
            self._consent.enqueue,
        )
        self._observer = Observer(
            self.index,
            placements,
            slices,
            written,
            self._waking,
            edge.client,
            self._consent,
            per_slice,
        )
        grants = self._grants()
        informers = [*(grants or ()), *self._inventory(), slices, placements]
        slices.add_handler(self._waking.slice_changed)
        placements.add_handler(self._waking.placement_changed)
        executor = SliceExecutor(
            edge.client,
            written,
            self._waking,
            self._consent.running,
            metrics=edge.metrics,
            dry_run=edge.dry_run,
        )
        reconciler = Reconciler(self._observe, self._decide, executor)
        self._slices = edge.controller(NAME, reconciler, self.queue, informers, workers)
        self._status = self._status_loop(informers)
        self._reports = [self._consent_loop(*grants, informers)] if grants is not None else []

    def _status_loop(self, informers: list[Informer]) -> Controller[ObjectRef, ObservedStatus]:
        edge = self._views.edge
        clock = edge.client.clock
        reconciler = Reconciler(
            StatusObserver(self._observer, self._quiet).observe,
            lambda observed: decide_status(observed, clock.now()),
            edge.executor(NAME),
        )
        return edge.controller(
            f"{NAME}-status", reconciler, self.status_queue, informers, _STATUS_WORKERS
        )

    def _consent_loop(
        self, grants: Informer, consents: Informer, informers: list[Informer]
    ) -> Controller[InventoryKey, ObservedConsent]:
        edge = self._views.edge
        clock = edge.client.clock
        observer = ConsentObserver(
            self.index, self._consent, grants, consents, self._knows_workspaces
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

    def _grants(self) -> tuple[Informer, Informer] | None:
        """Follow LocationGrants and LocationConsents, if there can be any."""
        if not self._views.has_grants:
            return None
        factory, waking = self._views.edge.factory, self._waking
        consents = factory.informer(LOCATION_CONSENTS, transform=lean_record)
        grants = factory.informer(LOCATION_GRANTS, transform=lean_grant)
        consents.add_handler(waking.consent_changed)
        grants.add_handler(waking.grant_changed)
        return grants, consents

    def _slices_informer(self) -> Informer:
        slices = self._views.edge.factory.informer(SINGLE_PLACEMENT_SLICES, transform=lean_slice)
        slices.index.add_index(BY_PLACEMENT, slice_owners)
        return slices

    def _inventory(self) -> list[Informer]:
        views, waking = self._views, self._waking
        locations = views.scheduling.informer(LOCATIONS, transform=lean_location, packed=True)
        targets = views.workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
        locations.add_handler(waking.location_changed)
        targets.add_handler(waking.sync_target_changed)
        return [locations, targets]

    async def run(self) -> None:
        """Work until cancelled; may be run again afterwards, as leadership comes and goes."""
        self._consent.running.clear()
        _log.info("starting controller", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._slices.run())
            tasks.create_task(self._status.run())
            for loop in self._reports:
                tasks.create_task(loop.run())
            if self._views.edge.recorder is not None:
                tasks.create_task(self._views.edge.recorder.run())
            tasks.create_task(self._wake_when_workspaces_are_known())
            tasks.create_task(self._wake_statuses())

    async def _wake_when_workspaces_are_known(self) -> None:
        await self._workspaces_asked_for.wait()
        if self._workspaces is not None:
            await self._workspaces.wait_synced()
        for placement in self.index.placements():
            if self._asks_for_workspaces(placement.ref):
                self.queue.add(placement.ref)
        self._consent.enqueue(self.index.consent.inventories())

    def _asks_for_workspaces(self, ref: ObjectRef) -> bool:
        """Tell whether the answer for a placement depends on Workspace objects."""
        placement = self.index.placement(ref)
        asks = placement is not None and placement.workspaces is not None
        return asks or self.index.is_governed(ref)

    def _knows_workspaces(self) -> bool:
        return self._workspaces is not None and self._workspaces.synced.is_set()

    async def _observe(self, ref: ObjectRef) -> Observed | None:
        if not self._knows_workspaces() and self._asks_for_workspaces(ref):
            # What is not known yet is not absent; the placement is enqueued again.
            return None
        return await self._observer.observe(ref)

    def _look_at_consent(self, key: InventoryKey) -> None:
        self.consent_queue.add_after(key, _CONSENT_AFTER_SECONDS)

    def _decide(self, observed: Observed) -> Plan:
        ref = observed.ref
        if self._tell is not None:
            self._tell(f"reconciling EdgePlacement {ref.name} in Workspace {ref.cluster}")
        self._look_at_status(ref)
        return decide(observed, self._per_slice)

    def _look_at_status(self, ref: ObjectRef) -> None:
        self._untold[ref] = None
        self._anything_untold.set()

    async def _wake_statuses(self) -> None:
        """Have statuses looked at while the slices are quiet, or when they never are."""
        sleep = self._views.edge.client.clock.sleep
        while True:
            await self._anything_untold.wait()
            await sleep(_STATUS_AFTER_SECONDS)
            await self._quiet()
            self._anything_untold.clear()
            for ref in self._untold:
                self.status_queue.add(ref)
            self._untold.clear()

    def _follow_workspaces(self) -> None:
        """Watch Workspaces from the first placement on that asks for their labels."""
        if self._workspaces is None:
            self._workspaces = self._views.tenancy.informer(WORKSPACES, transform=lean_workspace)
            self._workspaces.add_handler(self._waking.workspace_changed)
            self._workspaces_asked_for.set()

    async def _quiet(self) -> None:
        """Wait until no slice is to be written, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STATUS_LATEST_SECONDS):
                await self.queue.wait_idle()
