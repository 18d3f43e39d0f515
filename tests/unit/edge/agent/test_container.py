"""One container over all its attempts, in virtual time and without a process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.container import ContainerLife
from skerry.edge.agent.container_spec import Surroundings
from skerry.edge.agent.environment import Facts
from skerry.edge.agent.process_container import LOST
from skerry.edge.agent.runtime import Exit, Sandbox
from skerry.edge.agent.status import Ended, Running, Waiting
from tests.kit.agent.nodes import HeldNode, container, pod
from tests.kit.sim.loop import virtual


class Desk:
    """A node, one pod of one container, and its life."""

    def __init__(self, root: Path, **spec: Any) -> None:
        self.node = HeldNode(root)
        self.runtime = self.node.runtime
        self.pod = pod(container(**spec))
        self.sources_changed = asyncio.Event()
        self.changes = 0
        context = self.node.context
        self.around = Surroundings(
            root / "containers",
            Facts(self.pod, context.name, context.host_ip, "10.244.1.2", {}),
            lambda spec, values: [],
            self._changed,
            lambda: None,
            self.sources_changed,
            lambda name: "",
        )
        self.life = self.born()

    def _changed(self) -> None:
        self.changes += 1

    def born(self) -> ContainerLife:
        """Return a life as a new agent begins it."""
        spec: Object = self.pod["spec"]["containers"][0]
        return ContainerLife(self.node.context, self.pod, spec, self.around)

    @asynccontextmanager
    async def living(self, *, restarts: bool = True) -> AsyncIterator[asyncio.Task[Exit]]:
        task = asyncio.create_task(self.life.run(lambda _: restarts))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, reason: str) -> None:
        """Wait until the container waits for that reason."""
        while getattr(self.life.state.state, "reason", "") != reason:
            await asyncio.sleep(0.01)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()


@virtual
async def test_a_container_runs_ends_and_is_not_restarted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.living(restarts=False) as task:
        held = await desk.runtime.running(1)
        await asyncio.sleep(0)
        state = desk.life.state
        assert (state.state, state.ready, state.started) == (Running(held.began), True, True)
        held.end(3)
        assert (await task).code == 3
    ended = desk.life.state
    assert isinstance(ended.state, Ended)
    assert (ended.ready, ended.restarts) == (False, 0)
    assert desk.node.recorder.reasons == ["Pulled", "Created", "Started"]


@virtual
async def test_the_first_restart_is_at_once_and_the_next_wait_longer_and_longer(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    began: list[float] = []
    async with desk.living():
        for number in range(1, 6):
            held = await desk.runtime.running(number)
            began.append(desk.now)
            await asyncio.sleep(0)
            held.end(1)
    waits = [round(after - before) for before, after in pairwise(began)]
    assert waits == [0, 10, 20, 40]
    assert desk.life.state.restarts == 4
    assert "BackOff" in desk.node.recorder.reasons


@virtual
async def test_a_container_that_ran_calmly_has_its_delays_forgotten(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.living():
        for number in (1, 2):
            (await desk.runtime.running(number)).end(1)
        held = await desk.runtime.running(3)
        await asyncio.sleep(601)
        held.end(1)
        ended = desk.now
        await desk.runtime.running(4)
        assert desk.now == ended


@virtual
async def test_what_the_machine_ended_did_not_fail(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.living():
        for number in (1, 2):
            (await desk.runtime.running(number)).end(1)
        (await desk.runtime.running(3)).end(137, reason=LOST)
        lost = desk.now
        await desk.runtime.running(4)
        assert desk.now == lost


@virtual
async def test_every_attempt_has_a_directory_and_the_one_before_the_last_is_removed(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    async with desk.living():
        for number in (1, 2):
            (await desk.runtime.running(number)).end(1)
        await desk.runtime.running(3)
        places = sorted(path.name for path in (tmp_path / "containers" / "c").iterdir())
    assert places == ["1", "2"]
    assert [spec.directory.name for spec in desk.runtime.started] == ["0", "1", "2"]


@virtual
async def test_an_agent_that_comes_back_takes_over_what_runs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.living():
        (await desk.runtime.running(1)).end(7)
        held = await desk.runtime.running(2)
        await asyncio.sleep(0)
        ports = desk.life.ports
    desk.life = desk.born()
    assert desk.life.was_started
    async with desk.living(restarts=False) as task:
        await asyncio.sleep(0.1)
        state = desk.life.state
        assert state.identity == held.identity
        assert state.restarts == 1
        assert state.last is not None
        assert state.last.exit.code == 7
        assert desk.life.ports == ports
        held.end(0)
        assert (await task).code == 0
    assert len(desk.runtime.started) == 2


@virtual
async def test_what_runs_in_a_sandbox_of_before_is_killed_and_started_at_once(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    async with desk.living():
        held = await desk.runtime.running(1)
        await asyncio.sleep(0)
    desk.around.sandbox = Sandbox("/proc/1/ns/user", "/proc/1/ns/net", epoch=9)
    desk.life = desk.born()
    async with desk.living():
        came = desk.now
        await desk.runtime.running(2)
        assert desk.now == came
    assert held.signals == [signal.SIGKILL]
    assert "SandboxChanged" in desk.node.recorder.reasons


@virtual
async def test_how_a_finished_pods_container_ended_is_known_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.living(restarts=False) as task:
        (await desk.runtime.running(1)).end(4)
        await task
    desk.life = desk.born()
    await desk.life.recall()
    assert isinstance(desk.life.state.state, Ended)
    assert desk.life.state.state.exit.code == 4


# -- what keeps it from starting -------------------------------------------------------------------


@virtual
async def test_an_image_that_is_missing_is_asked_for_again_ever_more_rarely(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.runtime.missing = {"c:1"}
    async with desk.living():
        await desk.until("ImagePullBackOff")
        state = desk.life.state.state
        assert isinstance(state, Waiting)
        assert state.message == 'Back-off pulling image "c:1": no entry for c:1'
        await asyncio.sleep(25)
        assert desk.node.recorder.reasons.count("Pulling") == 2  # at 0 and 10, next at 30
        desk.runtime.missing = set()
        await desk.runtime.running(1)
        assert round(desk.now) == 30


@virtual
async def test_configuration_that_is_missing_is_waited_for_and_looked_for_when_it_comes(
    tmp_path: Path,
) -> None:
    reference = {"configMapKeyRef": {"name": "settings", "key": "a"}}
    desk = Desk(tmp_path, env=[{"name": "A", "valueFrom": reference}])
    async with desk.living():
        await desk.until("CreateContainerConfigError")
        metadata = {"name": "settings", "namespace": "ns", "uid": "m", "resourceVersion": "1"}
        desk.node.sources.config_maps.apply("ADDED", {"metadata": metadata, "data": {"a": "1"}})
        changed = desk.now
        desk.sources_changed.set()
        await desk.runtime.running(1)
        assert desk.now == changed
    assert desk.runtime.started[0].environment["A"] == "1"


@virtual
async def test_a_program_that_cannot_be_started_has_ended_by_that(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.runtime.failures = ["no such program"]
    async with desk.living(restarts=False) as task:
        result = await task
    assert (result.code, result.reason, result.message) == (128, "StartError", "no such program")


@virtual
async def test_a_pod_that_is_refused_starts_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.around.refusal = "spec.hostPID is not for this node"
    async with desk.living():
        await desk.until("CreateContainerConfigError")
    assert desk.runtime.started == []


# -- the end ---------------------------------------------------------------------------------------


@virtual
async def test_a_container_is_asked_to_end_and_killed_when_its_time_is_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.runtime.stubborn = True
    async with desk.living(restarts=False):
        held = await desk.runtime.running(1)
        await asyncio.sleep(0)
        began = desk.now
        await desk.life.stop(20)
        assert round(desk.now - began) == 20
    assert held.signals == [signal.SIGTERM, signal.SIGKILL]


@virtual
async def test_the_hook_before_the_stop_takes_its_time_from_the_grace_period(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, lifecycle={"preStop": {"sleep": {"seconds": 15}}})
    desk.runtime.stubborn = True
    async with desk.living(restarts=False):
        held = await desk.runtime.running(1)
        await asyncio.sleep(0)
        began = desk.now
        await desk.life.stop(20)
        assert round(desk.now - began) == 20
    assert held.signals == [signal.SIGTERM, signal.SIGKILL]


@virtual
async def test_what_has_ended_or_never_ran_is_not_stopped(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.life.stop(10)
    async with desk.living(restarts=False) as task:
        held = await desk.runtime.running(1)
        held.end(0)
        await task
    await desk.life.stop(10)
    assert held.signals == []
    assert "Killing" not in desk.node.recorder.reasons


@virtual
async def test_a_hook_that_fails_after_the_start_ends_the_container(tmp_path: Path) -> None:
    desk = Desk(tmp_path, lifecycle={"postStart": {"exec": {"command": ["false"]}}})
    async with desk.living(restarts=False) as task:
        held = await desk.runtime.running(1)
        await task
    assert held.signals == [signal.SIGTERM]
    assert "FailedPostStartHook" in desk.node.recorder.reasons


@virtual
async def test_a_probe_that_keeps_failing_ends_the_container_and_readiness_follows_its_own(
    tmp_path: Path,
) -> None:
    probe = {"exec": {"command": ["check"]}, "periodSeconds": 10, "failureThreshold": 3}
    desk = Desk(tmp_path, livenessProbe=probe, readinessProbe=probe)
    async with desk.living(restarts=False) as task:
        held = await desk.runtime.running(1)
        await asyncio.sleep(0)
        assert not desk.life.state.ready
        await task
        assert 20 <= round(desk.now) <= 30
    assert held.signals == [signal.SIGTERM]
    assert "Killing" in desk.node.recorder.reasons
