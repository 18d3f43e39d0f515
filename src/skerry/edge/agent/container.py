"""The life of one container: start, watch, end, and again as the policy says.

Everything that must outlive the agent is in the container's directory: one numbered directory per
attempt, made before anything is started. The number is the restart count, so an agent that comes
back goes on exactly where its predecessor was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from skerry.api.objects import Object
from skerry.edge.agent.commands import run_beside
from skerry.edge.agent.container_spec import Surroundings, container_spec
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.control_groups import unenforced
from skerry.edge.agent.environment import (
    ConfigurationMissing,
)
from skerry.edge.agent.network import Backend, free_port
from skerry.edge.agent.probes import Prober, Reach, Result, attempt, shown
from skerry.edge.agent.process_container import LOG, LOST
from skerry.edge.agent.refusals import container_refusals
from skerry.edge.agent.runtime import (
    CannotStart,
    Container,
    ContainerSpec,
    Exit,
    Image,
    ImageNotFound,
    Sandbox,
)
from skerry.edge.agent.security_context import containers_of
from skerry.edge.agent.status import ContainerState, Ended, Running, Waiting
from skerry.edge.agent.termination import TERMINATION_LOG, ended_within, last_words
from skerry.logic.machinery.plan import EventType

_PORTS = "ports.json"
_SANDBOX = "sandbox"
# What a container that was killed ends with.
_KILLED = 128 + signal.SIGKILL
# A hook has no deadline of its own; a container's grace period bounds it at the end.
_HOOK_SECONDS = 600.0


class ContainerLife:
    """One container of one pod, over all its attempts."""

    def __init__(
        self, node: NodeContext, pod: Object, container: Object, around: Surroundings
    ) -> None:
        self._node = node
        self.pod = pod
        self.spec = container
        self._around = around
        self._directory: Path = around.directory / str(container["name"])
        self.state = ContainerState(container["name"], container["image"])
        self.ports: dict[int, int] = {}
        self.running: Container | None = None
        self.run_spec: ContainerSpec | None = None
        self._attempt: int = self._last_attempt()
        # An agent that comes back must not be kinder to what kept ending.
        self._failures = self._attempt
        # Whether the present attempt is ended through no fault of its own.
        self._excused = False

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def was_started(self) -> bool:
        """Whether an attempt is recorded, by this agent or one before it."""
        return self._node.runtime.adopt(self._place) is not None

    def log_path(self, *, previous: bool = False) -> Path | None:
        """Return the log of the present attempt, or of the one before; None when there is none."""
        number = self._attempt - 1 if previous else self._attempt
        path = self._directory / str(number) / LOG
        return path if path.exists() else None

    async def run(self, restarts: Callable[[Exit], bool]) -> Exit:
        """Run the container until it ends and *restarts* says no; returns its last exit."""
        found = await self._adopted()
        while True:
            container = found or await self._started()
            found = None
            if isinstance(container, Exit):
                result = container
            else:
                result = await self._watched(container)
            self._ended(result)
            if not restarts(result):
                return result
            await self._back_off(result)
            self._next_attempt()

    async def recall(self) -> None:
        """Know again how a container ended whose pod is over."""
        found = self._node.runtime.adopt(self._place)
        if found is not None:
            self._set(identity=found.identity, restarts=self._attempt)
            self._ended(await found.wait())

    # Attempts on disk.

    def _last_attempt(self) -> int:
        found = self._directory.glob("[0-9]*")
        return max((int(path.name) for path in found if path.name.isdigit()), default=0)

    @property
    def _place(self) -> Path:
        return self._directory / str(self._attempt)

    def _next_attempt(self) -> None:
        shutil.rmtree(self._directory / str(self._attempt - 1), ignore_errors=True)
        self._attempt += 1

    async def _adopted(self) -> Container | None:
        """Return what a predecessor of this agent started, with its state as it was."""
        before = self._node.runtime.adopt(self._directory / str(self._attempt - 1))
        if before is not None:
            last = Ended(await before.wait(), before.identity)
            self._set(last=last, restarts=self._attempt)
        found = self._node.runtime.adopt(self._place)
        if found is None:
            return None
        if self._sandbox_mark() != _mark(self._around.sandbox):
            text = "Pod sandbox changed, it will be killed and re-created."
            self._record("Normal", "SandboxChanged", text)
            self._excused = True
            found.signal(signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            pairs = json.loads((self._place / _PORTS).read_text())
            self.ports = {int(port): real for port, real in pairs.items()}
        try:
            self._set(image_identity=self._node.runtime.image(self.spec["image"]).identity)
            self.run_spec = self._assembled(self._node.runtime.image(self.spec["image"]))
        except (ImageNotFound, ConfigurationMissing):
            self.run_spec = None  # it runs all the same; only exec must wait
        self._around.ports_changed()
        return found

    def _sandbox_mark(self) -> str:
        """Return which sandbox the present attempt was started in."""
        try:
            return (self._place / _SANDBOX).read_text()
        except FileNotFoundError:
            return _mark(None)

    # Starting.

    async def _started(self) -> Container | Exit:
        """Start the container, waiting for whatever it needs; an Exit when it cannot run."""
        while True:
            try:
                image = self._node.runtime.image(self.spec["image"])
            except ImageNotFound as error:
                await self._image_missing(error)
                continue
            try:
                if refusal := self._refusal():
                    raise ConfigurationMissing(refusal)
                spec = self._prepared(image)
            except ConfigurationMissing as error:
                self._set(state=Waiting("CreateContainerConfigError", str(error)))
                self._record("Warning", "Failed", f"Error: {error}")
                await self._sources_or(self._node.settings.backoff_seconds)
                continue
            return await self._start(image, spec)

    def _refusal(self) -> str:
        """Return why this container may not be started here; empty when it may."""
        if self._around.refusal:
            return self._around.refusal
        path = next((p for p, c in containers_of(self.pod) if c["name"] == self.name), "spec")
        return "; ".join(container_refusals(self.spec, path, self._node.policy))

    async def _start(self, image: Image, spec: ContainerSpec) -> Container | Exit:
        self._record(
            "Normal", "Pulled", f'Container image "{image.reference}" already present on machine'
        )
        self._set(image_identity=image.identity)
        self.run_spec = spec
        now = self._node.clock.now()
        try:
            container = await self._node.runtime.start(spec)
        except CannotStart as error:
            self._record("Warning", "Failed", f"Error: {error}")
            return Exit(128, now, self._node.clock.now(), reason="StartError", message=str(error))
        self._record("Normal", "Created", f"Created container: {self.name}")
        self._record("Normal", "Started", f"Started container {self.name}")
        groups = self._node.control_groups
        if ignored := unenforced(self.spec, groups.controllers):
            text = f"limits of container {self.name} are not enforced: {', '.join(ignored)}"
            self._record("Warning", "LimitsNotEnforced", f"{text} ({groups.why})")
        return container

    async def _image_missing(self, error: ImageNotFound) -> None:
        reference = self.spec["image"]
        self._failures += 1
        self._set(state=Waiting("ErrImagePull", str(error)))
        self._record("Normal", "Pulling", f'Pulling image "{reference}"')
        self._record("Warning", "Failed", f'Failed to pull image "{reference}": {error}')
        self._record("Warning", "Failed", "Error: ErrImagePull")
        self._set(
            state=Waiting("ImagePullBackOff", f'Back-off pulling image "{reference}": {error}')
        )
        self._record("Normal", "BackOff", f'Back-off pulling image "{reference}"')
        await self._node.clock.sleep(self._delay())

    def _prepared(self, image: Image) -> ContainerSpec:
        """Give the container its ports and return what to run; raises ConfigurationMissing."""
        self._place.mkdir(parents=True, exist_ok=True)
        declared = [
            int(port["containerPort"])
            for port in self.spec.get("ports") or ()
            if port.get("protocol", "TCP") == "TCP"
        ]
        own = self.pod["spec"].get("hostNetwork", False) or self._around.sandbox is not None
        wanted = declared or list(image.ports)
        self.ports = {port: port if own else free_port() for port in wanted}
        (self._place / _PORTS).write_text(json.dumps(self.ports))
        (self._place / _SANDBOX).write_text(_mark(self._around.sandbox))
        (self._place / TERMINATION_LOG).touch()
        self._around.ports_changed()
        return self._assembled(image)

    def _assembled(self, image: Image) -> ContainerSpec:
        return container_spec(
            self._node, self.pod, self.spec, image, self._around, self.ports, self._place
        )

    # While it runs.

    async def _watched(self, container: Container) -> Exit:
        """Probe the container while it runs; returns how it ended."""
        self.running = container
        probed = "startupProbe" in self.spec
        self._set(
            state=Running(container.began),
            identity=container.identity,
            started=not probed,
            ready=not probed and "readinessProbe" not in self.spec,
        )
        end: Exit | None = None
        async with asyncio.TaskGroup() as tasks:
            probes = tasks.create_task(self._probes(container))
            end = await container.wait()
            probes.cancel()
        self.running = None
        group = "" if self.run_spec is None else self.run_spec.confinement.control_group
        if end.code == _KILLED and self._node.control_groups.was_out_of_memory(group):
            end = replace(end, reason="OOMKilled")
        return end

    async def _probes(self, container: Container) -> None:
        hook = (self.spec.get("lifecycle") or {}).get("postStart")
        if hook is not None:
            result = await attempt(hook, self.reach(), _HOOK_SECONDS)
            if not result.success:
                text = f"PostStartHook failed: {shown(result.message)}"
                self._record("Warning", "FailedPostStartHook", text)
                await self._kill(container)
                return
        if "startupProbe" in self.spec:
            await self._startup(container)
        async with asyncio.TaskGroup() as tasks:
            if "livenessProbe" in self.spec:
                tasks.create_task(self._liveness(container))
            if "readinessProbe" in self.spec:
                tasks.create_task(self._readiness())

    async def _startup(self, container: Container) -> None:
        async with asyncio.TaskGroup() as tasks:

            def observe(success: bool) -> None:
                if success:
                    ready = "readinessProbe" not in self.spec
                    self._set(started=True, ready=ready)
                else:
                    tasks.create_task(self._unhealthy(container, "startup"))

            await self._prober("startup", observe).until(True)

    async def _liveness(self, container: Container) -> None:
        async with asyncio.TaskGroup() as tasks:

            def observe(success: bool) -> None:
                if not success:
                    tasks.create_task(self._unhealthy(container, "liveness"))

            await self._prober("liveness", observe).until(False)

    async def _readiness(self) -> None:
        await self._prober("readiness", lambda ready: self._set(ready=ready)).run()

    def _prober(self, kind: str, observe: Callable[[bool], None]) -> Prober:
        def unhealthy(result: Result) -> None:
            text = f"{kind.capitalize()} probe failed: {shown(result.message)}"
            self._record("Warning", "Unhealthy", text)

        return Prober(
            self.spec[f"{kind}Probe"],
            self.reach(),
            self._node.clock,
            on_result=observe,
            unhealthy=unhealthy,
        )

    async def _unhealthy(self, container: Container, kind: str) -> None:
        text = f"Container {self.name} failed {kind} probe, will be restarted"
        self._record("Normal", "Killing", text)
        await self._kill(container)

    async def _kill(self, container: Container) -> None:
        grace = int(self.pod["spec"].get("terminationGracePeriodSeconds", 30))
        await ended_within(container, grace)

    def reach(self) -> Reach:
        """Return how probes and hooks get at this container."""
        names = {
            port["name"]: int(port["containerPort"])
            for port in self.spec.get("ports") or ()
            if port.get("name")
        }
        return Reach(self._dial, self._command, names, self._node.network.connect)

    def _dial(self, port: int) -> Backend | None:
        return self._node.network.pod_port(self.pod["metadata"]["uid"], port)

    async def _command(self, argv: Sequence[str], seconds: float) -> tuple[int, str]:
        if self.run_spec is None:
            return 126, "the container is not running"
        return await run_beside(self._node.runtime, self.run_spec, argv, seconds)

    # The end.

    async def stop(self, grace: float) -> None:
        """End the container: hook, SIGTERM, and SIGKILL once *grace* seconds are over."""
        container = self.running or self._node.runtime.adopt(self._place)
        if container is None or isinstance(self.state.state, Ended):
            return
        self._record("Normal", "Killing", f"Stopping container {self.name}")
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        began = self._node.clock.monotonic()
        if hook is not None and grace > 0:
            await self._before_stop(hook, grace)
        left = grace - (self._node.clock.monotonic() - began)
        self._ended(await ended_within(container, max(left, min(grace, 2.0))))

    async def _before_stop(self, hook: Object, grace: float) -> None:
        if "sleep" in hook:
            await self._node.clock.sleep(min(grace, float(hook["sleep"].get("seconds", 0))))
            return
        result = await attempt(hook, self.reach(), grace)
        if not result.success:
            text = f"PreStopHook failed: {shown(result.message)}"
            self._record("Warning", "FailedPreStopHook", text)

    def _ended(self, result: Exit) -> None:
        identity = self.state.identity
        self._set(
            state=Ended(result, identity, last_words(self.spec, self._place, result)),
            ready=False,
            started=False,
        )

    async def _back_off(self, result: Exit) -> None:
        """Wait before the next attempt: not at all the first time, then longer and longer."""
        ended = self.state.state
        last = ended if isinstance(ended, Ended) else None
        calm = timedelta(seconds=self._node.settings.calm_seconds)
        # What the machine or an edge's stop ended did not fail.
        excused = self._excused or result.reason == LOST
        self._excused = False
        if excused or result.ended - result.began > calm:
            self._failures = 0
        self._set(last=last)
        if self._failures:
            delay = self._delay()
            uid = self.pod["metadata"]["uid"]
            name = f"{self.pod['metadata']['name']}_{self.pod['metadata']['namespace']}({uid})"
            seconds = f"{int(delay)}s" if delay >= 1 else f"{delay:.1f}s"
            text = f"back-off {seconds} restarting failed container={self.name} pod={name}"
            self._set(state=Waiting("CrashLoopBackOff", text))
            text = f"Back-off restarting failed container {self.name} in pod {name}"
            self._record("Warning", "BackOff", text)
            await self._node.clock.sleep(delay)
        self._set(restarts=self._attempt + 1)
        self._failures += 1

    def _delay(self) -> float:
        settings = self._node.settings
        delay: float = settings.backoff_seconds * 2.0 ** min(self._failures - 1, 16)
        return min(settings.max_backoff_seconds, delay)

    # Small things.

    async def _sources_or(self, seconds: float) -> None:
        """Wait until something pods refer to has changed, at most so long."""
        self._around.sources_changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._around.sources_changed.wait()

    def _set(self, **changes: object) -> None:
        changed = self.state.but(**changes)
        if changed != self.state:
            self.state = changed
            self._around.changed()

    def _record(self, kind: EventType, reason: str, message: str) -> None:
        self._node.recorder.record(self.pod, kind, reason, message)


def _mark(sandbox: Sandbox | None) -> str:
    """Return what tells one sandbox of a pod from a later one."""
    return "" if sandbox is None else str(sandbox.epoch)
