"""A syncer as a process: its data directory, its two connections, signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import uvloop

from skerry.app.hub_credential import HubLine, IdentitySecret, hub_line
from skerry.app.syncer_data import SyncerStartError, data_directory
from skerry.app.syncer_ends import same_ends
from skerry.edge.syncer.identity.credential import HubCredential
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.state import SyncerSettings
from skerry.edge.syncer.syncer import Syncer
from skerry.edge.syncer.tables.journal import Journal
from skerry.edge.syncer.tables.store_identity import WitnessTransport
from skerry.edge.syncer.tables.sync_records import SyncRecords
from skerry.edge.syncer.tunnel import EdgeTunnel
from skerry.kit import garbage
from skerry.kit import log as logging
from skerry.kit.clock import Clock, SystemClock
from skerry.kit.ids import IdSource, SystemIds
from skerry.logic.fleet.syncing.deletion_budget import Budget
from skerry.logic.machinery.edges.tunnel import tunnel_path
from skerry.runtime.batching import BatchingTransport
from skerry.runtime.client import Client
from skerry.runtime.facts import ServerFacts
from skerry.runtime.health import HealthEndpoint
from skerry.runtime.kubeconfig import ClientConfig, Overrides, connect, in_cluster, load
from skerry.runtime.transport import Transport
from skerry.runtime.wrapping import PacedTransport
from skerry.wire.kubeconfig import KubeconfigError
from skerry.wire.tunnel import PROTOCOL


@dataclass(frozen=True, slots=True)
class SyncerOptions:
    """What a syncer is started with."""

    from_kubeconfig: Path
    data_dir: Path
    sync_target_name: str = "edge"
    from_context: str = ""
    from_cluster: str = ""
    """Logical cluster of the mailbox, where the kubeconfig's server does not lead to it."""

    to_kubeconfig: Path | None = None
    """The edge's; without it the syncer is taken to run as a pod of the edge."""

    to_context: str = ""
    heartbeat_seconds: float = 30.0
    """Between signs of life. The hub gives up on an edge after some missed ones."""

    ordinary_hub: bool = False
    """Use nothing at the hub that Kubernetes does not have, even where it is offered."""

    qps: float = 0.0
    """Requests per second to the hub on average; 0 does not limit them."""

    burst: int = 20
    lock_namespace: str = "default"
    """Namespace at the edge of the Lease by which two syncers for one edge agree on one."""

    identity_secret: str = ""
    """Secret in that namespace for key and certificate; empty keeps them in ``data_dir``."""

    sync_target_uid: str = ""
    """UID of the SyncTarget, where the kubeconfig does not say."""

    deletion_count: int = 50
    deletion_percent: int = 50
    """Deletions within ten minutes beyond which a person is asked: the larger of both."""

    tunnel: bool = False
    """Keep a tunnel to the hub, through which logs, commands and ports of pods are asked for."""

    metrics_address: str = ""
    """``host:port`` for health and metrics; empty serves none."""

    verbosity: int = 2
    log_format: Literal["text", "json"] = "text"
    environment: Mapping[str, str] = field(default_factory=dict)


def run_syncer(
    options: SyncerOptions, announce: Callable[[str], None], clock: Clock | None = None
) -> None:
    """Run a syncer until SIGTERM or SIGINT; *announce* gets the line that says it works."""
    logging.configure(verbosity=options.verbosity, format=options.log_format)
    uvloop.run(_until_stopped(options, announce, clock))


