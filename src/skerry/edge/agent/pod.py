"""The life of one pod on this node, from its binding to its last trace.

A worker brings the pod's volumes up, runs init containers in order and then the others side by
side, tells the server what it sees, and in the end stops everything, removes the pod's directory
and finishes the deletion. It may be cancelled at any moment (the agent is going): processes then
go on, and the next agent's worker takes them over from the pod's directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.container import ContainerLife
from skerry.edge.agent.container_spec import Surroundings
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.environment import Facts
from skerry.edge.agent.network import PodPorts
from skerry.edge.agent.pod_api import finish_deletion, write_status
from skerry.edge.agent.pod_files import files_in_etc, host_name, write_files
from skerry.edge.agent.pod_network import PodNetwork
from skerry.edge.agent.pod_volumes import PodVolumes
from skerry.edge.agent.refusals import REASON as REFUSED
from skerry.edge.agent.refusals import refusals
from skerry.edge.agent.runtime import CannotStart, Exit, Mount, Sandbox
from skerry.edge.agent.status import (
    ContainerState,
    Ended,
    PodState,
    Waiting,
    initialized,
    pod_status,
    sidecar_names,
)
from skerry.edge.agent.termination import restarting
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.workloads.pods import is_finished

_FACTS = "pod.json"
_ETC = "etc"
# How often tokens and followed volumes are looked after when nothing announces a change.
_UPKEEP_SECONDS = 60.0
_RETRY_SECONDS = 1.0


class PodWorker:
    """Runs one pod; ``update`` tells it of changes, ``end`` that the pod must go."""

    def __init__(self, node: NodeContext, pod: Object) -> None:
        self._node = node
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self._directory = node.root / self.uid
        self._volumes = PodVolumes(node, self._directory / "volumes")
        self._changed = asyncio.Event()
        self._sources_changed = asyncio.Event()
        self._ending = asyncio.Event()
        self._deleted = False
        self._started = node.clock.now()
        self._sandboxed = False
        self._failure: tuple[str, str] | None = None
        self._address = self._remembered_address()
        around = self._around = self._surroundings()
        spec = pod["spec"]
        self._initial = [
            ContainerLife(node, pod, item, around) for item in spec.get("initContainers") or ()
        ]
        self._containers = [ContainerLife(node, pod, item, around) for item in spec["containers"]]
        # Added while the pod runs, to look at it; they come last and never again.
        self._added: list[ContainerLife] = []
        self._more_added = asyncio.Event()
        self._take_added()
        self._ran_before = any(life.was_started for life in self._lives)

    # What the agent calls.

    def update(self, pod: Object) -> None:
        """Take note of a newer state of the pod."""
        self.pod = pod
        for life in self._lives:
            life.pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            self._ending.set()
        self._take_added()
        self._sources_changed.set()

    def _take_added(self) -> None:
        known = {life.name for life in self._added}
        for item in self.pod["spec"].get("ephemeralContainers") or ():
            if item["name"] not in known:
                self._added.append(ContainerLife(self._node, self.pod, item, self._around))
                self._more_added.set()

    def sources_changed(self) -> None:
        """Look again at what the pod refers to."""
        self._sources_changed.set()

    def end(self) -> None:
        """The pod is gone from the server: stop it and leave nothing."""
        self._deleted = True
        self._ending.set()

    def anew(self) -> PodWorker:
        """Return a worker that begins again where this one was interrupted."""
        fresh = PodWorker(self._node, self.pod)
        fresh._deleted = self._deleted
        if self._ending.is_set():
            fresh._ending.set()
        return fresh

    def life(self, container: str) -> ContainerLife | None:
        """Return the life of a container by name."""
        return next((life for life in self._lives if life.name == container), None)

    @property
    def _lives(self) -> list[ContainerLife]:
        return [*self._initial, *self._containers, *self._added]

    def _processes_of(self, container: str) -> str:
        life = self.life(container)
        return "" if life is None or life.running is None else life.running.processes

    async def run(self) -> None:
        """Run the pod until nothing of it is left."""
        async with asyncio.TaskGroup() as tasks:
            reporting = tasks.create_task(self._report_status())
            living = tasks.create_task(self._guarded_life())
            ending = tasks.create_task(self._ending.wait())
            await ending
            living.cancel()
            await asyncio.wait([living])
            await self._stop(self._grace())
            reporting.cancel()
        await self._finish()

    # Living.

    async def _guarded_life(self) -> None:
        """Live, unless the pod ended before this agent came or its time is up."""
        self._network_changed()
        self._changed.set()
        if "deletionTimestamp" in self.pod["metadata"]:
            return
        if is_finished(self.pod):
            await self._remember_end()
            return
        try:
            async with asyncio.timeout(self._time_left()):
                await self._live()
        except TimeoutError:
            text = "Pod was active on the node longer than the specified deadline"
            self._node.recorder.record(self.pod, "Normal", "DeadlineExceeded", text)
            self._failure = ("DeadlineExceeded", text)
            await self._stop(self._grace())
            self._changed.set()

    async def _remember_end(self) -> None:
        """Know again how the containers of a finished pod ended."""
        for life in self._lives:
            await life.recall()

    def _time_left(self) -> float | None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return None
        began = (self.pod.get("status") or {}).get("startTime")
        passed = 0.0
        if began:
            passed = (self._node.clock.now() - parse_rfc3339(began)).total_seconds()
        return max(0.0, float(seconds) - passed)

    async def _live(self) -> None:
        await self._admitted()
        await self._mount_all()
        await self._enter_network()
        self._sandboxed = True
        self._changed.set()
        async with asyncio.TaskGroup() as tasks:
            upkeep = tasks.create_task(self._keep_volumes())
            sidecars = await self._initialize(tasks)
            if sidecars is not None:
                added = tasks.create_task(self._run_added())
                await self._run_containers()
                await self._stop_added(added)
                for name, task in sidecars:
                    await self._stop_sidecar(name, task)
            upkeep.cancel()

    async def _admitted(self) -> None:
        """Wait for ever if this node refuses the pod, and say why.

        A pod that ran before this agent came goes on: an agent of a newer version ends nothing.
        Whatever of it must be started anew is refused then.
        """
        found = refusals(self.pod, self._node.policy)
        self._around.refusal = "; ".join(found)
        if not found:
            return
        text = f"Pod was refused: {self._around.refusal}"
        self._node.recorder.record(self.pod, "Warning", REFUSED, text)
        self._changed.set()
        if not self._ran_before:
            await self._ending.wait()

    async def _initialize(
        self, tasks: asyncio.TaskGroup
    ) -> list[tuple[ContainerLife, asyncio.Task[Exit]]] | None:
        """Run init containers in order; returns the sidecars, None when one failed for good."""
        policy = self.pod["spec"].get("restartPolicy", "Always")
        again = restarting("OnFailure" if policy == "Always" else policy)
        names = sidecar_names(self.pod)
        sidecars = []
        for life in self._initial:
            if life.name in names:
                task = tasks.create_task(life.run(lambda _: True))
                sidecars.append((life, task))
                await self._until_started(life)
            elif (await life.run(again)).code != 0:
                return None
        return sidecars

    async def _until_started(self, life: ContainerLife) -> None:
        while not life.state.started:
            self._state_moved.clear()
            await self._state_moved.wait()

    async def _run_containers(self) -> None:
        again = restarting(self.pod["spec"].get("restartPolicy", "Always"))
        async with asyncio.TaskGroup() as tasks:
            for life in self._containers:
                tasks.create_task(life.run(again))

    async def _run_added(self) -> None:
        """Run what is added to the pod, each once, until cancelled."""
        begun = 0
        async with asyncio.TaskGroup() as tasks:
            while True:
                for life in self._added[begun:]:
                    tasks.create_task(life.run(restarting("Never")))
                begun = len(self._added)
                self._more_added.clear()
                await self._more_added.wait()

    async def _stop_added(self, running: asyncio.Task[None]) -> None:
        running.cancel()
        await asyncio.wait([running])
        for life in self._added:
            await life.stop(0)

    async def _stop_sidecar(self, life: ContainerLife, task: asyncio.Task[Exit]) -> None:
        task.cancel()
        await asyncio.wait([task])
        await life.stop(self._grace())

    # Volumes.

    async def _mount_all(self) -> None:
        """Have every volume, waiting for what is missing and saying so.

        A pod that ran before this agent came is not kept waiting: its containers are taken over,
        and only a new start needs the volumes again.
        """
        while not await self._mounted() and not self._ran_before:
            await self._sources_or(self._node.settings.mount_retry_seconds)

    async def _mounted(self) -> bool:
        """Have every volume that can be had; False when one cannot, which is reported."""
        self._sources_changed.clear()
        failures = await self._volumes.set_up(self.pod, self._facts())
        for text in failures:
            self._node.recorder.record(self.pod, "Warning", "FailedMount", text)
        return not failures

    async def _keep_volumes(self) -> None:
        """Follow what written volumes are made of, until cancelled."""
        if not self._volumes.need_upkeep(self.pod):
            return
        while True:
            await self._sources_or(_UPKEEP_SECONDS)
            # What was mounted stays as it is when that fails, as kubelet leaves it.
            await self._mounted()

    async def _sources_or(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._sources_changed.wait()

    def _facts(self) -> Facts:
        node = self._node
        return Facts(self.pod, node.name, node.host_ip, self._address, node.allocatable)

    def _mounts_of(self, container: Object, values: Mapping[str, str]) -> list[Mount]:
        found = self._volumes.mounts_of(container, values)
        sandbox = self._around.sandbox
        if sandbox is None or not sandbox.network:
            return found
        return [*files_in_etc(self._directory / _ETC, {mount.path for mount in found}), *found]

    # Network.

    async def _enter_network(self) -> None:
        """Have namespaces for the pod, where the node gives pods any; waits until it can."""
        while self._node.network.inside is not None:
            try:
                found = self._attached(self._node.network.inside)
                self._around.sandbox = replace(found, host_name=host_name(self.pod))
                write_files(self._directory / _ETC, self.pod, self._address, self._node.dns_address)
            except (CannotStart, OSError) as error:
                text = f"Failed to create pod sandbox: {error}"
                self._node.recorder.record(self.pod, "Warning", "FailedCreatePodSandBox", text)
                await self._node.clock.sleep(_RETRY_SECONDS)
            else:
                self._network_changed()
                return

    def _attached(self, network: PodNetwork) -> Sandbox:
        if self.pod["spec"].get("hostNetwork"):
            return network.outside()
        return network.attach(self.uid, self._address)

    def _surroundings(self) -> Surroundings:
        self._state_moved = asyncio.Event()
        return Surroundings(
            self._directory / "containers",
            self._facts(),
            self._mounts_of,
            self._moved,
            self._network_changed,
            self._sources_changed,
            self._processes_of,
        )

    def _moved(self) -> None:
        self._changed.set()
        self._state_moved.set()

    def _remembered_address(self) -> str:
        """Return the pod's address, the same again after a restart of the agent."""
        if self.pod["spec"].get("hostNetwork"):
            return self._node.host_ip
        path = self._directory / _FACTS
        if known := remembered_address(self._directory):
            self._node.network.reserve(self.uid, known)
            return known
        address = self._node.network.fresh_address(self._node.number, self.uid)
        facts: dict[str, Any] = {
            "address": address,
            "namespace": self.pod["metadata"]["namespace"],
            "name": self.pod["metadata"]["name"],
        }
        # On a full disk the pod has this address all the same, until the agent goes.
        with contextlib.suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(facts))
        return address

    def _network_changed(self) -> None:
        ports: dict[int, int] = {}
        host_ports: dict[int, int] = {}
        for life in self._lives:
            ports |= life.ports
            for port in life.spec.get("ports") or ():
                if port.get("hostPort") and port.get("protocol", "TCP") == "TCP":
                    host_ports[int(port["hostPort"])] = int(port["containerPort"])
        inside = self._around.sandbox is not None and bool(self._around.sandbox.network)
        joined = PodPorts(self._address, self._node.name, ports, host_ports, inside)
        self._node.network.join(self.uid, joined)

    # Status.

    def _state(self) -> PodState:
        return PodState(
            tuple(self._shown(life) for life in self._initial),
            tuple(self._shown(life) for life in self._containers),
            self._node.host_ip,
            self._address if self._sandboxed else "",
            self._began(),
            self._sandboxed,
            self._failure,
            refusal=self._around.refusal,
            added=tuple(life.state for life in self._added),
        )

    def _shown(self, life: ContainerLife) -> ContainerState:
        """Return a container's state; one that waits for init containers says so."""
        state = life.state
        waiting = state.state
        if self._around.refusal and waiting == Waiting("ContainerCreating"):
            return state.but(state=Waiting("CreateContainerConfigError", self._around.refusal))
        if not self._initial or not isinstance(waiting, Waiting):
            return state
        if waiting.reason != "ContainerCreating" or life is self._first_open():
            return state
        initial, others = (tuple(i.state for i in g) for g in (self._initial, self._containers))
        if initialized(self.pod, PodState(initial, others, "")):
            return state
        return state.but(state=Waiting("PodInitializing"))

    def _first_open(self) -> ContainerLife | None:
        return next((i for i in self._initial if not isinstance(i.state.state, Ended)), None)

    def _began(self) -> Any:
        known = (self.pod.get("status") or {}).get("startTime")
        return parse_rfc3339(known) if known else self._started

    async def _report_status(self) -> None:
        """Write the status whenever it changes, until cancelled."""
        sent: Object | None = None
        while True:
            await self._changed.wait()
            self._changed.clear()
            if is_finished(self.pod) and "deletionTimestamp" not in self.pod["metadata"]:
                continue  # an end is final; only the deletion may still be reported
            status = pod_status(self.pod, self._state(), self._node.clock.now())
            if status == sent:
                continue
            if await self._written(status):
                sent = status

    async def _written(self, status: Object) -> bool:
        if await write_status(self._node, self.pod, status):
            return True
        await self._node.clock.sleep(_RETRY_SECONDS)
        self._changed.set()
        return False

    # The end.

    def _grace(self) -> float:
        metadata = self.pod["metadata"]
        if "deletionGracePeriodSeconds" in metadata:
            return float(metadata["deletionGracePeriodSeconds"] or 0)
        return float(self.pod["spec"].get("terminationGracePeriodSeconds", 30))

    async def _stop(self, grace: float) -> None:
        """Stop every container: the main ones side by side, then sidecars, last one first."""
        async with asyncio.TaskGroup() as tasks:
            for life in (*self._containers, *self._added):
                tasks.create_task(life.stop(grace))
        for life in reversed(self._initial):
            await life.stop(min(grace, 10.0))

    async def _finish(self) -> None:
        """Tell the last status, remove every trace, and let the server forget the pod."""
        self._node.network.leave(self.uid)
        if self._node.network.inside is not None:
            self._node.network.inside.detach(self.uid)
        self._node.sources.forget_tokens(self.uid)
        self._node.control_groups.remove(self.uid)
        if not self._deleted:
            await self._written(pod_status(self.pod, self._last_state(), self._node.clock.now()))
        await asyncio.get_running_loop().run_in_executor(None, _removed, self._directory)
        if self._deleted:
            return
        while not await finish_deletion(self._node, self.pod):
            await self._node.clock.sleep(_RETRY_SECONDS)

    def _last_state(self) -> PodState:
        """Return the state to be reported last: nothing of the pod is held any more."""
        return replace(self._state(), sandboxed=False, over=True)


def remembered_address(directory: Path) -> str:
    """Return the address a pod had when its directory was made; empty when it is not known."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError, KeyError):
        return str(json.loads((directory / _FACTS).read_text())["address"])
    return ""


def _removed(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
