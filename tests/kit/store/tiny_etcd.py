"""An etcd of one process and no disk, on loopback, whose answers a test can spoil.

It speaks the part of the v3 API that the store uses: ranges, transactions, compaction, watches and
tokens. Whether the store understands the real one is what ``tests/contract`` checks; this one is
for what a real one does only by accident: an answer lost after the work was done, a token that
expired, a member that refuses once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import grpc
import grpc.aio

from skerry.kit.clock import SystemClock
from skerry.store.etcd_client import EtcdClient, EtcdOptions
from skerry.wire.protobuf import delimited_field, number_field, read_fields

Fields = dict[int, list[Any]]


class Fault(NamedTuple):
    """What the next call gets in place of its answer; ``done``: after its work was done."""

    code: grpc.StatusCode
    details: str
    done: bool = False


class Stored(NamedTuple):
    value: bytes
    revision: int


class Happened(NamedTuple):
    """One event: ``value`` None for a delete."""

    revision: int
    key: bytes
    value: bytes | None
    previous: Stored | None


@dataclass
class TinyEtcd:
    """The keys, what happened to them, and the calls that came."""

    port: int = 0
    revision: int = 1
    compacted: int = 0
    password: str = ""
    tokens: set[str] = field(default_factory=set)
    keys: dict[bytes, Stored] = field(default_factory=dict)
    log: list[Happened] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    faults: dict[str, deque[Fault]] = field(default_factory=dict)
    watching: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spoil(self, method: str, fault: Fault) -> None:
        """Have the next call of *method* fail so."""
        self.faults.setdefault(method, deque()).append(fault)

    def break_watches(self) -> None:
        """End every stream of changes without a word."""
        broken, self._broken = self._broken, asyncio.Event()
        broken.set()

    def put(self, **pairs: bytes) -> None:
        """Write as another client would: all in one revision."""
        self.write([(name.encode(), value) for name, value in pairs.items()])

    def forget(self, revision: int) -> None:
        """Compact as an operator of etcd would."""
        self.compacted = max(self.compacted, revision)

    # -- the service ---------------------------------------------------------------------------

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        services = {
            "KV": {"Range": self._range, "Txn": self.txn, "Compact": self._compact},
            "Auth": {"Authenticate": self._authenticate},
        }
        unary = [
            grpc.method_handlers_generic_handler(
                f"etcdserverpb.{service}",
                {
                    method: grpc.unary_unary_rpc_method_handler(self._called(method, work))
                    for method, work in methods.items()
                },
            )
            for service, methods in services.items()
        ]
        watch = {"Watch": grpc.stream_stream_rpc_method_handler(self._watch)}
        return *unary, grpc.method_handlers_generic_handler("etcdserverpb.Watch", watch)

    def _called(self, method: str, work: Callable[[bytes], bytes]) -> Any:
        async def call(request: bytes, context: Any) -> bytes:
            self.calls.append(method)
            if method != "Authenticate" and not self._admitted(context):
                await _refuse(context, INVALID_TOKEN)
            waiting = self.faults.get(method)
            fault = waiting.popleft() if waiting else None
            if fault is not None and not fault.done:
                await _refuse(context, fault)
            try:
                answer = work(request)
            except _Refused as refused:
                await _refuse(context, refused.fault)
            if fault is not None:
                await _refuse(context, fault)
            return answer

        return call

    def _admitted(self, context: Any) -> bool:
        sent = dict(context.invocation_metadata() or ())
        return not self.password or sent.get("token") in self.tokens

    def _authenticate(self, request: bytes) -> bytes:
        asked = _fields(request)
        if asked[2][0].decode() != self.password:
            raise _Refused(Fault(grpc.StatusCode.INVALID_ARGUMENT, "authentication failed"))
        token = f"token-{len(self.calls)}"
        self.tokens.add(token)
        return delimited_field(2, token.encode())

    def _range(self, request: bytes) -> bytes:
        asked = _fields(request)
        start, end = asked[1][0], asked.get(2, [b""])[0]
        at = asked.get(4, [0])[0]
        if at and at < self.compacted:
            message = "etcdserver: mvcc: required revision has been compacted"
            raise _Refused(Fault(grpc.StatusCode.OUT_OF_RANGE, message))
        found = [
            (key, stored)
            for key, stored in sorted(self.keys.items())
            if key == start or (end and start <= key < end)
        ]
        records = [delimited_field(2, _record(key, *stored)) for key, stored in found]
        return self._header() + b"".join(records) + number_field(4, len(found))

    def txn(self, request: bytes) -> bytes:
        """Answer a transaction, as the service does."""
        asked = _fields(request)
        succeeded = all(self._holds(_fields(each)) for each in asked.get(1, ()))
        operations = [_fields(each) for each in asked.get(2 if succeeded else 3, ())]
        ranges = [self._range(each[1][0]) for each in operations if 1 in each]
        self.write([_change(each) for each in operations if 1 not in each])
        answers = [delimited_field(3, delimited_field(1, each)) for each in ranges]
        return self._header() + number_field(2, succeeded) + b"".join(answers)

    def _compact(self, request: bytes) -> bytes:
        revision = _fields(request)[1][0]
        if revision <= self.compacted:
            message = "etcdserver: mvcc: required revision has been compacted"
            raise _Refused(Fault(grpc.StatusCode.OUT_OF_RANGE, message))
        self.forget(revision)
        return self._header()

    async def _watch(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        broken = self._broken
        self.watching.set()
        asked = _fields(_fields(await anext(requests))[1][0])
        start, end, revision = asked[1][0], asked[2][0], asked.get(3, [self.revision + 1])[0]
        yield self._header() + number_field(3, True)
        if not self._admitted(context):
            # etcd ends the watch by a message, not the call by a status.
            reason = delimited_field(6, INVALID_TOKEN.details.encode())
            yield self._header() + number_field(4, True) + reason
        elif revision <= self.compacted:
            yield self._header() + number_field(4, True) + number_field(5, self.compacted)
        while not broken.is_set():
            events = [e for e in self.log if e.revision >= revision and start <= e.key < end]
            if events and revision > self.compacted:
                revision = self.revision + 1
                yield self._header() + b"".join(delimited_field(11, _event(e)) for e in events)
                continue
            waits = [asyncio.ensure_future(e.wait()) for e in (self._changed, broken)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()

    # -- its state -----------------------------------------------------------------------------

    def _header(self) -> bytes:
        return delimited_field(1, number_field(3, self.revision))

    def _holds(self, condition: Fields) -> bool:
        stored = self.keys.get(condition[3][0])
        revision, wanted = stored.revision if stored else 0, condition[6][0]
        return bool(revision > wanted if condition.get(1, [0])[0] == 1 else revision == wanted)

    def write(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        changes = [each for each in changes if each[1] is not None or each[0] in self.keys]
        if not changes:
            return
        self.revision += 1
        for key, value in changes:
            self.log.append(Happened(self.revision, key, value, self.keys.get(key)))
            if value is None:
                del self.keys[key]
            else:
                self.keys[key] = Stored(value, self.revision)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


INVALID_TOKEN = Fault(grpc.StatusCode.UNAUTHENTICATED, "etcdserver: invalid auth token")


class _Refused(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault


async def _refuse(context: Any, fault: Fault) -> NoReturn:
    await context.abort(fault.code, fault.details)
    raise AssertionError("abort raises")


def _fields(message: bytes) -> Fields:
    found: Fields = {}
    for number, _, content in read_fields(message):
        found.setdefault(number, []).append(content)
    return found


def _change(operation: Fields) -> tuple[bytes, bytes | None]:
    if 2 in operation:
        asked = _fields(operation[2][0])
        return asked[1][0], asked[2][0]
    return _fields(operation[3][0])[1][0], None


def _record(key: bytes, value: bytes, revision: int) -> bytes:
    return delimited_field(1, key) + number_field(3, revision) + delimited_field(5, value)


def _event(event: Happened) -> bytes:
    kind = number_field(1, 1) if event.value is None else b""
    before = delimited_field(3, _record(event.key, *event.previous)) if event.previous else b""
    entry = delimited_field(2, _record(event.key, event.value or b"", event.revision))
    return kind + entry + before


@asynccontextmanager
async def tiny_etcd(*, password: str = "") -> AsyncIterator[TinyEtcd]:
    """Serve one on loopback."""
    etcd = TinyEtcd(password=password)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(etcd.handlers())
    etcd.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield etcd
    finally:
        etcd.break_watches()
        await server.stop(None)


@asynccontextmanager
async def client_of(*servers: str, **options: Any) -> AsyncIterator[EtcdClient]:
    """Open a client of *servers*."""
    client = EtcdClient(EtcdOptions(servers, **{"timeout_seconds": 5.0, **options}), SystemClock())
    try:
        yield client
    finally:
        await client.close()
