"""One pod from its binding to its last trace, in virtual time and without a process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from skerry.api.objects import Object
from skerry.edge.agent.pod import PodWorker, remembered_address
from skerry.runtime.transport import TransportError
from tests.kit.agent.nodes import HeldContainer, HeldNode, container, pod
from tests.kit.at_once import AtOnce
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Place

PLACE = Place("", "pods", "", "ns", "web")


class Desk:
    """A node and a pod that its server knows."""

    def __init__(self, root: Path, whole: Object) -> None:
        self.node = HeldNode(root)
        self.runtime = self.node.runtime
        self.server = self.node.server
        self.server.objects[Place("", "namespaces", "", "", "ns")] = {"metadata": {"name": "ns"}}
        self.server.objects[PLACE] = whole
        self.pod = whole
        self.directory = self.node.context.root / "u1"
        asyncio.get_running_loop().set_default_executor(AtOnce())
        self.worker = PodWorker(self.node.context, whole)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.worker.run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def delete(self, grace: int = 30) -> None:
        """Ask for the pod's end, as a server tells the agent of it."""
        metadata = {
            **self.server.objects[PLACE]["metadata"],
            "deletionTimestamp": "2030-01-01T00:01:00Z",
            "deletionGracePeriodSeconds": grace,
        }
        whole = {**self.server.objects[PLACE], "metadata": metadata}
        self.server.objects[PLACE] = whole
        self.worker.update(whole)

    async def status(self, **wanted: Any) -> Object:
        """Wait for a status with these fields."""
        while True:
            found: Object = self.server.objects[PLACE].get("status") or {}
            if all(found.get(key) == value for key, value in wanted.items()):
                return found
            await asyncio.sleep(0.01)

    async def started(self, count: int) -> HeldContainer:
        held = await self.runtime.running(count)
        await asyncio.sleep(0)
        return held

    @property
    def names(self) -> list[str]:
        """Return the containers that were started, in order."""
        return [spec.directory.parent.name for spec in self.runtime.started]


@virtual
async def test_a_pod_runs_and_says_so_and_leaves_nothing_when_it_is_deleted(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pod())
    async with desk.running() as task:
        held = await desk.started(1)
        status = await desk.status(phase="Running")
        assert status["podIP"] == remembered_address(desk.directory)
        desk.delete()
        await task
    assert held.signals == [signal.SIGTERM]
    assert not desk.directory.exists()
    assert PLACE not in desk.server.objects
    assert desk.node.context.network.pod_port("u1", 80) is None


@virtual
async def test_init_containers_run_one_after_the_other_and_before_the_others(
    tmp_path: Path,
) -> None:
    whole = pod(container("app"), initContainers=[container("one"), container("two")])
    desk = Desk(tmp_path, whole)
    async with desk.running():
        for count, name in enumerate(("one", "two"), start=1):
            held = await desk.started(count)
            assert desk.names[-1] == name
            await asyncio.sleep(5)
            assert len(desk.names) == count
            held.end(0)
        await desk.started(3)
    assert desk.names == ["one", "two", "app"]


@virtual
async def test_an_init_container_that_fails_is_run_again_unless_the_pod_never_restarts(
    tmp_path: Path,
) -> None:
    whole = pod(container("app"), initContainers=[container("one")], restartPolicy="Never")
    desk = Desk(tmp_path, whole)
    async with desk.running():
        (await desk.started(1)).end(1)
        await desk.status(phase="Failed")
    assert desk.names == ["one"]


@virtual
async def test_a_sidecar_is_started_first_and_stopped_last(tmp_path: Path) -> None:
    sidecar = container("proxy", restartPolicy="Always")
    whole = pod(container("app"), initContainers=[sidecar], restartPolicy="Never")
    desk = Desk(tmp_path, whole)
    async with desk.running():
        proxy = await desk.started(1)
        app = await desk.started(2)
        assert desk.names == ["proxy", "app"]
        app.end(0)
        await desk.status(phase="Succeeded")
    assert proxy.signals == [signal.SIGTERM]


@virtual
async def test_a_deleted_pods_sidecars_end_after_its_containers_and_last_one_first(
    tmp_path: Path,
) -> None:
    sidecars = [container(name, restartPolicy="Always") for name in ("one", "two")]
    desk = Desk(tmp_path, pod(container("app"), initContainers=sidecars))
    desk.runtime.stubborn = True
    async with desk.running() as task:
        app = await desk.started(3)
        one, two, _ = desk.runtime.containers
        desk.delete(grace=5)
        seen = []
        for _ in range(4):
            await asyncio.sleep(4)
            seen.append([len(each.signals) for each in (app, two, one)])
        await task
    assert seen == [[1, 0, 0], [2, 1, 0], [2, 2, 1], [2, 2, 2]]


@virtual
async def test_a_sidecar_that_is_restarted_does_not_make_the_pod_pending_again(
    tmp_path: Path,
) -> None:
    sidecar = container("proxy", restartPolicy="Always")
    desk = Desk(tmp_path, pod(container("app"), initContainers=[sidecar]))
    async with desk.running():
        proxy = await desk.started(1)
        await desk.started(2)
        await desk.status(phase="Running")
        proxy.end(1)
        again = await desk.started(3)
        again.end(1)  # now it waits for its next start
        await asyncio.sleep(1)
        status = desk.server.objects[PLACE]["status"]
        assert status["initContainerStatuses"][0]["restartCount"] == 1
        assert status["phase"] == "Running"
    assert desk.names == ["proxy", "app", "proxy"]


