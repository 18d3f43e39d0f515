"""The edge controllers as processes: which there are, how they are led, watched and stopped.

``EDGE_CONTROLLERS`` is the registry: a controller joins by one entry that says how it is built
from an ``EdgeEnvironment``. Its code is loaded then, so that a process of one controller starts as
soon, and stays as small, as that one lets it. Each is led by a Lease of its own in the provider
workspace, so that several processes with any choice of controllers may run; who does not lead
keeps its caches warm.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import uvloop
from prometheus_client import CollectorRegistry

import skerry
from skerry.api.edge import (
    DECISION_RECORDS,
    EXPORT,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    PLACEMENT_REVISIONS,
    REVISION_CONTENTS,
    ROLLOUTS,
    STATUS_QUERIES,
    USUAL_PROVIDER,
)
from skerry.api.errors import ApiError
from skerry.api.kcp.resources import API_EXPORTS, LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.app.edge_environment import (
    ClientFlags,
    EdgeEnvironment,
    Endpoint,
    HubAccess,
    Role,
    Runnable,
    View,
    access_by,
    endpoint,
)
from skerry.controllers.placement_translator.settings import TranslatorSettings
from skerry.controllers.status_queries import MAX_BYTES
from skerry.controllers.tenancy import heartbeat, location
from skerry.controllers.tenancy.placement import controller as placement
from skerry.kit import garbage
from skerry.kit import log as logging
from skerry.kit.allocation import keep_large_apart
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.log import Logger
from skerry.kit.metrics import CONTENT_TYPE, exposition
from skerry.logic.fleet.history.retention import Limits
from skerry.runtime.client import EVERYWHERE, Client
from skerry.runtime.election import LeaderElection
from skerry.runtime.events import EventRecorder
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError
from skerry.server.health import Health
from skerry.server.http.message import Answer, Request, Response
from skerry.server.http.server import HttpServer
from skerry.wire.kubeconfig import KubeconfigError, kubeconfig_paths

if TYPE_CHECKING:
    from skerry.app.hub_server import HubServer
    from skerry.controllers.edge_scheduler.controller import HistorySettings

# Exports have the names of their groups.
_SCHEDULING, _WORKLOAD, _TENANCY = LOCATIONS.group, SYNC_TARGETS.group, WORKSPACES.group
DenaturedKinds = Literal["auto", "withhold", "copy"]
_WITHHOLD: Mapping[DenaturedKinds, bool | None] = {"auto": None, "withhold": True, "copy": False}
_LEASE_NAMESPACE = "default"

log = Logger("controllers")


class StartError(Exception):
    """Why the controllers did not start, in a sentence."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """How a process of edge controllers runs."""

    kubeconfig: str = ""
    """File that says where the hub is; empty means what kubectl would take."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """``KUBECONFIG`` and ``HOME``, for the same end."""

    only: tuple[str, ...] = ()
    """Names of the controllers to run; empty means all."""

    clients: Mapping[Role, ClientFlags] = field(default_factory=dict)
    """What is said of single roles; see ``edge_environment``."""

    provider: str = ""
    """Path of the provider workspace; empty means the current workspace."""

    concurrency: int | None = None
    """Workers of each controller; None leaves it to the controller."""

    bind_address: str = ""
    """``host:port`` for metrics and health; empty takes the controller's own port if free."""

    strict_customization: bool = True
    """Whether what cannot be customized as asked is withheld; else it is copied as it is."""

    denatured_kinds: DenaturedKinds = "auto"
    """Whether kinds that would act on the hub itself are copied to mailboxes; ``auto``: only
    where copies have no effect."""

    floor: bool = True
    """Whether a placement that would lose more than 50 and more than half of its destinations in
    one decision waits for a person, without any PlacementGuard; off for tests."""

    query_memory: int = MAX_BYTES
    """Bytes that all StatusQueries together may hold, about; what is beyond is not kept up."""

    history: Limits = field(default_factory=Limits)
    """How much of what was decided placements keep, unless they say something else."""

    leader_elect: bool = True
    """Whether controllers wait for their Lease before they act."""

    log_format: Literal["text", "json"] = "text"
    """Form of log lines: klog's, or JSON."""

    verbosity: int = 2
    """klog verbosity."""


