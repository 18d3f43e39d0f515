"""Edges that have dialled a tunnel to a hub of this process, and sessions through it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from skerry.logic.machinery.edges.tunnel import EDGES_PATH, TUNNEL_PATH, answer_of, read_opening
from skerry.server.http.message import Request, Response, Stream, Upgrade
from skerry.wire.tunnel import PROTOCOL, StreamReset, Tunnel, TunnelStream
from tests.kit.server.edges import IMW, Edge, EdgeHub, running_edge_hub
from tests.kit.server.hub import BINDERS, ROLES

PODS = "/api/v1/namespaces/shop/pods"
WEBSOCKET = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": "abc"}
ACTIONS = ("log", "exec", "attach", "portforward", "pods")


class Pipe:
    """One end of a connection within this process; what is written comes out of ``other``."""

    def __init__(self) -> None:
        self.other: Pipe = self
        self.closed = False
        self.queued_bytes = 0
        # While it is clear, whoever sends to this end waits: nobody reads here.
        self.takes = asyncio.Event()
        self.takes.set()
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, chunk: bytes) -> None:
        if chunk and not self.closed:
            self.other.arrived.put_nowait(chunk)

    async def drain(self) -> None:
        await self.other.takes.wait()
        if self.closed:
            raise ConnectionError("the peer is gone")

    async def read(self) -> bytes:
        return b"" if self.closed and self.arrived.empty() else await self.arrived.get()

    def close(self) -> None:
        for end in (self, self.other):
            end.closed = True
            end.takes.set()
            end.arrived.put_nowait(b"")


def pipe() -> tuple[Pipe, Pipe]:
    """Return both ends of a connection."""
    one, other = Pipe(), Pipe()
    one.other, other.other = other, one
    return one, other


Answering = Callable[[TunnelStream], Awaitable[None]]


async def greeting(stream: TunnelStream) -> None:
    """Answer as a cluster does that greets, and echoes where it was handed a connection."""
    opening, _ = read_opening(stream.opening)
    if opening.upgrade:
        stream.answer(answer_of(101, {"upgrade": opening.upgrade}))
        while piece := await stream.read():
            await stream.write(piece)
    else:
        stream.answer(answer_of(200, {"content-type": "text/plain"}))
        await stream.write(f"hello from {opening.path}\n".encode())
        if "follow=true" in opening.query:
            await stream.read()  # the end of what is asked, and then nothing
            await asyncio.Event().wait()
    stream.end()


@dataclass
class DialledEdge:
    """An edge at the far end of its tunnel."""

    edge: Edge
    line: Pipe
    running: asyncio.Task[ConnectionError | None]
    opened: list[TunnelStream] = field(default_factory=list)


@dataclass
class Going:
    """A session that goes on, as its user has it."""

    line: Pipe
    task: asyncio.Task[ConnectionError | None]

    async def text(self) -> str:
        """Return the next that comes."""
        return (await asyncio.wait_for(self.line.read(), 20)).decode()

    async def ended(self) -> ConnectionError | None:
        """Wait for the end; return what cut it off, if anything did."""
        return await asyncio.wait_for(self.task, 20)


class TunnelHub:
    """A hub that takes tunnels."""

    def __init__(self, hub: EdgeHub, tasks: asyncio.TaskGroup, audit_log: Path) -> None:
        self.hub = hub
        self._tasks = tasks
        self._audit_log = audit_log
        self._begun: list[asyncio.Task[Any]] = []

    def begin(self, work: Any) -> asyncio.Task[Any]:
        """Run *work* until the hub ends."""
        task = self._tasks.create_task(work)
        self._begun.append(task)
        return task

    def end(self) -> None:
        for task in self._begun:
            task.cancel()

    async def dial(self, edge: Edge, answering: Answering = greeting) -> DialledEdge:
        """Have *edge* dial a tunnel, at whose far end *answering* answers."""
        answer = await edge.answer("GET", TUNNEL_PATH, upgrade=PROTOCOL, connection="Upgrade")
        assert isinstance(answer, Upgrade), answer
        near, far = pipe()
        running = self.begin(_run(answer, near))
        dialled = DialledEdge(edge, far, running)

        def opened(stream: TunnelStream) -> None:
            dialled.opened.append(stream)
            task = self.begin(_answered(answering, stream))
            stream.over = task.cancel

        tunnel = Tunnel(far, asyncio.Event, opened)
        self.begin(_hearing(tunnel, far))
        await asyncio.sleep(0)
        return dialled

    async def ask(
        self,
        user: str,
        where: str,
        edge: str,
        path: str,
        query: str = "",
        method: str = "GET",
        **headers: str,
    ) -> Response | Stream:
        """Ask through the tunnel of *edge*, from the workspace *where*."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent["authorization"] = f"Bearer {self.hub.tokens.get(user, user)}"
        target = f"/clusters/{where}{EDGES_PATH}/{edge}{path}"
        request = Request(method, target, query, sent)
        return await self.hub.running.api.engine.handle(request)

    async def refusal(self, *asked: str, **more: str) -> tuple[int, str]:
        """Ask, and return the code and the sentence of the refusal."""
        answer = await self.ask(*asked, **more)
        assert isinstance(answer, Response), answer
        assert isinstance(answer.body, bytes)
        return answer.status, orjson.loads(answer.body)["message"]

    def going(self, answer: Response | Stream) -> Going:
        """Run a session until it ends, or the hub does."""
        assert isinstance(answer, Stream), answer
        mine, its = pipe()
        return Going(mine, self.begin(_run(answer, its)))

    async def text(self, *asked: str, **more: str) -> str:
        """Ask for something that ends, and return all of it."""
        going = self.going(await self.ask(*asked, **more))
        await going.ended()
        found = b""
        while not going.line.arrived.empty():
            found += going.line.arrived.get_nowait()
        return found.decode()

    async def placed(self, edge: Edge, namespace: str, owner: str) -> None:
        """Put the copy of a Namespace into a mailbox, as the translator does."""
        await edge.place("/api/v1/namespaces", namespace_copy(namespace, owner))

    async def grant(self, where: str, user: str, **rule: Any) -> None:
        """Let *user* into a workspace, and do what *rule* says there."""
        rules = [
            {"nonResourceURLs": ["/"], "verbs": ["access"]},
            {
                "apiGroups": ["edge.kcp.io"],
                "resources": [f"edges/{each}" for each in ACTIONS],
                "verbs": ["*"],
                **rule,
            },
        ]
        role = {"metadata": {"name": f"at-edges-{user}"}, "rules": rules}
        await self.hub.create(where, ROLES, role)
        binding = {
            "metadata": {"name": f"at-edges-{user}"},
            "roleRef": {"kind": "ClusterRole", "name": f"at-edges-{user}"},
            "subjects": [{"kind": "User", "name": user}],
        }
        await self.hub.create(where, BINDERS, binding)

    def audited(self) -> list[dict[str, Any]]:
        """Return what the audit log has of sessions."""
        self.hub.running.api.engine._recorder._audit.close()  # type: ignore[attr-defined]
        lines = self._audit_log.read_bytes().splitlines()
        return [event for event in map(orjson.loads, lines) if _is_session(event)]


