"""The pod scheduler as a process: files, connections, certificates, signals, exit codes.

Against any Kubernetes API server. SIGTERM and SIGINT end it cleanly, the Lease given up; SIGHUP
reads the configuration file anew; SIGUSR2 logs what cache and queue hold. Losing the Lease ends it
with an error, for whoever leads now must be alone.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import uvloop

from skerry.kit import garbage
from skerry.kit import log as logging
from skerry.kit.clock import SystemClock
from skerry.kit.ids import SystemIds
from skerry.kit.log import Logger
from skerry.runtime.batching import BatchingTransport
from skerry.runtime.client import Client
from skerry.runtime.facts import ServerFacts
from skerry.runtime.http import Limits
from skerry.runtime.kubeconfig import ClientConfig, Overrides, connect, in_cluster, load
from skerry.runtime.transport import Transport
from skerry.runtime.wrapping import PacedTransport
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.flags import Flags, asked_rate, configured
from skerry.scheduler.config.gates import Gates
from skerry.scheduler.config.load import Configuration, dump
from skerry.scheduler.framework.registry import RegistryError
from skerry.scheduler.scheduler import PodScheduler
from skerry.scheduler.service import (
    CannotListen,
    LeadershipLost,
    SchedulerOptions,
    SchedulerService,
    build_registry,
    run_service,
)
from skerry.server.security.pki import Authority, Credential, new_ca, server_names
from skerry.wire.kubeconfig import KubeconfigError

_USER_AGENT = "skerry-scheduler"
# Bindings are what is sent, each done in milliseconds: as many at once as keep a server busy, and
# no more, for every connection costs it and us a handshake just when pods arrive in a crowd.
_LIMITS = Limits(connections=16)

log = Logger("scheduler")


class StartError(Exception):
    """Why the scheduler did not start, or had to end, in a sentence."""


@dataclass(frozen=True, slots=True)
class PodSchedulerSettings:
    """What ``skerry scheduler`` is started with."""

    config: Path | None = None
    """A KubeSchedulerConfiguration; without one everything has its default."""

    write_config_to: Path | None = None
    """Write the effective configuration there, and do nothing else."""

    flags: Flags = field(default_factory=Flags)
    """Flags that meet the file; see ``scheduler.config.flags`` for which wins."""

    master: str = ""
    """URL of the API server, instead of the kubeconfig's."""

    bind_address: str = "0.0.0.0"  # noqa: S104 - kube-scheduler's default; only health is open
    secure_port: int = 10259
    """Port for health, metrics and configuration; 0 serves none."""

    tls_cert_file: Path | None = None
    tls_private_key_file: Path | None = None
    """Certificate of that port; without it one is made up."""

    cert_dir: Path | None = None
    """Where a certificate made up is kept from start to start; without it, nowhere."""

    authentication_kubeconfig: Path | None = None
    authorization_kubeconfig: Path | None = None
    """Servers that know callers of that port and what they may; the API server by default."""

    max_unschedulable_seconds: float = 300.0
    gates: Gates = field(default_factory=Gates)
    """Which of Kubernetes' features are wanted."""

    verbosity: int = 0
    log_format: Literal["text", "json"] = "text"
    environment: Mapping[str, str] = field(default_factory=dict)
    """Where the cluster is when running inside one."""


