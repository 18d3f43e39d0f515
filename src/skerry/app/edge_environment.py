"""What edge controllers stand on: clients of a hub, the views of its exports, a task group.

One hub is spoken to in four roles, each with a context of its own, because rights differ:

| role | is for | flags | context unless configured otherwise |
|---|---|---|---|
| ``espw`` | the provider workspace | ``--espw-*``, ``--workload-*`` | the current one |
| ``root`` | root's exports | ``--root-*``, ``--inventory-*``, ``--sspw-*`` | ``root`` |
| ``base`` | any one workspace | ``--mbws-*`` | ``base`` |
| ``admin`` | all workspaces at once | ``--sysadm-*``, ``--allclusters-*`` | ``system:admin`` |

Roles that come out the same share connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from skerry.api.errors import ApiError, Forbidden, NotFound
from skerry.api.kcp.resources import API_EXPORTS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.export_views import view_url
from skerry.controllers.placement_translator.settings import TranslatorSettings, copies_are_inert
from skerry.controllers.status_queries import MAX_BYTES
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.fleet.history.retention import Limits
from skerry.runtime.backoff import Backoff
from skerry.runtime.batching import BatchingTransport
from skerry.runtime.client import EVERYWHERE, Client, Selection, cluster_of
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from skerry.runtime.facts import ServerFacts
from skerry.runtime.informer import InformerFactory
from skerry.runtime.kubeconfig import ClientConfig, Overrides, connect, load
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import Transport, TransportError
from skerry.wire.kubeconfig import KubeconfigError

T = TypeVar("T")
Role = Literal["espw", "root", "base", "admin"]

# Flag prefixes by role: each of the first controllers had its own names for the same thing.
ROLE_PREFIXES: Mapping[Role, tuple[str, ...]] = {
    "espw": ("espw", "workload"),
    "root": ("root", "inventory", "sspw"),
    "base": ("mbws",),
    "admin": ("sysadm", "allclusters"),
}
_CONTEXTS: Mapping[Role, str] = {
    "espw": "",
    "root": "root",
    "base": "base",
    "admin": "system:admin",
}
ROOT = "root"

_log = Logger()


class Runnable(Protocol):
    """What a controller is to whoever starts it."""

    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ClientFlags:
    """What the command line says of one role; empty fields leave it to the kubeconfig."""

    kubeconfig: str = ""
    context: str = ""
    user: str = ""
    cluster: str = ""


class Endpoint(NamedTuple):
    """A server without a path, and the workspace its URL named; empty if it named none."""

    config: ClientConfig
    workspace: str


@dataclass(frozen=True, slots=True)
class HubAccess:
    """One client per role, and the workspace each role's context named."""

    clients: Mapping[Role, Client]
    workspaces: Mapping[Role, str]


def endpoint(role: Role, paths: Sequence[Path], flags: ClientFlags) -> Endpoint:
    """Return where *role* goes, as the kubeconfig and the flags have it."""
    files = [Path(flags.kubeconfig)] if flags.kubeconfig else paths
    overrides = Overrides(context=flags.context, user=flags.user, cluster=flags.cluster)
    usual = _CONTEXTS[role]
    if usual and not (flags.context or flags.cluster):
        try:
            return _split(load(files, replace(overrides, context=usual)))
        except KubeconfigError as error:
            # A kubeconfig that somebody else wrote may have the current context only.
            _log.info("using the current context", v=2, role=role, error=error)
    return _split(load(files, overrides))


def _split(config: ClientConfig) -> Endpoint:
    url = urlsplit(config.server)
    before, _, workspace = url.path.partition("/clusters/")
    server = url._replace(path=before.rstrip("/")).geturl()
    return Endpoint(replace(config, server=server), workspace.strip("/"))


def access_by(
    endpoints: Mapping[Role, Endpoint], clock: Clock, user_agent: str
) -> tuple[HubAccess, list[Transport]]:
    """Return clients for *endpoints*, and the transports they share, to be closed in the end."""
    transports: dict[ClientConfig, Transport] = {}
    clients: dict[Role, Client] = {}
    by_transport: dict[ClientConfig, Client] = {}
    for role, (config, _) in endpoints.items():
        if config not in transports:
            facts = ServerFacts()
            transport = BatchingTransport(connect(config, clock=clock), clock, facts)
            transports[config] = transport
            by_transport[config] = Client(
                transport, user_agent=user_agent, clock=clock, facts=facts
            )
        clients[role] = by_transport[config]
    workspaces = {role: found.workspace for role, found in endpoints.items()}
    return HubAccess(clients, workspaces), list(transports.values())


@dataclass(frozen=True, slots=True)
class View:
    """An export's view: its informers, the workspace that exports, and what it offers.

    ``resources`` are the names that end in the export's group, such as
    ``edgeplacements.edge.kcp.io``.
    """

    factory: InformerFactory
    exporter: str
    resources: frozenset[str] = frozenset()


