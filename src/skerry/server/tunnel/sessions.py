"""Sessions through tunnels: a request about a pod of an edge, passed on and recorded.

A session is authorized as any request is, and ends as any stream does when its right, its user or
its edge goes; or when its workspace no longer owns the namespace. It holds a window of bytes and
no more: whoever takes nothing makes the edge wait for that session alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson
from msgspec.structs import replace

from skerry.api import edge_audit
from skerry.api.errors import BadRequest, NotFound, ServiceUnavailable, Timeout, TooManyRequests
from skerry.api.keys import ObjectKey
from skerry.kit.text import shortened
from skerry.logic.machinery.edges.tunnel import (
    EDGES_PATH,
    PodRequest,
    TunnelAnswer,
    TunnelRequestError,
    opening_of,
    pod_request,
    read_answer,
)
from skerry.server.access import Authorizer
from skerry.server.change import Change
from skerry.server.engine import Route
from skerry.server.extensions import Visit
from skerry.server.http.message import Answer, Duplex, Request, Response, Sender, Stream, Upgrade
from skerry.server.open_streams import Right
from skerry.server.request.info import RequestInfo
from skerry.server.security.authorization import forbidden
from skerry.server.streaming.websocket import as_duplex
from skerry.server.tunnel.lines import TunnelLines
from skerry.server.tunnel.reach import EdgeReach, Reached
from skerry.server.user import User
from skerry.wire.tunnel import StreamReset, TunnelStream

# An edge on a thin line takes a while; a person has given up by then.
_ANSWER_SECONDS: Final = 30.0
_REFUSAL_BYTES: Final = 64 << 10
_TEXT_LIMIT: Final = 256
_COMMAND_LIMIT: Final = 2048


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many sessions there may be at once."""

    per_edge: int = 16
    per_user: int = 8


@dataclass(slots=True, eq=False)
class Session:
    """One session under way."""

    reached: Reached
    cluster: str
    wanted: PodRequest
    stream: TunnelStream
    request: Request
    sent: int = 0
    received: int = 0
    # Ends a session whose answer nobody takes.
    unclaimed: asyncio.TimerHandle | None = field(default=None)

    @property
    def place(self) -> tuple[str, str]:
        """The namespace it is about."""
        return self.reached.mailbox, self.wanted.namespace

    def begin(self) -> None:
        if self.unclaimed is not None:
            self.unclaimed.cancel()

    def end(self) -> None:
        """Nobody reads or writes any more; what was carried is noted."""
        self.stream.reset("the session has ended")
        notes = self.request.audit_annotations
        if notes is not None:
            notes[edge_audit.TUNNEL_SENT] = str(self.sent)
            notes[edge_audit.TUNNEL_RECEIVED] = str(self.received)


class EdgeSessions:
    """Answers what is asked below ``/extensions/v1/edges`` of a workspace."""

    def __init__(
        self,
        lines: TunnelLines,
        reach: EdgeReach,
        authorizer: Authorizer,
        limits: SessionLimits = SessionLimits(),  # noqa: B008
    ) -> None:
        self._authorizer = authorizer
        self._lines = lines
        self._reach = reach
        self._limits = limits
        self._of_edges: Counter[str] = Counter()
        self._of_users: Counter[str] = Counter()
        self._of_namespaces: dict[tuple[str, str], set[Session]] = {}

    def route(self, cluster: str, path: str) -> Route:
        """Return how a request finds its way: by the right that its path asks for."""
        name, _, rest = path.removeprefix(f"{EDGES_PATH}/").partition("/")
        wanted = _wanted(f"/{rest}")

        def guard(user: User, _: RequestInfo) -> Iterable[Right]:
            right = self._reach.right(cluster, name, wanted)
            if not self._authorizer.authorize(user, right).allowed:
                # Which edge the name means is for those who may reach it.
                raise forbidden(user, replace(right, name=name), "access denied")
            return ((user, right),)

        async def visit(visit: Visit) -> Answer:
            return await self._visited(visit, name, wanted, f"/{rest}")

        return Route(cluster, path, guard=guard, visit=visit)

    def namespace_changed(self, change: Change) -> None:
        """End the sessions of workspaces that no longer own a namespace at an edge."""
        key = ObjectKey.parse(change.event.key)
        for session in list(self._of_namespaces.get((key.cluster, key.name), ())):
            owned = self._reach.is_owned(key.cluster, key.name, session.cluster)
            if not session.reached.as_operator and not owned:
                session.stream.reset("the workspace does not own the namespace any longer")

    async def _visited(self, visit: Visit, name: str, wanted: PodRequest, path: str) -> Answer:
        request = visit.request
        reached = self._reach.reached(visit.cluster, name, wanted.namespace)
        _note(request, reached, wanted)
        session = self._opened(visit, reached, wanted, path)
        upgrade = "upgrade" in request.headers
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                answer = read_answer(await session.stream.answered(), upgrade=upgrade)
            if answer.status >= 400:
                body = await _short(session.stream)
                return Response(answer.status, body, answer.content_type)
        except TimeoutError as error:
            session.stream.reset("no answer in time")
            raise Timeout(
                f'edge "{reached.edge}" did not answer within {_ANSWER_SECONDS:g} s'
            ) from error
        except TunnelRequestError as error:
            session.stream.reset("no answer that could be understood")
            raise ServiceUnavailable(f'edge "{reached.edge}": {error}') from error
        except StreamReset as error:
            raise ServiceUnavailable(f'edge "{reached.edge}": {error}') from error
        except asyncio.CancelledError:
            session.stream.reset("nobody waits for it any more")
            raise
        loop = asyncio.get_running_loop()
        session.unclaimed = loop.call_later(_ANSWER_SECONDS, session.end)
        return _carried(session, answer)

    def _opened(self, visit: Visit, reached: Reached, wanted: PodRequest, path: str) -> Session:
        """Open a session's stream; raises what keeps it from being opened."""
        request, user = visit.request, visit.user.principal
        tunnel = self._lines.of(reached.mailbox)
        if tunnel is None:
            why = self._lines.absence(reached.mailbox)
            raise ServiceUnavailable(f'edge "{reached.edge}" has no tunnel: {why}')
        if self._of_edges[reached.mailbox] >= self._limits.per_edge:
            limit = self._limits.per_edge
            raise TooManyRequests(f'edge "{reached.edge}" has {limit} sessions, which is the most')
        if self._of_users[user] >= self._limits.per_user:
            limit = self._limits.per_user
            raise TooManyRequests(f"you have {limit} sessions at edges, which is the most")
        try:
            opening = opening_of(request.method, path, request.query_string, request.headers)
            stream = tunnel.open(opening)
        except TunnelRequestError as error:
            raise BadRequest(str(error)) from error
        if "upgrade" not in request.headers:
            stream.end()
        session = Session(reached, visit.cluster, wanted, stream, request)
        self._of_edges[reached.mailbox] += 1
        self._of_users[user] += 1
        self._of_namespaces.setdefault(session.place, set()).add(session)
        stream.over = lambda: self._over(session, user)
        return session

    def _over(self, session: Session, user: str) -> None:
        for counted, name in (
            (self._of_edges, session.reached.mailbox),
            (self._of_users, user),
        ):
            counted[name] -= 1
            if not counted[name]:
                del counted[name]
        there = self._of_namespaces[session.place]
        there.discard(session)
        if not there:
            del self._of_namespaces[session.place]