def _is_session(event: dict[str, Any]) -> bool:
    return EDGES_PATH in event["requestURI"]


def namespace_copy(name: str, owner: str) -> dict[str, Any]:
    annotations = {"edge.kcp.io/owner-workspace": owner}
    return {"metadata": {"name": name, "annotations": annotations}}


async def _run(stream: Stream, end: Pipe) -> ConnectionError | None:
    """Run a stream as the HTTP server does; return what cut it off."""
    try:
        await stream.run(end)
    except ConnectionError as error:
        return error
    finally:
        end.close()
    return None


async def _answered(answering: Answering, stream: TunnelStream) -> None:
    with contextlib.suppress(StreamReset):
        await answering(stream)


async def _hearing(tunnel: Tunnel, line: Pipe) -> None:
    while data := await line.read():
        tunnel.receive(data)
    tunnel.lose("the hub has ended it")


@contextlib.asynccontextmanager
async def running_tunnel_hub(folder: Path) -> AsyncIterator[TunnelHub]:
    """Run a hub that takes tunnels inside the context."""
    audit = folder / "audit.log"
    async with running_edge_hub(folder, tunnel=True, audit_log=audit) as hub:
        if (await hub.ask("kcp-admin", "GET", f"/clusters/{IMW}/api")).status != 200:
            await hub.workspace("root", "imw", "universal")
        async with asyncio.TaskGroup() as tasks:
            found = TunnelHub(hub, tasks, audit)
            try:
                yield found
            finally:
                found.end()


def in_tunnel_hub(
    test: Callable[[TunnelHub], Awaitable[None]],
) -> Callable[[Path], Awaitable[None]]:
    """Run *test* in a hub of its own, all in one task as task groups demand."""

    @functools.wraps(test)
    async def wrapped(tmp_path: Path) -> None:
        async with running_tunnel_hub(tmp_path) as hub:
            await test(hub)

    del wrapped.__wrapped__  # pytest asks for what it takes
    return wrapped
