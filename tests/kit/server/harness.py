"""A whole API server without a socket, for tests: everybody may do everything."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from skerry.app.api_server import ApiServer, Parts
from skerry.kit.clock import Clock, LoopClock
from skerry.kit.ids import SeededIds
from skerry.kit.metrics import Counter
from skerry.logic.machinery.pod_security.configuration import PodSecurityConfiguration
from skerry.server.access import Attributes, Authorizer, Decision
from skerry.server.admission.operation import Admission
from skerry.server.admission.webhook_metrics import WebhookMetrics
from skerry.server.aggregation.apis import AggregatedApis
from skerry.server.engine import ResourceHandler
from skerry.server.http.message import Answer, Headers, Peer, Request, Response, Stream
from skerry.server.offload.offload import Offload
from skerry.server.request.info import RequestInfo
from skerry.server.user import User
from skerry.store.base import Store
from skerry.store.memory import MemoryStore

ADMIN = User("admin", groups=("system:masters", "system:authenticated"))


class Everybody:
    """Lets everyone in and allows everything."""

    async def authenticate(self, request: Request, cluster: str) -> User:
        return ADMIN

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        return Decision(allowed=True)

    def admitted(
        self, info: RequestInfo, user: User
    ) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    def knows(self, request: Request, cluster: str) -> bool:
        return True

    suspects: Collection[str] = ()

    def refusal_of(self, address: str) -> None:
        return None

    def headers(self, info: RequestInfo, user: User) -> Headers:
        return ()

    def check_watches(self, user: User, count: int) -> None:
        return None

    def finished(
        self,
        request: Request,
        info: RequestInfo,
        user: User | None,
        answer: Answer,
        *,
        served: bool,
    ) -> None:
        return None


@dataclass
class Reply:
    """An answer, read."""

    status: int
    body: Any
    headers: list[tuple[str, str]]
    raw: bytes

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name == "Warning"]


class MemorySender:
    """Collects the lines of a stream."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.closed = False
        self.queued_bytes = 0

    def write(self, chunk: bytes) -> None:
        for line in chunk.splitlines():
            self.lines.put_nowait(orjson.loads(line))

    async def drain(self) -> None:
        return None


class Server:
    """The engine with the verbs of a client."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        answer = await self.answer(method, path, body, content_type=content_type, headers=headers)
        assert isinstance(answer, Response), answer
        raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        text = answer.content_type.startswith("application/json")
        parsed = orjson.loads(raw) if text and raw else yaml.safe_load(raw) if raw else None
        return Reply(answer.status, parsed, list(answer.headers), raw)

    async def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        bare, _, query = path.partition("?")
        raw = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        return await self.api.engine.handle(
            Request(
                method,
                bare,
                query,
                {"content-type": content_type, "user-agent": "test/1", **(headers or {})},
                raw,
                Peer(user=ADMIN),
            )
        )

    async def get(self, path: str, **more: Any) -> Reply:
        return await self.request("GET", path, **more)

    async def create(self, path: str, body: Any, **more: Any) -> Reply:
        return await self.request("POST", path, body, **more)

    async def put(self, path: str, body: Any, **more: Any) -> Reply:
        return await self.request("PUT", path, body, **more)

    async def patch(self, path: str, body: Any, kind: str = "merge", **more: Any) -> Reply:
        types = {
            "merge": "application/merge-patch+json",
            "json": "application/json-patch+json",
            "strategic": "application/strategic-merge-patch+json",
            "apply": "application/apply-patch+yaml",
        }
        return await self.request("PATCH", path, body, content_type=types[kind], **more)

    async def delete(self, path: str, body: Any = None) -> Reply:
        return await self.request("DELETE", path, body)

    async def sleep(self, seconds: float) -> None:
        """Let time pass, which takes none in virtual time."""
        await asyncio.sleep(seconds)

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[MemorySender]:
        """Watch *path*; the sender's queue gets the events."""
        answer = await self.answer("GET", path, headers=headers)
        assert isinstance(answer, Stream), answer
        sender = MemorySender()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(_run(answer, sender))
            try:
                yield sender
            finally:
                running.cancel()


async def _run(stream: Stream, sender: MemorySender) -> None:
    await stream.run(sender)
    sender.closed = True


@contextlib.asynccontextmanager
async def serving(
    store: Store | None = None,
    clock: Clock | None = None,
    seed: int = 1,
    *,
    ids: SeededIds | None = None,
    authorizer: Authorizer | None = None,
    admission: tuple[Admission, ...] = (),
    virtual: Mapping[tuple[str, str], ResourceHandler] | None = None,
    prepared: Callable[[ApiServer], Awaitable[None]] | None = None,
    pod_security: PodSecurityConfiguration | None = None,
    offload: Offload | None = None,
    webhook_metrics: WebhookMetrics | None = None,
    cache_lists: Counter | None = None,
    runs_pods: bool = False,
    aggregated: AggregatedApis | None = None,
    disabled_admission: frozenset[str] = frozenset(),
) -> AsyncIterator[Server]:
    """Run a server over *store* (memory by default); *prepared* is called before it runs."""
    everybody, ids = Everybody(), ids or SeededIds(seed)
    api = ApiServer(
        Parts(
            store=store or MemoryStore(ids.uid()),
            clock=clock or LoopClock(),
            ids=ids,
            authenticator=everybody,
            authorizer=authorizer or everybody,
            flow=everybody,
            recorder=everybody,
            admission=admission,
            disabled_admission=disabled_admission,
            virtual=virtual or {},
            pod_security=pod_security or PodSecurityConfiguration(),
            offload=offload or Offload(),
            webhook_metrics=webhook_metrics,
            cache_lists=cache_lists,
            runs_pods=runs_pods,
            aggregated=aggregated,
        )
    )
    await api.prepare()
    if prepared is not None:
        await prepared(api)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(api.run())
        try:
            yield Server(api)
        finally:
            running.cancel()