def _wanted(path: str) -> PodRequest:
    try:
        return pod_request(path)
    except TunnelRequestError as error:
        raise NotFound(str(error)) from error


def _note(request: Request, reached: Reached, wanted: PodRequest) -> None:
    """Have a session in the audit log, when it begins and when it ends, whatever a policy says."""
    pairs = parse_qsl(request.query_string, keep_blank_values=True, max_num_fields=200)
    command = [value for name, value in pairs if name == "command"]
    notes = {
        edge_audit.TUNNEL_EDGE: reached.edge,
        edge_audit.TUNNEL_NAMESPACE: wanted.namespace,
        edge_audit.TUNNEL_POD: wanted.pod,
        edge_audit.TUNNEL_ACTION: wanted.action,
        edge_audit.TUNNEL_CONTAINER: dict(pairs).get("container", ""),
    }
    request.audit_annotations = {
        name: shortened(value, _TEXT_LIMIT) for name, value in notes.items() if value
    }
    if command:
        text = orjson.dumps(command).decode()
        request.audit_annotations[edge_audit.TUNNEL_COMMAND] = shortened(text, _COMMAND_LIMIT)
    request.always_audited = True


async def _short(stream: TunnelStream) -> bytes:
    """Return what an edge says that refuses, as far as it is short."""
    body = b""
    while len(body) < _REFUSAL_BYTES and (piece := await stream.read()):
        body += piece
    stream.reset("refused")
    return body[:_REFUSAL_BYTES]


def _carried(session: Session, answer: TunnelAnswer) -> Answer:
    """Return what goes on: the edge's answer, or a connection handed over to it."""

    stream = session.stream

    async def down(sender: Sender) -> None:
        while piece := await stream.read():
            session.received += len(piece)
            sender.write(piece)
            await sender.drain()

    async def up(duplex: Duplex) -> None:
        while piece := await duplex.read():
            await stream.write(piece)
            session.sent += len(piece)

    async def run(sender: Sender) -> None:
        session.begin()
        try:
            await down(sender)
        except StreamReset as error:
            # The answer is cut off, and must not look as if it were whole.
            raise ConnectionError(str(error)) from error
        finally:
            session.end()

    async def run_both(sender: Sender) -> None:
        session.begin()
        duplex = as_duplex(sender)
        try:
            async with asyncio.TaskGroup() as tasks:
                both = [tasks.create_task(_to_its_end(way(duplex))) for way in (up, down)]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in both:
                    task.cancel()
        finally:
            session.end()

    if answer.status == 101:
        return Upgrade(run_both, 101, "", answer.headers, protocol=answer.protocol)
    return Stream(run, answer.status, answer.content_type)


async def _to_its_end(way: Coroutine[Any, Any, None]) -> None:
    """Carry one way until either end of it has gone."""
    with contextlib.suppress(StreamReset, ConnectionError):
        await way
