"""The scheduler as a process: everything started in the right order, and stopped cleanly.

The order is kube-scheduler's. Configuration is complete and profiles are assembled before anything
runs; then the event sink, the health server, the informers; then caches filled *and every handler
notified of their content*, for deciding on half a cluster books nodes twice; then leadership; and
only then the first decision. With ``delayCacheUntilActive`` informers start once leadership is won.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import orjson
from prometheus_client import CollectorRegistry

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import IdSource, SystemIds
from skerry.kit.log import Logger
from skerry.runtime.client import EVERYTHING, Client, Selection
from skerry.runtime.election import LeaderElection, Terms
from skerry.runtime.health import Authorize, HealthEndpoint, MakePage
from skerry.runtime.informer import InformerFactory, without_managed_fields
from skerry.runtime.metrics import RuntimeMetrics
from skerry.scheduler.cache.objects import KINDS
from skerry.scheduler.cache.pod import scheduled_volumes
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.gates import Gates
from skerry.scheduler.config.load import Configuration
from skerry.scheduler.debug import PAGES as DEBUG_PAGES
from skerry.scheduler.endpoint import delegated
from skerry.scheduler.event_handlers import EventHandlers, Handler
from skerry.scheduler.extender import HttpExtender
from skerry.scheduler.framework.registry import Registry, installed_plugins
from skerry.scheduler.loop import flush_loop, run_loop
from skerry.scheduler.metrics import SchedulerMetrics
from skerry.scheduler.pod_events import PodEvents
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.resources import resource_metrics
from skerry.scheduler.scheduler import Parts, PodScheduler
from skerry.scheduler.writer import PODS, ApiWriter, resource_of

NODES = GroupVersionResource("", "v1", "nodes")

# Finished pods hold nothing; the server need not tell of them.
_LIVING = Selection(fields="status.phase!=Succeeded,status.phase!=Failed")

# How long past its lease a leader may be before health checks say so.
_WATCHDOG_SECONDS = 20.0

_log = Logger("scheduler")


class LeadershipLost(Exception):
    """Another replica leads now; this process must end rather than decide beside it."""


class CannotListen(Exception):
    """The scheduler's own port cannot be had."""


@dataclass(slots=True)
class SchedulerOptions:
    """What ``run_scheduler`` needs beside a client."""

    configuration: Configuration
    # Who we are among replicas: ``hostname_uuid``.
    identity: str
    bind_address: str = "127.0.0.1"
    # 0 chooses a port; None serves nothing.
    secure_port: int | None = 10259
    tls: ssl.SSLContext | None = None
    # Ask the API server who may read metrics; off for tests and for embedded clusters.
    delegate_authorization: bool = True
    # Whom to ask, where that is not the server pods are scheduled for.
    token_reviewer: Client | None = None
    access_reviewer: Client | None = None
    max_unschedulable_seconds: float = 300.0
    gates: Gates = field(default_factory=Gates)
    # Returns the configuration read anew; called when ``reload`` is set (SIGHUP).
    read_configuration: Callable[[], Configuration] | None = None
    reload: asyncio.Event = field(default_factory=asyncio.Event)
    # Set once decisions are being made; ``port`` is filled in before that.
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    plugins: Registry | None = None
    metrics_registry: CollectorRegistry | None = None


def build_registry(others: Registry | None = None) -> Registry:
    """Merge in-tree plugins with installed ones, or with *others*; refuses repeated names."""
    registry = in_tree_registry()
    registry.merge(installed_plugins() if others is None else others)
    return registry


async def run_scheduler(
    options: SchedulerOptions, client: Client, ids: IdSource | None = None
) -> None:
    """Run until cancelled; raises as ``run_service``, or ConfigurationError before anything ran."""
    await run_service(SchedulerService(options, client, ids or SystemIds()))


async def run_service(service: SchedulerService) -> None:
    """Run until cancelled; raises LeadershipLost or CannotListen as they are, not in a group."""
    try:
        await service.run()
    except BaseExceptionGroup as group:
        known, others = group.split((LeadershipLost, CannotListen))
        if known is None or others is not None:
            raise
        raise _first(known) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


