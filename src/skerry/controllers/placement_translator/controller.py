"""Wiring."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from skerry.api.edge import LOCATION_CONSENTS, LOCATION_GRANTS, Mailbox
from skerry.api.errors import ApiError
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.consent import Concerned, GrantedPlaces
from skerry.controllers.placement_translator.decide import decide
from skerry.controllers.placement_translator.execution import MailboxExecutor
from skerry.controllers.placement_translator.feeds import Feed, Record, lean_definition
from skerry.controllers.placement_translator.held import (
    HeldObjects,
    HoldsExecutor,
    HoldsObserver,
    ObservedHolds,
    decide_holds,
)
from skerry.controllers.placement_translator.keys import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    LOCATIONS,
    NAME,
    SCHEMAS,
    SLICES,
    SYNC_TARGETS,
    SYNCER_CONFIGS,
    WORKSPACES,
    Known,
    Waking,
    slice_owner,
)
from skerry.controllers.placement_translator.mailboxes import Mailboxes
from skerry.controllers.placement_translator.marks import CONFIG, Marks
from skerry.controllers.placement_translator.observe import Accepted, Observer
from skerry.controllers.placement_translator.problems import Problems
from skerry.controllers.placement_translator.relations import Relations
from skerry.controllers.placement_translator.resolve import Resolver
from skerry.controllers.placement_translator.settings import TranslatorSettings, copies_are_inert
from skerry.controllers.placement_translator.status import StatusObserver, decide_status
from skerry.controllers.placement_translator.workspaces import Feeds, Workspaces
from skerry.kit.invariant import InvariantError
from skerry.kit.log import Logger
from skerry.logic.fleet.placement.consent_record import lean_record
from skerry.logic.fleet.placement.grants import lean_grant
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.logic.fleet.placement.workspace_tree import lean_workspace
from skerry.logic.fleet.translation.types import common_types
from skerry.logic.machinery.workspaces.names import SYSTEM_ADMIN
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import EVERYWHERE, cluster_of
from skerry.runtime.context import ControllerContext
from skerry.runtime.controller import Controller, Reconciler
from skerry.runtime.discovery import discover
from skerry.runtime.events import EventRecorder
from skerry.runtime.execute import Announce, Executor
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.transport import TransportError
from skerry.runtime.workqueue import WorkQueue

_BY_PLACEMENT = "placement"
_STATUS_WORKERS = 4
# Reports of inventory workspaces gather what a burst of looks finds.
_REPORT_WORKERS = 2
_REPORT_SECONDS = 0.2

_log = Logger(NAME)


class Granting(NamedTuple):
    """The views of the exports with Workspaces and with SyncTargets."""

    tenancy: InformerFactory
    workload: InformerFactory


@dataclass(frozen=True, slots=True)
class Views:
    """Where the translator reads and writes.

    ``everywhere`` has the rights to read all workspaces at once and to write to each; its client
    names no cluster. ``edge`` and ``scheduling`` follow the views of those exports across all
    workspaces, ``provider`` the workspace in which mailboxes are. ``granting`` is for what
    LocationGrants depend on; without it there are no grants.
    """

    everywhere: ControllerContext
    edge: InformerFactory
    scheduling: InformerFactory
    provider: InformerFactory
    granting: Granting | None = None


class PlacementTranslator:
    """Everything that takes part, and the loops: mailboxes, and what people are told."""

    def __init__(self, views: Views, settings: TranslatorSettings) -> None:
        context = views.everywhere
        self._context = context
        self._settings = settings
        self._recorder = EventRecorder(context.client, NAME, metrics=context.metrics)
        self.queue: WorkQueue[Mailbox] = context.queue(NAME)
        self.status_queue: WorkQueue[ObjectRef] = context.queue(f"{NAME}-status")
        self.consent_queue: WorkQueue[ClusterName] = context.queue(f"{NAME}-consent")
        self.held = HeldObjects(lambda key: self.consent_queue.add_after(key, _REPORT_SECONDS))
        self.marks = Marks(self.queue.add)
        self.problems = Problems(self._look_at_status)
        self.mailboxes = Mailboxes()
        self.feeds = Feeds(context.client, context.ids, context.metrics, self._object_changed)
        self._follow(views)
        self.workspaces = Workspaces(self.feeds, self._schema_table)
        self.relations = Relations(self.workspaces)
        self._granting = views.granting
        self._grants_found = asyncio.Event()
        # What grants depend on, from the first of them on.
        self._depended_on: list[Informer] = []
        self.consent = GrantedPlaces(
            self._locations.index.objects,
            lambda: [placement.name.cluster for placement in self.relations],
            self._follow_granting,
            self._mark_concerned,
        )
        self.resolver = Resolver(
            self.workspaces,
            self.relations,
            settings,
            lambda *key: self._customizers.index.get(Key(*key)),
            lambda *key: self._locations.index.get(Key(*key)),
            self.consent,
            self._stays,
        )
        self._waking = Waking(
            Known(self.feeds, self.workspaces, self.relations, self.mailboxes),
            self.resolver,
            self.marks,
            self.problems,
            lambda name: self._slices.index.by(_BY_PLACEMENT, name),
            self._look_at_status,
            consent=self.consent,
            held=self.held,
        )
        self.workspaces.on_retyped = self._waking.retyped
        self.feeds.on_synced = self._waking.feed_synced
        self._listen()
        self._controllers()

    def _follow(self, views: Views) -> None:
        wide = InformerFactory(
            views.everywhere.client.for_cluster(EVERYWHERE),
            ids=views.everywhere.ids,
            metrics=views.everywhere.metrics,
        )
        self._wide = wide
        self._schemas_by_name: dict[tuple[str, str], Object] | None = None
        self._schemas = wide.informer(SCHEMAS, transform=lean_definition)
        self._placements = views.edge.informer(EDGE_PLACEMENTS)
        self._slices = views.edge.informer(SLICES, transform=_lean_slice, packed=True)
        self._slices.index.add_index(_BY_PLACEMENT, slice_owner)
        self._customizers = views.edge.informer(CUSTOMIZERS, packed=True)
        self._configs = views.edge.informer(SYNCER_CONFIGS, transform=_lean_config, packed=True)
        self._locations = views.scheduling.informer(
            LOCATIONS, transform=_lean_location, packed=True
        )
        self._workspace_informer = views.provider.informer(WORKSPACES, transform=_lean_workspace)
        self._grants: list[Informer] = []
        if views.granting is not None:
            grants = views.edge.informer(LOCATION_GRANTS, transform=lean_grant)
            self._grants = [grants, views.edge.informer(LOCATION_CONSENTS, transform=lean_record)]

    def _follow_granting(self) -> list[asyncio.Event]:
        """Follow what grants depend on, from the first of them on."""
        granting = self._granting
        if granting is None:
            raise InvariantError("a grant, and no view of what grants depend on")
        workspaces = granting.tenancy.informer(WORKSPACES, transform=lean_workspace)
        targets = granting.workload.informer(SYNC_TARGETS, transform=lean_sync_target, packed=True)
        self._depended_on = [workspaces, targets]
        workspaces.add_handler(self.consent.workspace_changed)
        targets.add_handler(self.consent.sync_target_changed)
        self._grants_found.set()
        return [informer.synced for informer in self._depended_on]

    def _mark_concerned(self, concerned: Iterable[Concerned]) -> None:
        self._waking.consent_changed(concerned)

    def _stays(self, mailbox: Mailbox, item: ObjectRef) -> bool:
        """Tell whether a mailbox has a copy whose removal nobody has confirmed."""
        cluster = self.mailboxes.cluster(mailbox)
        record = self.workspaces.record(cluster, item) if cluster is not None else None
        there = record is not None and record.projected and not record.deleting
        return there and not self.held.is_released(mailbox, item)

    def _listen(self) -> None:
        waking = self._waking
        for informer, handler in (
            (self._schemas, self._schema_changed),
            (self._locations, self.consent.location_changed),
            (self._locations, waking.location_changed),
            (self._customizers, waking.customizer_changed),
            (self._workspace_informer, waking.workspace_changed),
            (self._configs, waking.config_changed),
            (self._slices, waking.slice_changed),
            (self._placements, waking.placement_changed),
        ):
            informer.add_handler(handler)
        for informer, handler in zip(
            self._grants, (self.consent.grant_changed, self._consent_changed), strict=False
        ):
            informer.add_handler(handler)

    def _consent_changed(self, old: Object | None, new: Object | None) -> None:
        self.consent.consent_changed(old, new)
        about = new or old
        if about is not None:
            self.consent_queue.add(cluster_of(about))

    def _controllers(self) -> None:
        context, accepted = self._context, Accepted()
        informers: list[Informer] = [
            *self._grants,
            self._schemas,
            self._locations,
            self._customizers,
            self._workspace_informer,
            self._configs,
            self._slices,
            self._placements,
        ]
        observer = Observer(
            context.client,
            self.workspaces,
            self.resolver,
            self.marks,
            self.mailboxes,
            self.problems,
            self._configs,
            accepted=accepted,
            consent=self.consent,
            held=self.held,
        )
        writer = MailboxExecutor(
            context.client,
            self.marks,
            self.mailboxes,
            self.problems,
            accepted,
            self.resolver.placements,
            lambda cluster, resource: self.workspaces.served(cluster, resource) is not None,
            metrics=context.metrics,
            dry_run=context.dry_run,
        )
        self._loop = context.controller(
            NAME,
            Reconciler(observer.observe, decide, writer),
            self.queue,
            informers,
            self._settings.concurrency,
        )
        clock = context.client.clock
        announce = (context.recorder or self._recorder).announce
        executor = Executor(
            context.client,
            NAME,
            metrics=context.metrics,
            dry_run=context.dry_run,
            announce=announce,
        )
        status = Reconciler(
            StatusObserver(self._placements, self.problems, self._mailboxes_of).observe,
            lambda observed: decide_status(observed, clock.now()),
            executor,
        )
        self._status_loop = context.controller(
            f"{NAME}-status", status, self.status_queue, informers, _STATUS_WORKERS
        )
        self._reports = [self._report_loop(informers, announce)] if self._grants else []

    def _report_loop(
        self, informers: list[Informer], announce: Announce
    ) -> Controller[ClusterName, ObservedHolds]:
        context = self._context
        clock = context.client.clock
        executor = HoldsExecutor(
            context.client,
            self.held,
            lambda mailbox, items: self.marks.mark(mailbox, {*items, CONFIG}),
            NAME,
            metrics=context.metrics,
            announce=announce,
            dry_run=context.dry_run,
        )
        reconciler = Reconciler(
            HoldsObserver(self.held, self._grants[1], self.consent.path).observe,
            lambda observed: decide_holds(observed, clock.now()),
            executor,
        )
        return context.controller(
            f"{NAME}-consent", reconciler, self.consent_queue, informers, _REPORT_WORKERS
        )

    async def run(self) -> None:
        """Translate until cancelled; may be run again afterwards, as leadership comes and goes."""
        self.held.forget_released()
        self.marks.wake_all()
        for placement in self.relations:
            self._look_at_status(placement.name)
        _log.info("Waiting for caches to sync for placement-translator", v=0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._wide.run())
            tasks.create_task(self.feeds.run())
            tasks.create_task(self._learn_common_types())
            tasks.create_task(self._learn_schemas())
            tasks.create_task(self._recorder.run())
            tasks.create_task(self._loop.run())
            tasks.create_task(self._status_loop.run())
            tasks.create_task(self._learn_grants())
            for loop in self._reports:
                tasks.create_task(loop.run())

    async def _learn_common_types(self) -> None:
        """Ask which types every workspace has; until that is known nothing can be decided.

        The system's own cluster binds and defines nothing, so it serves these and no others.
        """
        client = self._context.client.for_cluster(SYSTEM_ADMIN)
        backoff, attempt = Backoff(min_seconds=0.1, max_seconds=30.0), 0
        while True:
            try:
                types = await discover(client)
                version = await client.version()
            except (ApiError, TransportError) as error:
                attempt += 1
                _log.warning("discovery failed", attempt=attempt, error=error)
            else:
                if not types.failed:
                    break
                attempt += 1
                _log.warning("discovery is not complete", attempt=attempt, error=str(types.failed))
            await client.clock.sleep(backoff.seconds(attempt, self._context.ids))
        if self._settings.withhold_denatured is None:
            self.resolver.withholds_denatured = not copies_are_inert(version)
        self.workspaces.learn_common(common_types(types.resources))
        self.marks.bring_back()

    def _schema_changed(self, old: Object | None, new: Object | None) -> None:
        self._schemas_by_name = None
        self._waking.schema_changed(old, new)

    async def _learn_schemas(self) -> None:
        await self._schemas.wait_synced()
        self.workspaces.retype_all()
        self.marks.bring_back()

    async def _learn_grants(self) -> None:
        """Look again at what waited for that which grants depend on."""
        await self._grants_found.wait()
        for informer in self._depended_on:
            await informer.wait_synced()
        self.marks.bring_back()

    def _object_changed(self, feed: Feed, old: Record | None, new: Record | None) -> None:
        self._waking.object_changed(feed, old, new)

    def _look_at_status(self, name: ObjectRef) -> None:
        self.status_queue.add_after(name, self._settings.status_delay_seconds)

    def _mailboxes_of(self, name: ObjectRef) -> list[Mailbox]:
        """Return the mailboxes there are at a placement's destinations."""
        placement = self.relations.get(name)
        where = placement.where if placement is not None else ()
        return [mailbox for mailbox in where if self.mailboxes.cluster(mailbox) is not None]

    def _schema_table(self) -> Mapping[tuple[str, str], Object] | None:
        if not self._schemas.synced.is_set():
            return None
        if self._schemas_by_name is None:
            self._schemas_by_name = {
                (cluster_of(obj), obj["metadata"]["name"]): obj
                for obj in self._schemas.index.objects()
            }
        return self._schemas_by_name


def build(views: Views, settings: TranslatorSettings | None = None) -> PlacementTranslator:
    """Return the placement translator."""
    return PlacementTranslator(views, settings or TranslatorSettings())


def _lean(obj: Object) -> Object:
    """Drop what nobody here reads."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {"metadata": metadata}


def _lean_location(obj: Object) -> Object:
    selector = (obj.get("spec") or {}).get("instanceSelector")
    spec = {} if selector is None else {"instanceSelector": selector}
    return {**_lean(obj), "spec": spec}


def _lean_slice(obj: Object) -> Object:
    return {**_lean(obj), "destinations": obj.get("destinations") or []}


def _lean_config(obj: Object) -> Object:
    return {**_lean(obj), "spec": obj.get("spec") or {}}


def _lean_workspace(obj: Object) -> Object:
    return {**_lean(obj), "spec": obj.get("spec") or {}}