@dataclass(frozen=True, slots=True)
class EdgeController:
    """One entry of the registry. ``port`` is for metrics when it runs alone."""

    build: Callable[[EdgeEnvironment], Awaitable[Runnable]]
    port: int


async def _edge_scheduler(environment: EdgeEnvironment) -> Runnable:
    from skerry.controllers.edge_scheduler import controller as edge_scheduler

    edge = await environment.provider_view(EXPORT)
    scheduling = await environment.root_view(_SCHEDULING)
    workload = await environment.root_view(_WORKLOAD)
    tenancy = await environment.root_view(_TENANCY, quiet=True)
    # Events are no part of the edge export: they are written in the workspaces themselves.
    recorder = EventRecorder(
        environment.client("base"), "edge-scheduler", metrics=environment.metrics
    )
    views = edge_scheduler.Views(
        environment.context(edge.factory, recorder=recorder),
        scheduling.factory,
        workload.factory,
        tenancy.factory,
        _offers_grants(edge),
        _offers(edge, PLACEMENT_GUARDS),
        edge.exporter,
        _history_settings(environment, edge, verified=await environment.is_skerry_hub()),
        str(ROLLOUTS.group_resource) in edge.resources,
        str(STATUS_QUERIES.group_resource) in edge.resources,
    )
    return edge_scheduler.EdgeScheduler(
        views,
        workers=environment.concurrency or edge_scheduler.WORKERS,
        floor=environment.floor,
        print_line=environment.print_line,
    )


def _history_settings(
    environment: EdgeEnvironment, edge: View, *, verified: bool = True
) -> HistorySettings | None:
    from skerry.controllers.edge_scheduler.controller import HistorySettings

    if not _is_recorded(environment, edge):
        return None
    return HistorySettings(environment.history, skerry.__version__, verified)


def _is_recorded(environment: EdgeEnvironment, edge: View) -> bool:
    return not environment.history.is_off and _offers(edge, DECISION_RECORDS)


def _offers_grants(edge: View) -> bool:
    name = str(LOCATION_GRANTS.group_resource)
    if name not in edge.resources:
        log.warning("the edge export offers no LocationGrants: every Location is open to everybody")
    return name in edge.resources


def _offers(edge: View, *kinds: GroupVersionResource) -> bool:
    return all(str(each.group_resource) in edge.resources for each in kinds)


async def _mailbox(environment: EdgeEnvironment) -> Runnable:
    from skerry.controllers.mailbox import controller as mailbox
    from skerry.controllers.mailbox.observe import Provider

    workload = await environment.root_view(_WORKLOAD)
    edge = await environment.provider_view(EXPORT, quiet=True)
    # Events about SyncTargets are written in the workspaces themselves.
    recorder = EventRecorder(
        environment.client("base"), "mailbox-controller", metrics=environment.metrics
    )
    views = mailbox.Views(
        environment.context(environment.following("base", ""), recorder=recorder),
        environment.following("espw", environment.provider),
        workload.factory,
        edge.factory,
        environment.following("admin", EVERYWHERE),
    )
    return mailbox.MailboxController(
        views,
        Provider(environment.provider, edge.exporter),
        workers=environment.concurrency or mailbox.WORKERS,
    )


async def _placement_translator(environment: EdgeEnvironment) -> Runnable:
    from skerry.controllers.placement_translator import controller as placement_translator
    from skerry.controllers.placement_translator.inputs import Granting, Views
    from skerry.controllers.placement_translator.object_history import ObjectHistorySettings

    edge = await environment.provider_view(EXPORT)
    scheduling = await environment.root_view(_SCHEDULING, quiet=True)
    tenancy = await environment.root_view(_TENANCY, quiet=True)
    workload = await environment.root_view(_WORKLOAD, quiet=True)
    granting = Granting(tenancy.factory, workload.factory)
    kept = ObjectHistorySettings(environment.history, skerry.__version__)
    views = Views(
        environment.context(environment.following("admin", "")),
        edge.factory,
        scheduling.factory,
        environment.following("espw", environment.provider),
        granting if _offers_grants(edge) else None,
        edge.exporter if _offers(edge, PLACEMENT_GUARDS) else None,
        _offers(edge, ROLLOUTS, PLACEMENT_REVISIONS, REVISION_CONTENTS),
        kept if _is_recorded(environment, edge) else None,
    )
    settings = environment.translation
    if environment.concurrency is not None:
        settings = replace(settings, concurrency=environment.concurrency)
    return placement_translator.build(views, settings)


