"""A node without processes: containers that a test ends, for what the agent makes of them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.context import NodeContext
from skerry.edge.agent.network import Network
from skerry.edge.agent.runtime import (
    Abilities,
    CannotStart,
    Container,
    ContainerSpec,
    Exit,
    Image,
    ImageNotFound,
)
from skerry.edge.agent.sources import PodSources
from skerry.kit.clock import Clock, LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.plan import EventType
from skerry.runtime.client import Client
from skerry.runtime.events import EventRecorder
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.twin import Twin


class HeldContainer:
    """Runs until a test, or a signal, ends it; one that is *stubborn* ignores SIGTERM."""

    def __init__(self, clock: Clock, identity: str, *, stubborn: bool = False) -> None:
        self._clock = clock
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._stubborn = stubborn
        self.identity = identity
        self.began = clock.now()
        self.processes = f"/proc/{identity}/ns/pid"
        self.signals: list[int] = []

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        self.signals.append(number)
        if number == signal.SIGKILL or not self._stubborn:
            self.end(128 + number, signal=number)

    def end(self, code: int, **more: Any) -> None:
        if not self._ended.done():
            self._ended.set_result(Exit(code, self.began, self._clock.now(), **more))


class HeldRuntime:
    """Starts what a test holds: ``started`` has the specifications, ``containers`` what runs."""

    name, version, isolation = "held", "1", "none"

    def __init__(self, clock: Clock, **abilities: Any) -> None:
        self._clock = clock
        self.abilities = Abilities(**abilities)
        self.missing: set[str] = set()
        self.failures: list[str] = []
        self.started: list[ContainerSpec] = []
        self.containers: list[HeldContainer] = []
        self.recorded: dict[Path, HeldContainer] = {}
        self.stubborn = False
        self._moved = asyncio.Event()

    def image(self, reference: str) -> Image:
        if reference in self.missing:
            raise ImageNotFound(f"no entry for {reference}")
        return Image(reference, f"{reference}@sha256:0", ("run",), ports=(80,))

    async def start(self, spec: ContainerSpec) -> Container:
        if self.failures:
            raise CannotStart(self.failures.pop(0))
        self.started.append(spec)
        container = HeldContainer(
            self._clock, f"held://{len(self.started)}", stubborn=self.stubborn
        )
        self.containers.append(container)
        self.recorded[spec.directory] = container
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        return container

    def adopt(self, directory: Path) -> Container | None:
        return self.recorded.get(directory)

    def beside(self, spec: ContainerSpec, argv: Sequence[str]) -> ContainerSpec:
        raise CannotStart("nothing runs beside what is held")

    async def running(self, count: int) -> HeldContainer:
        """Wait until so many containers were started; return the last."""
        while len(self.containers) < count:
            await self._moved.wait()
        return self.containers[count - 1]


class KeptRecorder(EventRecorder):
    """Keeps events for a test to read."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, "kubelet")
        self.said: list[tuple[str, str]] = []

    def record(
        self,
        about: Object,
        type: EventType,  # noqa: A002
        reason: str,
        message: str,
        *,
        controller: str = "",
        action: str = "",
    ) -> None:
        self.said.append((reason, message))

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.said]


class HeldNode:
    """One node's parts over a ``Twin``."""

    def __init__(self, root: Path, **more: Any) -> None:
        self.clock = LoopClock()
        self.server = Twin(clock=self.clock)
        self.client = Client(self.server, clock=self.clock)
        self.runtime = HeldRuntime(self.clock, **more.pop("abilities", {}))
        self.recorder = KeptRecorder(self.client)
        self.factory = InformerFactory(self.client, ids=SeededIds(1))
        self.sources = PodSources(self.client, self.factory, root / "claims")
        self.context = NodeContext(
            "node-1",
            1,
            "172.18.0.2",
            root / "node",
            self.client,
            self.runtime,
            Network(),
            self.sources,
            self.recorder,
            **more,
        )


def pod(*containers: Object, **spec: Any) -> Object:
    """Return a pod of the namespace ``ns``."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "ns", "uid": "u1", "resourceVersion": "1"},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def container(name: str = "c", **more: Any) -> Object:
    return {"name": name, "image": f"{name}:1", **more}