def run_pod_scheduler(settings: PodSchedulerSettings, announce: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT; *announce* gets a line once pods are being scheduled.

    Raises StartError for whatever ends it otherwise.
    """
    logging.configure(verbosity=settings.verbosity, format=settings.log_format)
    try:
        configuration = read_configuration(settings)
        if settings.write_config_to is not None:
            _write_configuration(configuration, settings.write_config_to)
            return
        uvloop.run(_until_stopped(settings, configuration, announce))
    except LeadershipLost as error:
        raise StartError("leaderelection lost") from error
    except (ConfigurationError, RegistryError, KubeconfigError, CannotListen) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        raise StartError(connection_problem(error)) from error


def read_configuration(settings: PodSchedulerSettings) -> Configuration:
    """Return file and flags as one configuration; raises ConfigurationError or OSError."""
    return configured(_text(settings), settings.flags)


def _text(settings: PodSchedulerSettings) -> str | None:
    return None if settings.config is None else settings.config.read_text()


def _write_configuration(configuration: Configuration, path: Path) -> None:
    """Write what would be in force, once it is certain that it would be."""
    PodScheduler(configuration, build_registry())
    path.write_text(dump(configuration))
    log.info("wrote configuration", file=str(path))


def connection_problem(error: OSError) -> str:
    """Return a failure of the system as Go tells it."""
    text = (error.strerror or str(error)).lower()
    return f"open {error.filename}: {text}" if error.filename else text


async def _until_stopped(
    settings: PodSchedulerSettings,
    configuration: Configuration,
    announce: Callable[[str], None],
) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        config = _client_config(settings, configuration)
        client = await stack.enter_async_context(connected(config, _rate(settings)))
        options = await _options(settings, configuration, stack)
        service = SchedulerService(options, client, SystemIds())
        running = loop.create_task(run_service(service))
        announcing = loop.create_task(_announce(options, config.server, announce))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, running.cancel)
        loop.add_signal_handler(signal.SIGHUP, options.reload.set)
        loop.add_signal_handler(signal.SIGUSR2, _log_state, service)
        try:
            await running
        except asyncio.CancelledError:
            log.info("stopping")
        finally:
            announcing.cancel()


async def _announce(
    options: SchedulerOptions, server: str, announce: Callable[[str], None]
) -> None:
    await options.ready.wait()
    names = ", ".join(profile.scheduler_name for profile in options.configuration.profiles)
    announce(f"skerry scheduler ready for {names} at {server}")
    garbage.settle()


def _log_state(service: SchedulerService) -> None:
    scheduler = service.scheduler
    for node in scheduler.cluster.table.nodes():
        log.info("dump of cached node", key=node.name, row=node.row)
    log.info("dump of cache", **scheduler.cluster.counts)
    log.info("dump of scheduling queue", pods=[pod.key for pod in scheduler.queue.pods()])


async def _options(
    settings: PodSchedulerSettings, configuration: Configuration, stack: AsyncExitStack
) -> SchedulerOptions:
    async def reviewer(path: Path | None) -> Client | None:
        if path is None:
            return None
        return await stack.enter_async_context(connected(_file_config(path)))

    serves = settings.secure_port != 0
    return SchedulerOptions(
        configuration,
        f"{socket.gethostname()}_{SystemIds().uid()}",
        bind_address=settings.bind_address,
        secure_port=settings.secure_port if serves else None,
        tls=_serving_tls(settings) if serves else None,
        token_reviewer=await reviewer(settings.authentication_kubeconfig),
        access_reviewer=await reviewer(settings.authorization_kubeconfig),
        max_unschedulable_seconds=settings.max_unschedulable_seconds,
        gates=settings.gates,
        read_configuration=(
            None if settings.config is None else lambda: read_configuration(settings)
        ),
    )


def _rate(settings: PodSchedulerSettings) -> tuple[float, int] | None:
    return asked_rate(_text(settings), settings.flags)


# Connections.


def _client_config(settings: PodSchedulerSettings, configuration: Configuration) -> ClientConfig:
    """Return where the API server is: the configured file, ``--master``, or around us."""
    path, master = configuration.kubeconfig, settings.master
    if path:
        return _file_config(Path(path), master)
    if master:
        return load([], Overrides(server=master))
    log.warning("neither --kubeconfig nor --master was specified; trying the pod's own cluster")
    return in_cluster(settings.environment)


def _file_config(path: Path, master: str = "") -> ClientConfig:
    if not path.exists():
        raise KubeconfigError(f"stat {path}: no such file or directory")
    return load([path], Overrides(server=master))


@asynccontextmanager
async def connected(
    config: ClientConfig, rate: tuple[float, int] | None = None
) -> AsyncIterator[Client]:
    """Return a client of the server *config* names, closed at the end; *rate* limits it."""
    clock = SystemClock()
    transport: Transport = connect(config, clock=clock, limits=_LIMITS)
    if rate is not None:
        transport = PacedTransport(transport, clock, *rate)
    facts = ServerFacts()
    transport = BatchingTransport(transport, clock, facts, gather_seconds=0)
    try:
        yield Client(transport, clock=clock, user_agent=_USER_AGENT, facts=facts)
    finally:
        await transport.close()


def _serving_tls(settings: PodSchedulerSettings) -> ssl.SSLContext:
    """Return the certificate to serve with: the one given, one kept, or one made for this run."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if settings.tls_cert_file is not None:
        context.load_cert_chain(settings.tls_cert_file, settings.tls_private_key_file)
    elif settings.cert_dir is not None:
        context.load_cert_chain(*_kept_certificate(settings.cert_dir))
    else:
        with tempfile.TemporaryDirectory(prefix="skerry-") as folder:
            context.load_cert_chain(*_kept_certificate(Path(folder)))
    return context


def _kept_certificate(folder: Path) -> tuple[Path, Path]:
    """Return certificate and key in *folder*, under kube-scheduler's names; made unless there."""
    certificate, key = folder / "kube-scheduler.crt", folder / "kube-scheduler.key"
    if not (certificate.exists() and key.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        made = _own_certificate()
        key.touch(mode=0o600)
        key.write_bytes(made.key)
        certificate.write_bytes(made.certificate)
    return certificate, key


def _own_certificate() -> Credential:
    clock = SystemClock()
    authority = Authority(new_ca("skerry-scheduler-ca", clock), clock)
    return authority.server("localhost", server_names())