@virtual
async def test_containers_end_side_by_side_within_the_grace_period(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pod(container("a"), container("b")))
    desk.runtime.stubborn = True
    async with desk.running() as task:
        await desk.started(2)
        began = asyncio.get_running_loop().time()
        desk.delete(grace=12)
        await task
        assert round(asyncio.get_running_loop().time() - began) == 12


@virtual
async def test_a_pod_whose_time_is_up_fails_and_is_stopped(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pod(activeDeadlineSeconds=60))
    async with desk.running():
        held = await desk.started(1)
        status = await desk.status(phase="Failed")
        assert status["reason"] == "DeadlineExceeded"
        assert round(asyncio.get_running_loop().time()) == 60
    assert held.signals == [signal.SIGTERM]
    assert "DeadlineExceeded" in desk.node.recorder.reasons


@virtual
async def test_an_agent_that_goes_leaves_its_pods_running_and_the_next_takes_them_over(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, pod())
    async with desk.running():
        held = await desk.started(1)
        await desk.status(phase="Running")
        address = remembered_address(desk.directory)
    assert held.signals == []
    desk.worker = PodWorker(desk.node.context, desk.server.objects[PLACE])
    async with desk.running() as task:
        await asyncio.sleep(1)
        assert (await desk.status(phase="Running"))["podIP"] == address
        assert len(desk.runtime.started) == 1
        desk.delete()
        await task
    assert held.signals == [signal.SIGTERM]


@virtual
async def test_a_pod_that_is_over_is_not_run_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {**pod(), "status": {"phase": "Succeeded"}})
    async with desk.running():
        await asyncio.sleep(60)
    assert desk.runtime.started == []
    assert desk.server.objects[PLACE]["status"] == {"phase": "Succeeded"}


@virtual
async def test_a_pod_that_is_gone_from_the_server_is_stopped_without_a_word_to_it(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, pod())
    async with desk.running() as task:
        held = await desk.started(1)
        await desk.status(phase="Running")
        desk.server.requests.clear()
        desk.worker.end()
        await task
    assert held.signals == [signal.SIGTERM]
    assert not desk.directory.exists()
    assert not [path for method, path, _ in desk.server.requests if method == "DELETE"]


@virtual
async def test_a_pod_that_asks_for_too_much_is_refused_and_says_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pod(hostNetwork=True))
    async with desk.running() as task:
        while not (desk.server.objects[PLACE].get("status") or {}).get("containerStatuses"):
            await asyncio.sleep(0.01)
        await asyncio.sleep(60)
        assert desk.runtime.started == []
        status = desk.server.objects[PLACE]["status"]
        waiting = status["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert "hostNetwork" in waiting["message"]
        desk.delete()
        await task
    assert PLACE not in desk.server.objects


@virtual
async def test_a_volume_that_is_missing_is_waited_for_and_reported(tmp_path: Path) -> None:
    volume = {"name": "v", "configMap": {"name": "settings"}}
    mount = {"name": "v", "mountPath": "/v"}
    desk = Desk(tmp_path, pod(container(volumeMounts=[mount]), volumes=[volume]))
    async with desk.running():
        await asyncio.sleep(5)
        assert desk.runtime.started == []
        assert "FailedMount" in desk.node.recorder.reasons
        metadata = {"name": "settings", "namespace": "ns", "uid": "m", "resourceVersion": "1"}
        desk.node.sources.config_maps.apply("ADDED", {"metadata": metadata, "data": {"a": "1"}})
        desk.worker.sources_changed()
        before = asyncio.get_running_loop().time()
        await desk.started(1)
        assert asyncio.get_running_loop().time() == before


@virtual
async def test_a_container_added_to_look_at_the_pod_runs_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pod())
    async with desk.running():
        await desk.started(1)
        added = pod(ephemeralContainers=[container("debug")])
        desk.worker.update({**desk.server.objects[PLACE], "spec": added["spec"]})
        held = await desk.started(2)
        held.end(0)
        await asyncio.sleep(60)
    assert desk.names == ["c", "debug"]


@virtual
async def test_a_status_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    desk = Desk(tmp_path, pod())
    served = desk.server.request
    refusals = 3

    async def request(method: str, *more: Any, **named: Any) -> Any:
        nonlocal refusals
        if method == "PATCH" and refusals:
            refusals -= 1
            raise TransportError("no answer")
        return await served(method, *more, **named)

    desk.server.request = request  # type: ignore[method-assign]
    async with desk.running():
        await desk.started(1)
        await desk.status(phase="Running")
    assert refusals == 0


def test_an_address_that_was_never_written_down_is_not_known(tmp_path: Path) -> None:
    assert remembered_address(tmp_path) == ""
    (tmp_path / "pod.json").write_text('{"addr')
    assert remembered_address(tmp_path) == ""
