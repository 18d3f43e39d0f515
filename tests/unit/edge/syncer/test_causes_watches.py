"""What causes watch and read at an edge, asked object by object: which places, rights and logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from skerry.api.edge import MAX_CAUSE_BYTES
from skerry.api.errors import AlreadyExists
from skerry.api.kinds import GroupVersionResource
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.causes import EVENTS, PODS, REPLICA_SETS, Causes
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.syncing.access import MAX_NAMESPACES
from skerry.logic.fleet.syncing.cause import MAX_LINE_BYTES
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from skerry.runtime.wrapping import WrappedTransport
from tests.kit.chain.syncer_world import Server
from tests.kit.sim.loop import virtual

Raw = dict[str, Any]
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
# The spec of every object here: what it asks for, against which its status is judged.
COPY: Raw = {"kind": "Deployment", "metadata": {}, "spec": {"replicas": 1}}
STUCK = {"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
# What an answer of a server that is not ours may be.
LOG = Answer(200, {}, b"first\nlast\n")


class Edge(WrappedTransport):
    """An edge's own server, whose logs and lists answer as a test wishes."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.transport)
        self.answers: dict[str, Answer | TransportError] = {}
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked.append(f"{path}?{query}")
        for part, answer in self.answers.items():
            if part in path:
                if isinstance(answer, TransportError):
                    raise answer
                return answer
        return await super().request(method, path, query, headers, body)

    def logs_read(self) -> int:
        return sum("/log?" in each for each in self.asked)


def failing(code: int, reason: str) -> Answer:
    text = f'{{"kind": "Status", "reason": "{reason}", "code": {code}, "message": "cannot"}}'
    return Answer(code, {}, text.encode())


FORBIDDEN = failing(403, "Forbidden")


