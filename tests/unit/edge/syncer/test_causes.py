"""Why a placed Deployment is not well, between real engines as hub and edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import CAUSE
from skerry.api.kinds import GroupVersionResource
from skerry.edge.syncer.causes import EVENTS, PODS, REPLICA_SETS
from skerry.logic.fleet.syncing.delivery import is_delivered
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, Transport
from tests.kit.chain.syncer_world import DEPLOYMENTS, SyncerWorld, deployment
from tests.kit.sim.loop import virtual

Raw = dict[str, Any]
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
COPY = {"edge.kcp.io/projected": "yes"}
STUCK = {"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}
WELL = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
CRASHED = {"terminated": {"exitCode": 3, "reason": "Error", "containerID": "run://1",
                          "startedAt": None, "finishedAt": None}}  # fmt: skip


class Surroundings(Transport):
    """The edge's own server, with logs of pods, and with things it forbids."""

    def __init__(self, inner: Transport, log: bytes = b"", forbidden: str = " ") -> None:
        self.inner = inner
        self.log = log
        self.forbidden = forbidden
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked.append(f"{method} {path}?{query}")
        if self.forbidden in path:
            status = b'{"kind": "Status", "reason": "Forbidden", "code": 403, "message": "cannot"}'
            return Answer(403, {}, status)
        if path.endswith("/log"):
            return Answer(200, {}, self.log)
        return await self.inner.request(method, path, query, headers, body)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        self.asked.append(f"{method} {path}?{query}")
        async with self.inner.stream(method, path, query, headers, body) as answer:
            yield answer

    async def close(self) -> None:
        return None

    def watched(self, resource: str) -> int:
        """How often a watch of *resource* was opened."""
        return sum(f"/{resource}?" in each and "watch=true" in each for each in self.asked)


class Story:
    """A Deployment placed at the edge, whose controllers are played by hand."""

    def __init__(self, world: SyncerWorld, around: Surroundings) -> None:
        self.world = world
        self.around = around
        self.edge = world.edge.client

    async def status(self, status: Raw) -> None:
        patch = [{"op": "add", "path": "/status", "value": status}]
        await self.edge.patch(DEPLOYMENTS, "web", patch, "shop", kind="json", subresource="status")
        await asyncio.sleep(1)

    async def pod(self, state: Raw, name: str = "web-1-a", **pod: Any) -> None:
        """Have a pod of the Deployment whose container is in some state."""
        web = await self.edge.get(DEPLOYMENTS, "web", "shop")
        spec = {part: web["spec"][part] for part in ("replicas", "selector", "template")}
        owner = await self._owned(REPLICA_SETS, "ReplicaSet", "web-1", web, spec)
        await self._owned(PODS, "Pod", name, owner, web["spec"]["template"]["spec"])
        container = {"name": "web", "image": "x", "imageID": "", "ready": False,
                     "restartCount": 0, "state": state}  # fmt: skip
        status = {"phase": "Pending", "containerStatuses": [container], **pod}
        await self.edge.patch(PODS, name, {"status": status}, "shop", subresource="status")
        await asyncio.sleep(1)

    async def _owned(
        self, gvr: GroupVersionResource, kind: str, name: str, owner: Raw, spec: Raw
    ) -> Raw:
        for item in (await self.edge.list(gvr)).items:
            if item["metadata"]["name"] == name:
                return item
        named = {part: owner["metadata"][part] for part in ("name", "uid")}
        reference = {"apiVersion": "apps/v1", "kind": owner["kind"], "controller": True, **named}
        metadata = {"name": name, "namespace": "shop", "ownerReferences": [reference],
                    "labels": {"app": "web"}}  # fmt: skip
        version = f"{gvr.group}/{gvr.version}".lstrip("/")
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        return await self.edge.create(gvr, body)

    async def reported(self) -> str | None:
        """What the mailbox says is the cause."""
        copy = await self.world.in_hub(DEPLOYMENTS, "web")
        assert copy is not None
        notes: dict[str, str] = copy["metadata"]["annotations"]
        return notes.get(CAUSE)

    def writes(self) -> int:
        """How many requests have changed something at the hub, heartbeats left out."""
        steps = self.world.hub_faults.steps
        return sum("deployments/web" in step or "batch" in step for step in steps)


@asynccontextmanager
async def story(folder: Path, *, projected: bool = True, **around: Any) -> AsyncIterator[Story]:
    world = SyncerWorld(folder)
    surroundings = Surroundings(world.edge.transport, **around)
    world.to_edge.inner = surroundings
    async with world.running():
        await world.configure()
        labels = COPY if projected else {}
        await world.put(DEPLOYMENTS, "web", deployment(), labels=labels)
        world.start()
        await asyncio.sleep(5)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await world.edge.client.create(ACCOUNTS, account, "shop")
        yield Story(world, surroundings)


@pytest.mark.parametrize("projected", [True, False], ids=["our hub", "a hub that ignores marks"])
@virtual
async def test_the_cause_comes_with_the_trouble_and_goes_with_it(
    tmp_path: Path, projected: bool
) -> None:
    async with story(tmp_path, projected=projected) as here:
        await here.status(STUCK)
        assert await here.reported() is None
        await here.pod(PULLING)
        assert await here.reported() == "ImagePullBackOff: no such image"
        await here.status(WELL)
        assert await here.reported() is None