async def _history(environment: EdgeEnvironment) -> Runnable:
    from skerry.controllers.history import controller as history

    edge = await environment.provider_view(EXPORT, quiet=True)
    return history.HistoryLoop(
        environment.context(edge.factory),
        environment.history,
        skerry.__version__,
        is_served=_is_recorded(environment, edge),
    )


async def _summarizer(environment: EdgeEnvironment) -> Runnable:
    from skerry.app.query import build_summarizer

    return await build_summarizer(environment)


async def _status_queries(environment: EdgeEnvironment) -> Runnable:
    from skerry.app.query import build_status_queries

    return await build_status_queries(environment)


EDGE_CONTROLLERS: dict[str, EdgeController] = {
    "mailbox": EdgeController(_mailbox, 10203),
    "edge-scheduler": EdgeController(_edge_scheduler, 10205),
    "placement-translator": EdgeController(_placement_translator, 10204),
    "summarizer": EdgeController(_summarizer, 10206),
    "status-queries": EdgeController(_status_queries, 10207),
    "history": EdgeController(_history, 10208),
}
_ALL_PORT = 10203


def run_controllers(
    settings: ControllerSettings, announce: Callable[[str], None], started: Callable[[], None]
) -> None:
    """Run the chosen controllers until SIGTERM or SIGINT; *announce* gets lines for people.

    *started* is called when they run, or wait for whoever else does.
    """
    logging.configure(verbosity=settings.verbosity, format=settings.log_format)
    keep_large_apart()
    uvloop.run(_until_stopped(settings, announce, started))


async def _until_stopped(
    settings: ControllerSettings, announce: Callable[[str], None], started: Callable[[], None]
) -> None:
    clock, ids = SystemClock(), SystemIds()
    endpoints = _endpoints(settings)
    current = settings.provider or endpoints["espw"].workspace
    if not current:
        raise StartError("the current context names no workspace; give --espw-path")
    access, transports = access_by(endpoints, clock, "skerry/controllers")
    metrics = RuntimeMetrics(CollectorRegistry())
    health = Health()
    server = await _observed(settings, metrics, health)
    try:
        provider = settings.provider or await provider_near(access.clients["espw"], current)
        async with asyncio.TaskGroup() as tasks:
            environment = EdgeEnvironment(
                access,
                provider,
                clock,
                ids,
                tasks,
                metrics,
                settings.concurrency,
                announce if settings.verbosity >= 2 else None,
                translation_of(settings),
                settings.floor,
                settings.history,
                query_memory=settings.query_memory,
            )
            names = settings.only or tuple(EDGE_CONTROLLERS)
            led = [tasks.create_task(_all_led(environment, names, settings.leader_elect))]
            health.started()
            started()
            garbage.settle()
            await _signal()
            health.stopping()
            for task in led:
                task.cancel()
            environment.stop()
    finally:
        if server is not None:
            await server.stop(0)
        for transport in transports:
            await transport.close()


def translation_of(settings: ControllerSettings) -> TranslatorSettings:
    """Return what *settings* choose about translation."""
    return TranslatorSettings(
        strict_customization=settings.strict_customization,
        withhold_denatured=_WITHHOLD[settings.denatured_kinds],
    )