class World:
    """An edge without controllers, and the causes that are found there."""

    def __init__(self, server: Server) -> None:
        self.client = server.client
        self.edge = Edge(server)
        reader = Client(self.edge, clock=LoopClock())
        self.factory = InformerFactory(reader, ids=SeededIds(7))
        self.causes = Causes(reader, self.factory)
        self.changes: list[ObjectRef] = []
        self.causes.changed.connect(self.changes.append)

    def of(self, name: str, namespace: str = "shop", **live: Any) -> str | None:
        """Ask about a Deployment with the UID *name*, whose status is not well."""
        ref = ObjectRef("", "apps", "deployments", namespace, name)
        return self.causes.of(ref, COPY, {"metadata": {"uid": name}, "status": STUCK, **live})

    async def cause(self, name: str, namespace: str = "shop") -> str | None:
        """Ask, and ask again when all that was begun is there."""
        self.of(name, namespace)
        await asyncio.sleep(1)
        return self.of(name, namespace)

    async def pod(
        self, name: str, owner: str | None = None, namespace: str = "shop", state: Raw | None = None
    ) -> Raw:
        """Have a pod whose container is in a state; the owner is a UID, and controls it."""
        await self.namespace(namespace)
        body = {"metadata": self.metadata(name, namespace, owner),
                "spec": {"containers": [{"name": "web", "image": "x"}]}}  # fmt: skip
        pod = await self.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body})
        await self.state(name, state or {}, namespace)
        return pod

    async def state(self, name: str, state: Raw, namespace: str = "shop") -> None:
        container = {"name": "web", "image": "x", "imageID": "", "ready": False,
                     "restartCount": 0, "state": state}  # fmt: skip
        patch = {"status": {"phase": "Pending", "containerStatuses": [container]}}
        await self.client.patch(PODS, name, patch, namespace, subresource="status")
        await asyncio.sleep(1)

    async def crash(self, name: str, run: str) -> None:
        ended = {"exitCode": 3, "reason": "Error", "containerID": run, "startedAt": None,
                 "finishedAt": None}  # fmt: skip
        await self.state(name, {"terminated": ended})

    async def replica_set(self, name: str, owner: str) -> Raw:
        await self.namespace("shop")
        labels = {"app": name}
        template = {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "x"}]}}  # fmt: skip
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec,
                "metadata": self.metadata(name, "shop", owner)}  # fmt: skip
        return await self.client.create(REPLICA_SETS, body)

    async def event(self, uid: str, reason: str, message: str, about: str) -> None:
        kind, name = about.split("/")
        body = {"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason,
                "message": message, "metadata": {"name": "event", "namespace": "shop"},
                "involvedObject": {"kind": kind, "namespace": "shop", "name": name,
                                   "uid": uid}}  # fmt: skip
        await self.namespace("shop")
        await self.client.create(EVENTS, body)
        await asyncio.sleep(1)

    async def namespace(self, name: str) -> None:
        """Have a namespace as its controllers leave it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        with suppress(AlreadyExists):
            await self.client.create(NAMESPACES, body)
            await self.client.create(ACCOUNTS, account, name)

    def metadata(self, name: str, namespace: str, owner: str | None) -> Raw:
        found: Raw = {"name": name, "namespace": namespace}
        if owner is not None:
            reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner,
                         "uid": owner, "controller": True}  # fmt: skip
            found["ownerReferences"] = [reference]
        return found

    def watched(self) -> list[str]:
        """The namespaces whose pods are listed, each once, in the order of the first time."""
        lists = (each.partition("?")[0] for each in self.edge.asked if "/pods?" in each)
        names = (path.removeprefix("/api/v1/").removeprefix("namespaces/") for path in lists)
        return list(dict.fromkeys(name.removesuffix("pods").rstrip("/") for name in names))


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    server = Server(LoopClock(), 1)
    await server.api.prepare()
    found = World(server)
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(each())
            for each in (server.api.run, found.factory.run, found.causes.run)
        ]
        await asyncio.sleep(0.1)
        yield found
        for task in running:
            task.cancel()


@virtual
async def test_beyond_some_namespaces_one_watch_covers_all_further_ones() -> None:
    async with world() as here:
        several = [f"shop-{number}" for number in range(MAX_NAMESPACES)]
        for name in several:
            await here.cause(f"web-{name}", name)
        assert here.watched() == several
        await here.pod("late-1", "late", "shop-late", state=PULLING)
        assert await here.cause("late", "shop-late") == "ImagePullBackOff: no such image"
        await here.pod("later-1", "later", "shop-later", state=PULLING)
        assert here.of("later", "shop-later") == "ImagePullBackOff: no such image"
        assert here.watched() == [*several, ""]


@virtual
async def test_a_namespace_whose_trouble_returns_goes_on_being_watched() -> None:
    async with world() as here:
        await here.pod("web-1", "web", state=PULLING)
        assert await here.cause("web") == "ImagePullBackOff: no such image"
        ref = ObjectRef("", "apps", "deployments", "shop", "web")
        here.causes.forget(ref)
        await asyncio.sleep(20)
        here.edge.asked.clear()
        assert here.of("web") == "ImagePullBackOff: no such image", "it was watched all along"
        await asyncio.sleep(60)
        assert here.of("web") == "ImagePullBackOff: no such image"
        assert here.watched() == []


@virtual
async def test_an_object_made_anew_is_followed_anew() -> None:
    async with world() as here:
        await here.pod("web-1", "old", state=PULLING)
        ref = ObjectRef("", "apps", "deployments", "shop", "web")
        old, new = ({"metadata": {"uid": uid}, "status": STUCK} for uid in ("old", "new"))
        here.causes.of(ref, COPY, old)
        await asyncio.sleep(1)
        assert here.causes.of(ref, COPY, old) == "ImagePullBackOff: no such image"
        assert here.causes.of(ref, COPY, new) == "", "these are another object's pods"
        assert here.causes.unwell == 1


@virtual
async def test_a_pod_that_was_placed_by_itself_is_its_own_witness() -> None:
    async with world() as here:
        ref = ObjectRef("", "", "pods", "shop", "web")
        copy = {"kind": "Pod", "metadata": {}, "spec": {}}
        container = {"name": "web", "ready": False, "restartCount": 0, "state": PULLING}
        status = {"phase": "Pending", "containerStatuses": [container]}
        live = {"metadata": {"name": "web", "uid": "web"}, "status": status}
        here.causes.of(ref, copy, live)
        await asyncio.sleep(1)
        assert here.causes.of(ref, copy, live) == "ImagePullBackOff: no such image"


@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        ({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"},
         "BackoffLimitExceeded: no such image"),
        ({"type": "Failed", "status": "True"}, "Failed: no such image"),
        ({"type": "Failed", "status": "False", "reason": "Retried"},
         "ImagePullBackOff: no such image"),
    ],
)  # fmt: skip
@virtual
async def test_a_job_says_that_it_failed_and_its_pods_why(condition: Raw, cause: str) -> None:
    async with world() as here:
        await here.pod("job-1", "job", state=PULLING)
        ref = ObjectRef("", "batch", "jobs", "shop", "job")
        copy = {"kind": "Job", "metadata": {}, "spec": {}}
        status = {"active": 1, "ready": 0, "conditions": [condition]}
        live = {"metadata": {"uid": "job"}, "status": status}
        here.causes.of(ref, copy, live)
        await asyncio.sleep(1)
        assert here.causes.of(ref, copy, live) == cause


@virtual
async def test_a_list_that_fails_once_is_no_missing_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world() as here:
        await here.pod("web-1", "web", state=PULLING)
        here.edge.answers["/pods"] = failing(503, "ServiceUnavailable")
        assert await here.cause("web") == "ImagePullBackOff: no such image", "by its watch"
    assert "the edge must allow" not in capsys.readouterr().err


@virtual
async def test_events_that_end_and_pods_of_nobody_are_no_news() -> None:
    async with world() as here:
        await here.cause("web")
        await here.event("web", "FailedCreate", "exceeded quota", "Deployment/web")
        assert here.of("web") == "FailedCreate: exceeded quota"
        here.changes.clear()
        await here.client.delete(EVENTS, "event", "shop")
        await here.pod("stray", None, state=PULLING)
        await asyncio.sleep(1)
        assert here.changes == []
        assert here.of("web") == "", "what an Event said goes with it"


@virtual
async def test_pods_of_a_replica_set_that_is_gone_are_not_those_of_the_deployment() -> None:
    async with world() as here:
        made = await here.replica_set("web-1", "web")
        uid = made["metadata"]["uid"]
        await here.pod("web-1-a", uid, state=PULLING)
        assert await here.cause("web") == "ImagePullBackOff: no such image"
        await here.client.delete(REPLICA_SETS, "web-1", "shop")
        await asyncio.sleep(1)
        here.changes.clear()
        await here.crash("web-1-a", "run://1")
        assert here.changes == []
        assert here.of("web") == ""


@virtual
async def test_logs_that_may_not_be_read_are_asked_for_seldom(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world() as here:
        here.edge.answers["/log"] = FORBIDDEN
        await here.pod("web-1", "web")
        await here.crash("web-1", "run://1")
        assert await here.cause("web") == "Error: exit code 3"
        await asyncio.sleep(1)
        assert here.of("web") == "Error: exit code 3"
        await here.crash("web-1", "run://2")
        here.of("web")
        await asyncio.sleep(20)
        assert here.edge.logs_read() == 1, "every run has a line of its own, and none may be read"
        await asyncio.sleep(60)
        here.edge.answers["/log"] = LOG
        await here.crash("web-1", "run://3")
        here.of("web")
        await asyncio.sleep(20)
        assert here.of("web") == "Error: exit code 3: last"
    assert capsys.readouterr().err.count("the edge must allow get of pods/log") == 1


@pytest.mark.parametrize(
    "answer",
    [failing(404, "NotFound"), failing(500, "InternalError"), TransportError("no way there")],
    ids=["gone", "broken", "unreachable"],
)
@virtual
async def test_a_line_that_is_not_to_be_had_is_asked_for_once_a_run(
    answer: Answer | TransportError,
) -> None:
    async with world() as here:
        here.edge.answers["/log"] = answer
        await here.pod("web-1", "web")
        await here.crash("web-1", "run://1")
        await here.cause("web")
        for _ in range(3):
            await asyncio.sleep(20)
            assert here.of("web") == "Error: exit code 3"
        assert here.edge.logs_read() == 1


@virtual
async def test_lines_of_one_object_are_read_with_pauses_and_cut() -> None:
    async with world() as here:
        here.edge.answers["/log"] = Answer(200, {}, b"x" * (2 * MAX_LINE_BYTES))
        await here.pod("web-1", "web")
        for run in range(3):
            await here.crash("web-1", f"run://{run}")
            await here.cause("web")
        assert here.edge.logs_read() == 1, "three runs in as many seconds"
        await asyncio.sleep(30)
        here.of("web")
        await asyncio.sleep(30)
        assert here.edge.logs_read() == 3
        found = here.of("web")
        assert found is not None
        assert found.startswith("Error: exit code 3: xxx")
        assert len(found.encode()) <= MAX_CAUSE_BYTES


@virtual
async def test_a_line_read_for_an_object_that_is_well_again_is_dropped() -> None:
    async with world() as here:
        here.edge.answers["/log"] = LOG
        await here.pod("web-1", "web")
        await here.crash("web-1", "run://1")
        await here.cause("web")
        await here.crash("web-1", "run://2")
        here.of("web")  # begins to read, after a pause
        here.causes.forget(ObjectRef("", "apps", "deployments", "shop", "web"))
        here.changes.clear()
        await asyncio.sleep(20)
        assert here.changes == []
        assert here.causes.unwell == 0


async def test_nothing_is_read_while_causes_do_not_run() -> None:
    here = World(Server(LoopClock(), 1))
    assert here.of("web") is None
    assert here.causes.unwell == 1
    here.causes.forget(ObjectRef("", "apps", "deployments", "shop", "web"))
    assert here.causes.unwell == 0
    assert here.edge.asked == []