class SchedulerService:
    """One scheduler process; ``run`` it once."""

    def __init__(self, options: SchedulerOptions, client: Client, ids: IdSource) -> None:
        self._options = options
        self._client = client
        self._ids = ids
        configuration = options.configuration
        self._registry = build_registry(options.plugins)
        self._metrics_registry = options.metrics_registry or CollectorRegistry()
        runtime_metrics = RuntimeMetrics(self._metrics_registry)
        metrics = SchedulerMetrics()
        self._metrics_registry.register(metrics)
        self._extenders = _made_extenders(configuration)
        self._events = PodEvents(client, options.identity, runtime_metrics)
        parts = Parts(
            ApiWriter(client),
            self._events,
            client.clock,
            ids,
            metrics,
            self._extenders,
            max_unschedulable=options.max_unschedulable_seconds,
            queueing_hints=options.gates.queueing_hints,
        )
        self.scheduler = PodScheduler(configuration, self._registry, parts)
        _log_profiles(self.scheduler)
        self._informers = InformerFactory(client, ids=ids, metrics=runtime_metrics)
        self._handlers_synced = False
        self._election = self._make_election(configuration, runtime_metrics)
        self._led_until = client.clock.monotonic()

    def _make_election(
        self, configuration: Configuration, metrics: RuntimeMetrics
    ) -> LeaderElection | None:
        chosen = configuration.leader_election
        if not chosen.enabled:
            return None
        terms = Terms(int(chosen.lease_seconds), chosen.renew_seconds, chosen.retry_seconds)
        return LeaderElection(
            self._client,
            chosen.name,
            chosen.namespace,
            self._options.identity,
            ids=self._ids,
            terms=terms,
            metrics=metrics,
        )

    async def run(self) -> None:
        """Run in the order the module's docstring tells."""
        delayed = self._options.configuration.delay_cache_until_active
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(self._events.run())]
            await self._serve(stack)
            background.append(tasks.create_task(self._reload_when_asked()))
            try:
                if not delayed or self._election is None:
                    background.append(await self._follow(tasks))
                await self._lead(tasks, background)
            finally:
                for task in background:
                    task.cancel()
                for extender in self._extenders:
                    await extender.close()

    async def _lead(self, tasks: asyncio.TaskGroup, background: list[asyncio.Task[None]]) -> None:
        async def decide() -> None:
            if not self._handlers_synced:
                background.append(await self._follow(tasks))
            await self._decide()

        if self._election is None:
            await decide()
            return
        await self._election.run(decide)
        raise LeadershipLost(f"{self._options.identity} no longer leads")

    async def _decide(self) -> None:
        ready = asyncio.Event()
        self.scheduler.queue.ready = ready.set
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(flush_loop(self.scheduler.queue, self._client.clock))
            self._options.ready.set()
            await run_loop(self.scheduler, ready, tasks)

    async def _serve(self, stack: AsyncExitStack) -> None:
        options = self._options
        if options.secure_port is None:
            return
        endpoint = HealthEndpoint(
            self._metrics_registry,
            health={"leaderElection": self._watchdog},
            ready={"sched-handler-sync": self._sync_check},
            pages={
                "/configz": self._configz,
                "/metrics/resources": self._resources,
                **{path: self._profiling(make) for path, make in DEBUG_PAGES.items()},
            },
            authorize=self._authorizer(),
            withhold_reasons=True,
        )
        try:
            options.port = await stack.enter_async_context(
                endpoint.serving(options.bind_address, options.secure_port, options.tls)
            )
        except OSError as problem:
            where = f"{options.bind_address}:{options.secure_port}"
            raise CannotListen(
                f"failed to create listener: failed to listen on {where}: {problem.strerror}"
            ) from problem

    def _authorizer(self) -> Authorize | None:
        options = self._options
        if not options.delegate_authorization:
            return None
        return delegated(
            options.token_reviewer or self._client, options.access_reviewer or self._client
        )

    def _watchdog(self) -> str:
        """Complain when we believe to lead though the lease has long run out."""
        election = self._election
        if election is None or not election.leading.is_set():
            return ""
        if election.holder in ("", self._options.identity):
            self._led_until = self._client.clock.monotonic()
        late = self._client.clock.monotonic() - self._led_until
        return "failed election to renew leadership" if late > _WATCHDOG_SECONDS else ""

    def _sync_check(self) -> str:
        return "" if self._handlers_synced else "handlers are not fully synchronized"

    def _profiling(self, make: Callable[[], tuple[str, bytes]]) -> MakePage:
        """Return a page that is there only while profiling is configured."""
        return lambda: make() if self._options.configuration.profiling else None

    def _configz(self) -> tuple[str, bytes]:
        document = {"componentconfig": self._options.configuration.document}
        return "application/json", orjson.dumps(document)

    def _resources(self) -> tuple[str, bytes]:
        led = self._election is None or self._election.leading.is_set()
        return "text/plain; version=0.0.4", resource_metrics(
            self.scheduler.cluster.pods() + self.scheduler.queue.pods() if led else []
        )

    async def _follow(self, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        """Start the informers and return once every handler knows what they hold."""
        for source in sources(EventHandlers(self.scheduler)):
            informer = self._informers.informer(
                source.resource, source.selection, transform=source.transform
            )
            informer.add_handler(source.handler)
        running = tasks.create_task(self._informers.run())
        await self._informers.wait_synced()
        self._handlers_synced = True
        _log.info("handlers synced", v=3, **self.scheduler.cluster.counts)
        return running

    async def _reload_when_asked(self) -> None:
        """Take over a new configuration, or say why not and keep the old one."""
        options = self._options
        while True:
            await options.reload.wait()
            options.reload.clear()
            if options.read_configuration is None:
                _log.warning("no configuration file to reload")
                continue
            try:
                configuration = options.read_configuration()
                extenders = _made_extenders(configuration)
                self.scheduler.reconfigure(configuration, self._registry, extenders)
            except (ConfigurationError, OSError) as problem:
                _log.error("configuration refused; the old one stays", error=problem)
                continue
            options.configuration = configuration
            former, self._extenders = self._extenders, extenders
            _log_profiles(self.scheduler)
            for extender in former:
                await extender.close()
            _log.info("configuration reloaded")


def _made_extenders(configuration: Configuration) -> list[HttpExtender]:
    return [HttpExtender(spec) for spec in configuration.extenders]


@dataclass(frozen=True, slots=True)
class Source:
    """One kind the scheduler follows."""

    resource: GroupVersionResource
    selection: Selection
    transform: Callable[[Object], Object]
    handler: Handler


def sources(event_handlers: EventHandlers) -> list[Source]:
    """Return all kinds; namespaces and nodes before pods, which are read against them."""
    return [
        *(
            Source(
                resource_of(attribute),
                EVERYTHING,
                without_managed_fields,
                event_handlers.namespace
                if attribute == "namespaces"
                else event_handlers.other(attribute),
            )
            for attribute in KINDS
        ),
        Source(
            NODES,
            EVERYTHING,
            without_managed_fields,
            event_handlers.measured(event_handlers.node, "Node"),
        ),
        Source(
            PODS, _LIVING, PodSlimming().slim, event_handlers.measured(event_handlers.pod, "Pod")
        ),
    ]


def _log_profiles(scheduler: PodScheduler) -> None:
    for name, profile in scheduler.profiles.items():
        framework = profile.framework
        _log.info(
            "the scheduler starts to work with those plugins",
            v=2,
            profile=name,
            filter=[plugin.name for plugin in framework.filter],
            score={plugin.name: framework.weights[plugin.name] for plugin in framework.score},
        )


_POD_SPEC = (
    "nodeName",
    "schedulerName",
    "priority",
    "preemptionPolicy",
    "overhead",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "schedulingGates",
    "hostNetwork",
)
_POD_STATUS = ("phase", "conditions", "nominatedNodeName", "startTime")
_CONTAINER = ("name", "image", "resources", "ports", "restartPolicy")


# Distinct containers, tolerations and so on worth sharing; far fewer than there are pods.
_PARTS_KEPT = 8192


class PodSlimming:
    """Keeps of pods what scheduling reads, and once what many of them have in common.

    A cluster's pods are most of the scheduler's memory, and most are copies of one another.
    """

    def __init__(self) -> None:
        self._parts: OrderedDict[bytes, Any] = OrderedDict()

    def slim(self, pod: Object) -> Object:
        """Return a pod that is only to be looked at: parts of it are other pods' too."""
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        kept = _picked(spec, _POD_SPEC)
        for group in ("containers", "initContainers"):
            if spec.get(group):
                kept[group] = [_picked(container, _CONTAINER) for container in spec[group]]
        if "volumes" in kept:
            kept["volumes"] = scheduled_volumes(kept["volumes"])
        for name, part in kept.items():
            if isinstance(part, dict | list):
                kept[name] = self._shared(part)
        metadata = dict(pod["metadata"])
        metadata.pop("managedFields", None)
        if "labels" in metadata:
            metadata["labels"] = self._shared(metadata["labels"])
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": kept,
            "status": _picked(status, _POD_STATUS),
        }

    def _shared(self, part: Any) -> Any:
        key = orjson.dumps(part)
        known = self._parts.get(key)
        if known is None:
            known = self._parts[key] = part
            if len(self._parts) > _PARTS_KEPT:
                self._parts.popitem(last=False)
        return known


def _picked(obj: Mapping[str, Any], keys: tuple[str, ...]) -> Object:
    return {key: obj[key] for key in keys if obj.get(key) is not None}