async def run_tenancy_controllers(api: HubServer, clock: Clock, ids: IdSource) -> None:
    """Run beside a hub what keeps SyncTargets, Locations and Placements true."""
    # A process of controllers alone has no use for a server.
    from skerry.app.core_controllers import embedded_client

    client = embedded_client(api, "skerry/tenancy-controllers", clock)
    roles: tuple[Role, ...] = ("espw", "root", "base", "admin")
    access = HubAccess(dict.fromkeys(roles, client), {})
    async with asyncio.TaskGroup() as tasks:
        environment = EdgeEnvironment(access, "root", clock, ids, tasks)
        workload = await environment.root_view(_WORKLOAD, quiet=True)
        scheduling = await environment.root_view(_SCHEDULING, quiet=True)
        recorder = EventRecorder(
            environment.client("base"), heartbeat.NAME, metrics=environment.metrics
        )
        judging = heartbeat.build(environment.context(workload.factory, recorder=recorder))
        counting = location.build(environment.context(scheduling.factory), workload.factory)
        placing = placement.build(
            environment.context(environment.following("admin", EVERYWHERE)),
            scheduling.factory,
            workload.factory,
        )
        tasks.create_task(recorder.run())
        tasks.create_task(judging.run())
        tasks.create_task(counting.run())
        tasks.create_task(placing.run())


async def _all_led(environment: EdgeEnvironment, names: Sequence[str], leader_elect: bool) -> None:
    """Run controllers as soon as there is a provider workspace."""
    await environment.provider_ready()
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(_led(environment, name, leader_elect=leader_elect))


async def _led(environment: EdgeEnvironment, name: str, *, leader_elect: bool) -> None:
    """Build a controller and run it whenever it leads."""
    controller = await EDGE_CONTROLLERS[name].build(environment)
    if not leader_elect:
        await controller.run()
        return
    election = LeaderElection(
        environment.client("espw", environment.provider),
        f"skerry-{name}",
        _LEASE_NAMESPACE,
        f"{socket.gethostname()}_{environment.ids.uid()}",
        ids=environment.ids,
        metrics=environment.metrics,
    )
    while True:
        await election.run(controller.run)


async def provider_near(client: Client, current: str) -> str:
    """Return the current workspace, unless only the usual provider exports the edge API.

    A kubeconfig is shared by everything a script does: by the time a process started in the
    background reads it, the next command may have gone to another workspace.
    """
    if current == USUAL_PROVIDER or await _exports_edge(client, current):
        return current
    if not await _exports_edge(client, USUAL_PROVIDER):
        return current
    log.info("the current workspace exports no edge API", current=current, using=USUAL_PROVIDER)
    return USUAL_PROVIDER


async def _exports_edge(client: Client, workspace: str) -> bool:
    try:
        await client.at("", workspace).get(API_EXPORTS, EXPORT)
    except (ApiError, TransportError):
        return False
    return True


def _endpoints(settings: ControllerSettings) -> dict[Role, Endpoint]:
    home = Path(settings.environment.get("HOME", ""))
    paths = kubeconfig_paths(settings.kubeconfig, settings.environment.get("KUBECONFIG", ""), home)
    roles: tuple[Role, ...] = ("espw", "root", "base", "admin")
    try:
        return {
            role: endpoint(role, paths, settings.clients.get(role, ClientFlags())) for role in roles
        }
    except KubeconfigError as error:
        raise StartError(str(error)) from error


async def _observed(
    settings: ControllerSettings, metrics: RuntimeMetrics, health: Health
) -> HttpServer | None:
    """Serve metrics and health; a port nobody asked for may be taken by somebody else."""

    async def answer(request: Request) -> Answer:
        if request.path == "/metrics":
            return Response(body=exposition(metrics.registry), content_type=CONTENT_TYPE)
        return await health.handle(request, request.path)

    server = HttpServer(answer)
    host, port = _address(settings)
    try:
        await server.start(host, port)
    except OSError as error:
        if settings.bind_address:
            raise StartError(f"cannot listen on {host}:{port}: {error}") from error
        log.warning("no metrics: the port is taken", address=f"{host}:{port}")
        return None
    return server


def _address(settings: ControllerSettings) -> tuple[str, int]:
    if not settings.bind_address:
        alone = len(settings.only) == 1
        return "127.0.0.1", EDGE_CONTROLLERS[settings.only[0]].port if alone else _ALL_PORT
    host, _, port = settings.bind_address.rpartition(":")
    if not port.isdecimal():
        raise StartError(f"--server-bind-address {settings.bind_address!r}: want host:port")
    # As Go has it, an address without host means every interface.
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - asked for


async def _signal() -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
    log.info("stopping", v=0)
