"""A plain API server as a process: port, certificates, kubeconfig, signals."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop
import yaml

from skerry.app.admin_kubeconfig import (
    AdminEntries,
    ClusterEntry,
    ContextEntry,
    UserEntry,
    keep_admin_kubeconfig,
)
from skerry.app.api_server import TAINT_NODES, ApiServer, Parts
from skerry.app.classification import classify_requests
from skerry.app.core_controllers import embedded_transport, run_core_controllers
from skerry.app.extension_authentication import ExtensionAuthentication
from skerry.app.keys import (
    ServerKeys,
    follow_keys,
    open_keys,
)
from skerry.app.kubeconfig_files import ADMIN_CONTEXT
from skerry.app.kubernetes_service import KubernetesService
from skerry.app.listening import listen_problem, own_name, reachable
from skerry.app.observability import AuditPolicyError, Observability, build_observability
from skerry.app.open_files import raise_open_files
from skerry.app.process_member import ProcessMember, http_share
from skerry.app.restart import restart_on_unavailable
from skerry.app.security import (
    Security,
    build_security,
    follow_accounts,
    follow_rbac,
    follow_revocations,
)
from skerry.app.server_chores import server_chores
from skerry.app.server_documents import fixed, made
from skerry.app.settings import MAX_TOKEN_LIFETIME, ServerSettings
from skerry.app.version import KUBERNETES, version_document
from skerry.app.webhook_client import Network, parse_networks
from skerry.kit import garbage
from skerry.kit import log as logging
from skerry.kit.allocation import keep_large_apart
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.log import Logger
from skerry.kit.secret_files import secret_directory
from skerry.logic.machinery.oidc import OidcError
from skerry.logic.machinery.pod_security.configuration import (
    ConfigurationError,
    PodSecurityConfiguration,
    parse_configuration,
)
from skerry.logic.machinery.rbac.bootstrap import bootstrap_objects
from skerry.runtime.client import Client
from skerry.server.admission.rbac import EscalationGuard
from skerry.server.admission.token_secrets import TokenSecrets
from skerry.server.aggregation.apis import AggregatedApis
from skerry.server.engine import ResourceHandler
from skerry.server.extensions import CA_BUNDLE, CERTIFICATES, KEYS, ca_bundle
from skerry.server.http.accepting import listening_sockets
from skerry.server.http.message import Handler
from skerry.server.http.server import HttpServer
from skerry.server.http.settings import HttpSettings
from skerry.server.offload.offload import Offload, OffloadSettings
from skerry.server.offload.pool import PROGRAM, StampName, system_workers
from skerry.server.role_aggregation import RoleAggregation
from skerry.server.security.encryption_start import KeyMismatch
from skerry.server.security.key_administration import KeyAdministration
from skerry.server.security.key_ring import KeyRing
from skerry.server.security.pki import server_names
from skerry.server.security.signing_rotation import Authorities
from skerry.server.security.tls import LiveContext
from skerry.server.subresources.components import ComponentStatuses
from skerry.server.subresources.reviews import AccessReviews, whoami
from skerry.server.subresources.tokens import TokenHandler, TokenReviews
from skerry.server.user import User
from skerry.server.watch.shared_revisions import ALONE
from skerry.store.base import Store, StoreError
from skerry.store.open import open_store

log = Logger("server")

# Others wait while a lock is waited for; kubectl holds its own for a millisecond.
_BRIEFLY = 0.2


class StartError(Exception):
    """Why the server did not start, in a sentence."""


@dataclass(slots=True)
class ServerDeps:
    """What every server is assembled of."""

    settings: ServerSettings
    store: Store
    clock: Clock
    ids: IdSource
    authorities: Authorities
    security: Security
    observability: Observability
    ring: KeyRing
    url: str
    # What this process shares with the others of its group, where there are others.
    member: ProcessMember | None = None


async def _nothing_more() -> None:
    """Complete a server that starts with no content of its own."""


@dataclass(slots=True)
class ServerAssembly:
    """One server, assembled of its dependencies."""

    api: ApiServer
    # What the administrator's kubeconfig names, with the certificates of the moment.
    entries: Callable[[], AdminEntries]
    # Brings the content the server starts with, through its own API, before it says ready.
    complete: Callable[[], Coroutine[Any, Any, None]] = _nothing_more
    # Runs beside the server until cancelled.
    beside: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    # Where browsers find the console; empty without one.
    console: str = ""


@dataclass(frozen=True, slots=True)
class ServerFlavor:
    """A flavor of server: its command, its security and how it is assembled."""

    command: str
    security: Callable[[ServerSettings, Authorities, Store, Clock, IdSource], Security]
    assembly: Callable[[ServerDeps], Awaitable[ServerAssembly]]


@dataclass(slots=True)
class Running:
    """A server that answers requests."""

    url: str
    kubeconfig: Path
    api: ApiServer
    http: HttpServer
    # Where browsers find the console; empty without one.
    console: str = ""


def run_server(
    settings: ServerSettings,
    flavor: ServerFlavor,
    announce: Callable[[str], None],
    clock: Clock | None = None,
    member: ProcessMember | None = None,
) -> None:
    """Run a server until SIGTERM or SIGINT; *announce* gets the line that says ready.

    As a *member* of a group it also ends with whoever supervises that.
    """
    logging.configure(verbosity=settings.verbosity, format=settings.log_format)
    raise_open_files()
    keep_large_apart()
    uvloop.run(_until_stopped(settings, flavor, announce, clock, member))


async def _until_stopped(
    settings: ServerSettings,
    flavor: ServerFlavor,
    announce: Callable[[str], None],
    clock: Clock | None,
    member: ProcessMember | None,
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if member is not None:
        member.follow(stopped)
    async with serving(settings, flavor, clock, member) as server:
        announce(f"skerry {flavor.command} ready at {server.url} (kubeconfig {server.kubeconfig})")
        await stopped.wait()
        log.info("stopping", v=0)


@contextlib.asynccontextmanager
async def serving(
    settings: ServerSettings,
    flavor: ServerFlavor,
    clock: Clock | None = None,
    member: ProcessMember | None = None,
) -> AsyncIterator[Running]:
    """Serve inside the context; leaving it drains and closes everything.

    The *clock* is the machine's unless another one is given.
    """
    clock, ids = clock or SystemClock(), SystemIds()
    try:
        secret_directory(settings.data_dir)
    except OSError as error:
        raise StartError(f"cannot keep data in {settings.data_dir}: {error.strerror}") from error
    try:
        store = await open_store(settings.store, clock, ids)
    except (StoreError, OSError) as error:
        raise StartError(f"cannot open the store: {error}") from error
    try:
        host = settings.external_hostname or reachable(settings.bind_address)
        names = server_names((host, *settings.tls_sans, *own_name(settings)))
        try:
            keys = await open_keys(settings, store, names, clock, ids)
        except KeyMismatch as error:
            raise StartError(str(error)) from error
        async with _serving_store(settings, flavor, keys, host, clock, ids, member) as running:
            yield running
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _serving_store(
    settings: ServerSettings,
    flavor: ServerFlavor,
    keys: ServerKeys,
    host: str,
    clock: Clock,
    ids: IdSource,
    member: ProcessMember | None,
) -> AsyncIterator[Running]:
    store, authorities = keys.store, keys.authorities
    with _explained():
        security = flavor.security(settings, authorities, store, clock, ids)
        observability = build_observability(settings, store, clock, ids, member)
    tls = LiveContext(authorities.context())
    # The port must be known before anything is written that names it. Who comes meanwhile waits in
    # the kernel's queue: refusals cost a handshake each, and send people away for ever longer.
    sockets = await _listening(settings) if member is None else list(member.sockets)
    url = f"https://{host}:{sockets[0].getsockname()[1]}"
    ring = KeyRing(keys.below, [keys.encryption, authorities], clock, ids, url)
    deps = ServerDeps(
        settings, store, clock, ids, authorities, security, observability, ring, url, member
    )
    background: list[asyncio.Task[None]] = []
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(observability.close)
        for each in sockets:
            stack.callback(each.close)
        # Outside of the group, so that what keeps a server from starting is said as it is.
        assembly = await flavor.assembly(deps)
        api, dispatcher = assembly.api, assembly.api.dispatcher
        http = _http_server(settings, member, api.engine.handle)
        stack.push_async_callback(http.stop, 0)
        async with asyncio.TaskGroup() as tasks:
            certificates_changed = partial(_presented, tls, deps, assembly)
            follow_keys(keys, ring, security, api.engine.streams, certificates_changed)
            await ring.follow(dispatcher)
            await follow_revocations(security, dispatcher, http)
            chores = [*server_chores(settings, keys, ring, dispatcher, clock), api.run()]
            background += [tasks.create_task(each) for each in chores]
            background += [tasks.create_task(run()) for run in (*security.chores, *assembly.beside)]
            await assembly.complete()
            if member is not None:
                background.append(tasks.create_task(member.peers.run()))
                background.append(tasks.create_task(member.beat.run(clock)))
            # Not before: of a group, the others take what arrives until this one can answer.
            await http.start(tls=tls, sockets=sockets)
            entries = assembly.entries()
            kubeconfig = await asyncio.to_thread(keep_admin_kubeconfig, settings.data_dir, entries)
            observability.health.started()
            garbage.settle()
            try:
                yield Running(url, kubeconfig, assembly.api, http, assembly.console)
            finally:
                observability.health.stopping()
                await http.stop(settings.drain_seconds)
                for task in background:
                    task.cancel()


def _presented(tls: LiveContext, deps: ServerDeps, assembly: ServerAssembly) -> None:
    tls.present = deps.authorities.context()
    # Before whoever asked for it is answered: the next command reads the file.
    keep_admin_kubeconfig(deps.settings.data_dir, assembly.entries(), _BRIEFLY)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (OidcError, AuditPolicyError) as error:
        raise StartError(str(error)) from error


def _http_server(
    settings: ServerSettings, member: ProcessMember | None, handler: Handler
) -> HttpServer:
    limits = HttpSettings(body_bytes=settings.max_body_bytes)
    return HttpServer(handler, limits if member is None else http_share(limits, member.count))


async def plain_assembly(
    deps: ServerDeps, aggregated: AggregatedApis | None = None, *, taints_nodes: bool = False
) -> ServerAssembly:
    """Return a plain Kubernetes API server; *aggregated* is what others serve in its name.

    *taints_nodes*: somebody takes the taint of new nodes off when they are ready.
    """
    f = deps
    parts = server_parts(f)
    if not taints_nodes:
        parts = replace(parts, disabled_admission=parts.disabled_admission | {TAINT_NODES})
    token_secrets = TokenSecrets(f.store, f.security.tokens, f.authorities.bundle)
    admission = (*parts.admission, token_secrets)
    api = ApiServer(replace(parts, admission=admission, runs_pods=True, aggregated=aggregated))
    await api.prepare(bootstrap_objects())
    streams = api.engine.streams
    await follow_rbac(f.security.rbac, f.store, api.dispatcher, changed=streams.recheck)
    if f.security.nodes is not None:
        await f.security.nodes.follow(f.store, api.dispatcher)
    follow_accounts(f.security.authentication, streams, api.dispatcher)
    assembly = ServerAssembly(
        api,
        lambda: AdminEntries(
            [
                ClusterEntry(
                    ADMIN_CONTEXT,
                    f.url,
                    f.authorities.bundle().encode(),
                    "".join(own_name(f.settings)),
                )
            ],
            [UserEntry("admin", f.authorities.pki.admin)],
            [ContextEntry(ADMIN_CONTEXT, ADMIN_CONTEXT, "admin")],
            ADMIN_CONTEXT,
        ),
    )
    roles = RoleAggregation(f.store, api.dispatcher, f.security.rbac)
    assembly.beside.append(lambda: restart_on_unavailable("roles", roles.run, f.clock))
    if f.settings.controllers != "none":
        assembly.beside.append(lambda: run_core_controllers(api, f.authorities, f.clock, f.ids))
    return assembly


async def serve_assembly(deps: ServerDeps) -> ServerAssembly:
    """Return a plain server with what people expect of one that stands by itself."""
    # Loaded by whoever serves them: an embedded edge starts without.
    from skerry.app.aggregated_servers import AggregatedServers, run_aggregation

    servers = AggregatedServers(deps.store, deps.settings.data_dir / "pki", deps.clock)
    aggregated = AggregatedApis(servers)
    settings = deps.settings
    # The node lifecycle controller is not among the core ones. A server without any controllers
    # has others beside it, as kube-apiserver has.
    taints_nodes = settings.controllers != "core"
    assembly = await plain_assembly(deps, aggregated, taints_nodes=taints_nodes)
    api, clock = assembly.api, deps.clock
    assembly.beside.append(await classify_requests(api, deps.observability.flow.classes, clock))
    own = embedded_transport(api, User("system:apiserver", groups=("system:masters",)))
    client = Client(own, user_agent="skerry/apiserver", clock=clock)

    def urls() -> list[str]:
        return [record.name for record in deps.ring.servers.records()]

    port = urlsplit(deps.url).port or 443
    service = KubernetesService(client, settings.service_network, port, urls)
    trust = ExtensionAuthentication(
        client, deps.authorities.client_bundle, lambda: servers.authority
    )

    async def complete() -> None:
        await service.ensure()
        await trust.ensure()

    assembly.complete = complete
    assembly.beside += [lambda: service.run(clock), lambda: trust.run(clock)]
    if settings.controllers != "none":
        assembly.beside.append(lambda: run_aggregation(client, deps.ids, aggregated, servers))
    if settings.controllers == "all":
        # Loaded by whoever runs them, as the core controllers are.
        from skerry.app.certificates import run_certificates
        from skerry.app.workload_controllers import run_plain_workload_controllers

        assembly.beside += [
            lambda: run_plain_workload_controllers(api, clock, deps.ids),
            lambda: run_certificates(api, deps.authorities, clock, deps.ids),
        ]
    return assembly


PLAIN_SERVER = ServerFlavor("serve", build_security, serve_assembly)


def _virtual_kinds(deps: ServerDeps) -> dict[tuple[str, str], ResourceHandler]:
    """Return who answers for kinds that are not stored."""
    security, settings = deps.security, deps.settings
    reviews = AccessReviews(security.authorizer, security.rbac)
    return {
        ("", "componentstatuses"): ComponentStatuses(
            deps.store, deps.clock.now, runs_controllers=settings.controllers != "none"
        ).handle,
        ("authorization.k8s.io", "subjectaccessreviews"): reviews.subject,
        ("authorization.k8s.io", "localsubjectaccessreviews"): reviews.local_subject,
        ("authorization.k8s.io", "selfsubjectaccessreviews"): reviews.myself,
        ("authorization.k8s.io", "selfsubjectrulesreviews"): reviews.my_rules,
        ("authentication.k8s.io", "selfsubjectreviews"): whoami,
        ("authentication.k8s.io", "tokenreviews"): TokenReviews(security.authentication).handle,
    }


def server_parts(
    deps: ServerDeps,
    git_version: str = KUBERNETES,
    stamp: StampName = "none",
    program: str = PROGRAM,
) -> Parts:
    """Return the parts any kind of server is made with; *stamp* names what marks its objects,
    *program* the module its workers run."""
    settings, store, security = deps.settings, deps.store, deps.security
    clock, ids, observability = deps.clock, deps.ids, deps.observability
    offload = OffloadSettings(workers=settings.workers)
    charge = observability.flow.charge
    pool = system_workers(offload, stamp, charge, program) if settings.workers else None
    return Parts(
        store=store,
        offload=Offload(pool, offload),
        acknowledged=ALONE if deps.member is None else deps.member.revisions,
        clock=clock,
        ids=ids,
        authenticator=security.authentication,
        authorizer=security.authorizer,
        flow=observability.flow,
        recorder=observability.recorder,
        paths={
            **observability.paths,
            "/version": fixed(version_document(git_version)),
            "/.well-known/openid-configuration": made(security.tokens.openid_configuration),
            "/openid/v1/jwks": made(security.tokens.jwks),
        },
        trees=observability.trees,
        virtual=_virtual_kinds(deps),
        subresources={
            ("", "serviceaccounts", "token"): TokenHandler(
                store, security.tokens, min(settings.max_token_lifetime, MAX_TOKEN_LIFETIME)
            ).handle
        },
        admission=(EscalationGuard(security.rbac),),
        service_network=settings.service_network,
        disabled_admission=frozenset(settings.disabled_admission),
        pod_security=_pod_security(settings.admission_control_config_file),
        webhook_networks=_networks(settings.webhook_networks),
        webhook_metrics=observability.webhooks,
        cache_lists=observability.cache_lists,
        offers={"ca-bundle": CA_BUNDLE},
        extensions={
            KEYS: KeyAdministration(store, deps.ring).handle,
            CERTIFICATES: security.revoked.handle,
            CA_BUNDLE: ca_bundle(deps.authorities.bundle),
        },
    )


def _pod_security(path: Path | None) -> PodSecurityConfiguration:
    """Return what an AdmissionConfiguration file says of PodSecurity; the defaults without one."""
    if path is None:
        return PodSecurityConfiguration()
    try:
        return parse_configuration(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, ConfigurationError) as error:
        raise StartError(f"cannot use the admission configuration {path}: {error}") from error


def _networks(texts: tuple[str, ...]) -> tuple[Network, ...] | None:
    try:
        return parse_networks(texts) or None
    except ValueError as error:
        raise StartError(f"--webhook-network: {error}") from error


async def _listening(settings: ServerSettings) -> list[socket.socket]:
    try:
        return await listening_sockets(settings.bind_address, settings.port, HttpSettings().backlog)
    except OSError as error:
        raise StartError(listen_problem(settings, error)) from error