@dataclass
class EdgeEnvironment:
    """Builds and runs what controllers ask for; everything asked for twice is shared."""

    access: HubAccess
    provider: str
    """Path of the provider workspace."""

    clock: Clock
    ids: IdSource
    tasks: asyncio.TaskGroup
    metrics: RuntimeMetrics = field(default_factory=RuntimeMetrics)
    concurrency: int | None = None
    """Workers of each controller; None leaves it to the controller."""

    print_line: Callable[[str], None] | None = None
    """Gets lines for people, which are not log lines."""

    translation: TranslatorSettings = field(default_factory=TranslatorSettings)
    """What is chosen about translation, its concurrency aside."""

    floor: bool = True
    """Whether the built-in guard of destinations counts."""

    history: Limits = field(default_factory=Limits)
    """How much of what was decided placements keep, unless they say something else."""

    query_memory: int = MAX_BYTES
    """Bytes that all StatusQueries together may hold."""

    mutation_check: bool = False
    """Whether caches notice being changed by their readers; for tests."""

    _views: dict[tuple[str, str], View] = field(default_factory=dict)
    _factories: dict[tuple[Role, str], InformerFactory] = field(default_factory=dict)
    _shared: dict[type[Any], Any] = field(default_factory=dict)
    _finding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _background: list[asyncio.Task[None]] = field(default_factory=list)

    def client(self, role: Role, workspace: str = "") -> Client:
        """Return the client of a role, at a workspace or at none."""
        return self.access.clients[role].at("", workspace)

    def following(self, role: Role, workspace: str) -> InformerFactory:
        """Return running informers of a workspace, or of ``EVERYWHERE``."""
        key = (role, workspace)
        if key not in self._factories:
            self._factories[key] = self._running(self.client(role, workspace))
        return self._factories[key]

    def context(
        self, factory: InformerFactory, *, recorder: EventRecorder | None = None
    ) -> ControllerContext:
        """Return what controllers of the runtime are built with."""
        return ControllerContext(
            factory.client, factory, self.ids, metrics=self.metrics, recorder=recorder
        )

    def shared(self, kind: type[T], build: Callable[[], T]) -> T:
        """Return the one *kind* that the controllers of this process have, built when asked for."""
        if kind not in self._shared:
            self._shared[kind] = build()
        found: T = self._shared[kind]
        return found

    async def provider_view(self, export: str, *, quiet: bool = False) -> View:
        """Return the view of an export of the provider workspace, once there is one."""
        return await self._view("espw", self.provider, export, quiet=quiet)

    async def root_view(self, export: str, *, quiet: bool = False) -> View:
        """Return the view of one of root's exports."""
        workspace = self.access.workspaces.get("root") or ROOT
        return await self._view("root", workspace, export, quiet=quiet)

    async def provider_ready(self) -> None:
        """Wait until there is a provider workspace, by watching for it in its parent.

        Where that cannot be watched, for lack of rights, the controllers' own retries find out.
        """
        parent, _, name = self.provider.rpartition(":")
        try:
            await self.client("espw", self.provider).list_page(API_EXPORTS, limit=1)
            return
        except (Forbidden, NotFound):
            pass
        except (ApiError, TransportError):
            return
        try:
            await self.client("espw", parent).list_page(WORKSPACES, limit=1)
        except (ApiError, TransportError):
            return
        _log.info("waiting for the provider workspace", workspace=self.provider)
        await self._appears("espw", parent, WORKSPACES, name, _is_ready)
        _log.info("found the provider workspace", workspace=self.provider)

    async def is_skerry_hub(self) -> bool:
        """Tell whether the hub is skerry's; one that is not there yet is asked again."""
        backoff, attempt = Backoff(min_seconds=0.1, max_seconds=30.0), 0
        while True:
            try:
                return copies_are_inert(await self.client("root", ROOT).version())
            except ApiError:
                return False
            except TransportError as error:
                attempt += 1
                _log.warning("the hub does not say what it is", attempt=attempt, error=error)
            await self.clock.sleep(backoff.seconds(attempt, self.ids))

    def stop(self) -> None:
        """End everything started here."""
        for task in self._background:
            task.cancel()

    async def _view(self, role: Role, workspace: str, export: str, *, quiet: bool) -> View:
        async with self._finding:
            known = self._views.get((workspace, export))
            if known is None:
                url, found = await self._found(role, workspace, export)
                path = urlsplit(url).path
                factory = self._running(self.access.clients[role].at(path, EVERYWHERE))
                schemas = (found.get("spec") or {}).get("latestResourceSchemas") or ()
                resources = frozenset(name.partition(".")[2] for name in schemas)
                known = View(factory, cluster_of(found), resources)
                self._views[workspace, export] = known
                if not quiet:
                    _log.info("Found APIExport view", exportName=export, serverURL=url)
            return known

    async def _found(self, role: Role, workspace: str, export: str) -> tuple[str, Object]:
        """Return the URL of an export's view and the export, as soon as there is one."""
        made = await self._appears(role, workspace, API_EXPORTS, export, view_url)
        return view_url(made), made

    async def _appears(
        self,
        role: Role,
        workspace: str,
        gvr: GroupVersionResource,
        name: str,
        wanted: Callable[[Object], object],
    ) -> Object:
        """Return an object as soon as it is there and as *wanted*."""
        found: asyncio.Future[Object] = asyncio.get_running_loop().create_future()

        def handle(_: Object | None, new: Object | None) -> None:
            if new is not None and not found.done() and wanted(new):
                found.set_result(new)

        factory = self.following(role, workspace)
        informer = factory.informer(gvr, Selection(fields=f"metadata.name={name}"))
        informer.add_handler(handle)
        await informer.wait_synced()
        if not found.done():
            _log.info("waiting for an object", kind=gvr.resource, key=name, workspace=workspace)
        try:
            return await found
        finally:
            factory.stop(informer)

    def _running(self, client: Client) -> InformerFactory:
        factory = InformerFactory(
            client, ids=self.ids, metrics=self.metrics, mutation_check=self.mutation_check
        )
        self._background.append(self.tasks.create_task(factory.run()))
        return factory


def _is_ready(workspace: Object) -> bool:
    return bool((workspace.get("status") or {}).get("phase") == "Ready")