@virtual
async def test_a_status_and_its_cause_are_one_write(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.status(STUCK)
        await here.pod(PULLING)
        before = here.writes()
        await here.status(WELL)
        assert await here.reported() is None
        assert here.writes() == before + 1
        await here.status(STUCK)
        assert await here.reported() == "ImagePullBackOff: no such image"
        assert here.writes() == before + 2


@virtual
async def test_what_does_not_change_is_not_written_again(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.status(STUCK)
        await here.pod(PULLING)
        before = here.writes()
        for name in ("web-1-b", "web-1-c"):
            await here.pod(PULLING, name)
        assert here.writes() == before


@virtual
async def test_a_rollout_that_goes_well_adds_nothing(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.status(STUCK)
        before = here.writes()
        await here.pod({"waiting": {"reason": "ContainerCreating"}})
        await here.pod({"running": {"startedAt": "2030-01-01T00:00:00Z"}})
        assert here.writes() == before
        await here.status(WELL)
        assert here.writes() == before + 1
        assert await here.reported() is None


class EarlierHub(Surroundings):
    """A hub that knows no causes: edges may not write them."""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        marks = method == "PATCH" and not path.endswith("/status")
        self.forbidden = "/" if marks and CAUSE.encode() in body else " "
        return await super().request(method, path, query, headers, body)


@virtual
async def test_a_hub_that_takes_no_causes_gets_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SyncerWorld, "ordinary", True)
    async with story(tmp_path, projected=False) as here:
        here.world.to_hub.inner = EarlierHub(here.world.hub.transport)
        await here.status(STUCK)
        await here.pod(PULLING)
        await here.status(WELL)
        await here.status(STUCK)
        assert await here.reported() is None
        copy = await here.world.in_hub(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["status"] == STUCK
        assert is_delivered(copy)


@virtual
async def test_what_is_well_is_not_watched(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.status(WELL)
        assert here.around.watched("pods") == 0
        await here.status(STUCK)
        assert here.around.watched("pods") == 1
        await here.status(WELL)
        await asyncio.sleep(120)
        before = len(here.around.asked)
        await here.pod(PULLING)
        assert not [each for each in here.around.asked[before:] if "watch=true" in each]
        await here.status(STUCK)
        assert here.around.watched("pods") == 2
        assert await here.reported() == "ImagePullBackOff: no such image"


@virtual
async def test_the_last_line_of_a_crash_is_read_once(tmp_path: Path) -> None:
    log = b"panic: no \x1b[31mroute\n"
    async with story(tmp_path, log=log) as here:
        await here.status(STUCK)
        await here.pod(CRASHED)
        assert await here.reported() == "Error: exit code 3: panic: no [31mroute"
        await here.pod(CRASHED, "web-1-b")
        reads = [each for each in here.around.asked if "/log?" in each]
        assert len(reads) == 1
        assert "tailLines=1" in reads[0]
        assert "limitBytes=" in reads[0]


@virtual
async def test_a_probe_that_fails_is_reported_by_its_event(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.status(STUCK)
        await here.pod({"running": {"startedAt": "2030-01-01T00:00:00Z"}})
        assert await here.reported() is None
        pod = await here.edge.get(PODS, "web-1-a", "shop")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "unhealthy", "namespace": "shop"},
            "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1-a",
                               "uid": pod["metadata"]["uid"]},
            "type": "Warning",
            "reason": "Unhealthy",
            "message": "Readiness probe failed: refused",
        }  # fmt: skip
        await here.edge.create(EVENTS, event)
        await asyncio.sleep(1)
        assert await here.reported() == "Unhealthy: Readiness probe failed: refused"


@virtual
async def test_an_edge_that_forbids_pods_is_reported_of_by_its_status_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with story(tmp_path, forbidden="/pods") as here:
        await here.status(STUCK)
        await here.pod(PULLING)
        await here.status(WELL)
        await here.status(STUCK)
        assert await here.reported() is None
        copy = await here.world.in_hub(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["status"] == STUCK
    assert capsys.readouterr().err.count("the edge must allow watch of pods") == 1


@virtual
async def test_a_right_that_is_granted_later_is_used(tmp_path: Path) -> None:
    async with story(tmp_path, forbidden="/pods") as here:
        await here.status(STUCK)
        await here.pod(PULLING)
        assert await here.reported() is None
        here.around.forbidden = " "
        await asyncio.sleep(120)
        assert await here.reported() == "ImagePullBackOff: no such image"


@virtual
async def test_a_deployment_that_cannot_make_pods_says_why(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.pod(PULLING)
        await here.edge.delete(PODS, "web-1-a", "shop")
        await here.status(STUCK)
        owner = await here.edge.get(REPLICA_SETS, "web-1", "shop")
        message = 'Error creating: pods "web-1-x" is forbidden: exceeded quota: small'
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "failed", "namespace": "shop"},
            "involvedObject": {"kind": "ReplicaSet", "namespace": "shop", "name": "web-1",
                               "uid": owner["metadata"]["uid"]},
            "type": "Warning",
            "reason": "FailedCreate",
            "message": message,
        }  # fmt: skip
        await here.edge.create(EVENTS, event)
        await asyncio.sleep(1)
        wanted = "FailedCreate: Error creating: pods is forbidden: exceeded quota: small"
        assert await here.reported() == wanted


@virtual
async def test_evicted_pods_are_in_nobodys_way(tmp_path: Path) -> None:
    async with story(tmp_path) as here:
        await here.status(STUCK)
        for number in range(120):
            name = f"web-1-{number}"
            await here.pod(CRASHED, name, phase="Failed", reason="Evicted", message="no memory")
        assert await here.reported() == "Evicted: no memory"
        await here.pod(PULLING, "web-1-last")
        assert await here.reported() == "ImagePullBackOff: no such image"