async def _until_stopped(
    options: SyncerOptions, announce: Callable[[str], None], clock: Clock | None
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with syncing(options, clock) as running:
        announce(
            f"skerry syncer ready for {options.sync_target_name} "
            f"(hub {running.hub_server}, edge {running.edge_server})"
        )
        garbage.settle()
        await stopped.wait()


@dataclass(frozen=True, slots=True)
class RunningSyncer:
    """A syncer at work."""

    syncer: Syncer
    hub_server: str
    edge_server: str


@asynccontextmanager
async def syncing(
    options: SyncerOptions, clock: Clock | None = None
) -> AsyncIterator[RunningSyncer]:
    """Sync inside the context; leaving it stops cleanly.

    The *clock* is the machine's unless another one is given.
    """
    clock, ids = clock or SystemClock(), SystemIds()
    hub_config, edge_config = _configs(options)
    await _refuse_same(hub_config, edge_config)
    with data_directory(options.data_dir):
        edge_line = connect(edge_config, clock=clock)
        edge = Client(edge_line, clock=clock, user_agent="skerry-syncer")
        journal = Journal(options.data_dir / "journal")
        metrics = SyncerMetrics()
        line = _line(options, edge, clock, ids, metrics)
        hub = _hub_client(options, line.transport, clock)
        memory = SyncRecords(journal)
        settings = _settings(options, _identity(options.data_dir, ids))
        beside = []
        if options.tunnel:
            dial = partial(line.upgraded, PROTOCOL, tunnel_path(options.from_cluster))
            tunnel = EdgeTunnel(dial, edge_line, clock=clock, ids=ids, metrics=metrics)
            beside.append(tunnel.run)
        syncer = Syncer(settings, hub, edge, memory, ids=ids, metrics=metrics, beside=beside)
        try:
            async with (
                asyncio.TaskGroup() as tasks,
                _endpoint(options, metrics, syncer, line.credential),
            ):
                working = [tasks.create_task(syncer.run())]
                if line.credential is not None:
                    working.append(tasks.create_task(line.credential.run()))
                try:
                    yield RunningSyncer(syncer, hub_config.server, edge_config.server)
                finally:
                    for task in working:
                        task.cancel()
        finally:
            await journal.flush()
            journal.close()
            await hub.transport.close()
            await edge.transport.close()


async def _refuse_same(hub: ClientConfig, edge: ClientConfig) -> None:
    try:
        why = await same_ends(hub, edge)
    except KubeconfigError as error:
        raise SyncerStartError(str(error)) from error
    if why:
        raise SyncerStartError(
            f"{why}: a syncer brings what a hub says to another cluster; --from-kubeconfig is the "
            "hub's, --to-kubeconfig the edge's"
        )


def _line(
    options: SyncerOptions, edge: Client, clock: Clock, ids: IdSource, metrics: SyncerMetrics
) -> HubLine:
    secret = None
    if options.identity_secret:
        secret = IdentitySecret(edge, options.lock_namespace, options.identity_secret)
    return hub_line(
        lambda: _hub_config(options),
        options.data_dir,
        options.sync_target_name,
        cluster=options.from_cluster,
        uid=options.sync_target_uid,
        secret=secret,
        clock=clock,
        ids=ids,
        metrics=metrics,
    )


def _hub_client(options: SyncerOptions, line: Transport, clock: Clock) -> Client:
    transport = line
    if options.qps > 0:
        transport = PacedTransport(transport, clock, options.qps, options.burst)
    return hub_client(transport, clock, options.from_cluster, ordinary=options.ordinary_hub)


def hub_client(
    transport: Transport, clock: Clock, cluster: str = "", *, ordinary: bool = False
) -> Client:
    """Return a syncer's client for its mailbox: small writes gathered, stores distinguished."""
    facts = ServerFacts(extensions={} if ordinary else None)
    witness = WitnessTransport(BatchingTransport(transport, clock, facts))
    return Client(witness, cluster=cluster, clock=clock, user_agent="skerry-syncer", facts=facts)


def _configs(options: SyncerOptions) -> tuple[ClientConfig, ClientConfig]:
    try:
        hub = _hub_config(options)
        if options.to_kubeconfig is not None:
            return hub, load([options.to_kubeconfig], Overrides(context=options.to_context))
        return hub, in_cluster(options.environment)
    except KubeconfigError as error:
        raise SyncerStartError(str(error)) from error


def _hub_config(options: SyncerOptions) -> ClientConfig:
    return load([options.from_kubeconfig], Overrides(context=options.from_context))


def _settings(options: SyncerOptions, identity: str) -> SyncerSettings:
    return SyncerSettings(
        name=options.sync_target_name,
        identity=identity,
        heartbeat_seconds=options.heartbeat_seconds,
        budget=Budget(options.deletion_count, options.deletion_percent),
        lock_namespace=options.lock_namespace,
    )


def _identity(folder: Path, ids: IdSource) -> str:
    """Return who this syncer is; made once, so that a restarted one is the same."""
    path = folder / "identity"
    if not path.exists():
        path.write_text(f"skerry-syncer-{ids.suffix(10)}")
    return path.read_text().strip()


@asynccontextmanager
async def _endpoint(
    options: SyncerOptions,
    metrics: SyncerMetrics,
    syncer: Syncer,
    credential: HubCredential | None,
) -> AsyncIterator[None]:
    if not options.metrics_address:
        yield
        return
    host, _, port = options.metrics_address.rpartition(":")

    def working() -> str:
        return "" if syncer.session is not None else "another syncer works for this edge"

    def accepted() -> str:
        return "" if credential is None else credential.message

    checks = {"leading": working, "credential": accepted}
    health = HealthEndpoint(metrics.runtime.registry, ready=checks)
    async with health.serving(host or "127.0.0.1", int(port)):
        yield
