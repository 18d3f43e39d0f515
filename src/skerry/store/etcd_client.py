"""The connection to etcd: which member to ask, when to ask again, and what is not known.

Reads are asked again, of another member where there is one, until they are answered or the time
is up. A transaction is sent once: when the connection breaks before the answer, whether it
happened is unknown, and ``OutcomeUnknown`` says just that. A member that is not connected is
never sent anything, so most failures are of the harmless kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio

from skerry.kit.clock import Clock
from skerry.store import etcd_messages as messages
from skerry.store.base import StoreError, Unavailable

T = TypeVar("T")

# How long one member is waited for before the next is tried.
_CONNECT_SECONDS = 0.5
_RETRY_SECONDS = 0.05
# What etcd says of a token that has expired, or that was given before it was started again.
_EXPIRED = "invalid auth token"

_CHANNEL_OPTIONS = (
    # Values and ranges may be larger than gRPC's 4 MiB; etcd and our paging bound them.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # gRPC's own back-off grows to two minutes; a restarted etcd must be found at once.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A peer that vanished without a word is noticed by these; etcd tolerates no less than 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """How to reach etcd; the fields are those of ``StoreSettings``."""

    servers: tuple[str, ...]
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    timeout_seconds: float = 10.0


class RevisionGone(StoreError):
    """etcd no longer keeps the revision that was asked for."""


class OutcomeUnknown(Unavailable):
    """A write was sent and never answered."""


class EtcdClient:
    """The calls the store needs, over as many members as are given."""

    def __init__(self, options: EtcdOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._channels = [_channel(server, options) for server in options.servers]
        # One callable per channel and method; making them anew would cost more than the call.
        self._calls: dict[tuple[int, str], Any] = {}
        self._current = 0
        self._token = ""

    async def range(self, request: bytes) -> messages.Ranged:
        return await self._read("KV/Range", request, messages.ranged)

    async def read(self, *requests: bytes) -> list[messages.Ranged]:
        """Answer several ranges as of one moment."""
        operations = [messages.range_operation(request) for request in requests]
        return (await self.inquire(messages.txn_request([], operations))).ranges

    async def inquire(self, request: bytes) -> messages.Transacted:
        """Send a transaction that only reads, again if need be like every read."""
        return await self._read("KV/Txn", request, messages.transacted)

    async def compact(self, revision: int) -> None:
        """Let etcd forget; that it has done so already is fine."""
        try:
            await self._read("KV/Compact", messages.compaction_request(revision), bytes)
        except RevisionGone:
            return

    async def version(self) -> str:
        """Return the version of the member that is asked at present."""
        return await self._read("Maintenance/Status", b"", messages.version_of)

    async def transact(self, request: bytes) -> messages.Transacted:
        """Send a transaction once; ``OutcomeUnknown`` when nobody can say what became of it."""
        deadline = self._clock.monotonic() + self._options.timeout_seconds
        while True:
            channel = await self._connected(deadline)
            try:
                answer = await self._call(channel, "KV/Txn", request, deadline)
                return messages.transacted(answer)
            except grpc.aio.AioRpcError as error:
                if not await self._certainly_not_done(error, deadline):
                    raise OutcomeUnknown(
                        f"etcd did not answer a write ({_reason(error)}); its outcome is unknown"
                    ) from error

    @asynccontextmanager
    async def watch(self, request: bytes) -> AsyncIterator[AsyncIterator[messages.Watched]]:
        """Open a stream of changes; it ends by an exception, ``Unavailable`` when broken."""
        deadline = self._clock.monotonic() + self._options.timeout_seconds
        channel = await self._connected(deadline)
        try:
            await self._authenticate(channel, deadline)
        except grpc.aio.AioRpcError as error:
            _raise_lasting(error)
            await self._note(error)
            raise Unavailable(f"etcd gives no token ({_reason(error)})") from error
        # hasleader: a member cut off from the others ends the stream rather than stay silent.
        metadata = (("hasleader", "true"), *self._metadata())
        stream = channel.stream_stream("/etcdserverpb.Watch/Watch")(metadata=metadata)
        try:
            yield self._messages(stream, request)
        finally:
            stream.cancel()

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    async def _messages(self, stream: Any, request: bytes) -> AsyncIterator[messages.Watched]:
        try:
            await stream.write(request)
            while True:
                message = await stream.read()
                if message is grpc.aio.EOF:
                    self._rotate()
                    raise Unavailable("etcd ended the watch")
                found = messages.watched(message)
                if found.canceled and _EXPIRED in found.reason:
                    # Of a watch this is said in a message; the call itself goes on.
                    self._token = ""
                yield found
        except grpc.aio.AioRpcError as error:
            await self._note(error)
            raise Unavailable(f"the watch of etcd broke ({_reason(error)})") from error

    async def _read(self, method: str, request: bytes, decode: Callable[[bytes], T]) -> T:
        deadline = self._clock.monotonic() + self._options.timeout_seconds
        while True:
            channel = await self._connected(deadline)
            try:
                return decode(await self._call(channel, method, request, deadline))
            except grpc.aio.AioRpcError as error:
                _raise_lasting(error)
                await self._note(error)
                if self._clock.monotonic() >= deadline:
                    raise Unavailable(f"etcd does not answer ({_reason(error)})") from error

    async def _call(self, channel: Any, method: str, request: bytes, deadline: float) -> bytes:
        await self._authenticate(channel, deadline)
        known = (id(channel), method)
        call = self._calls.get(known)
        if call is None:
            call = self._calls[known] = channel.unary_unary(f"/etcdserverpb.{method}")
        left = max(deadline - self._clock.monotonic(), 0.001)
        try:
            answer: bytes = await call(request, timeout=left, metadata=self._metadata())
        except asyncio.CancelledError as error:
            # grpc says the same of a call whose channel was closed as of one its caller gave up.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise Unavailable("the store is closed; etcd was not heard") from error
        return answer

    async def _authenticate(self, channel: Any, deadline: float) -> None:
        if not self._options.user or self._token:
            return
        request = messages.authenticate_request(self._options.user, self._options.password)
        left = max(deadline - self._clock.monotonic(), 0.001)
        call = channel.unary_unary("/etcdserverpb.Auth/Authenticate")
        self._token = messages.authenticated(await call(request, timeout=left))

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("token", self._token),) if self._token else ()

    async def _connected(self, deadline: float) -> Any:
        """Return the channel of a member that is connected, trying each in turn."""
        while True:
            channel = self._channels[self._current]
            if await self._becomes_ready(channel):
                return channel
            self._rotate()
            if self._clock.monotonic() >= deadline:
                listed = ", ".join(self._options.servers)
                raise Unavailable(f"etcd is out of reach ({listed}); nothing was sent")

    async def _becomes_ready(self, channel: Any) -> bool:
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return True
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                while state is not grpc.ChannelConnectivity.READY:
                    if state is grpc.ChannelConnectivity.SHUTDOWN:
                        raise Unavailable("the store is closed")
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        except TimeoutError:
            return False
        return True

    async def _certainly_not_done(self, error: grpc.aio.AioRpcError, deadline: float) -> bool:
        """Tell whether a failed write may be sent again; raises what will not get better."""
        _raise_lasting(error)
        refused = error.code() is grpc.StatusCode.UNAUTHENTICATED or any(
            text in (error.details() or "")
            for text in ("etcdserver: no leader", "etcdserver: too many requests")
        )
        await self._note(error)
        return refused and self._clock.monotonic() < deadline

    async def _note(self, error: grpc.aio.AioRpcError) -> None:
        """Prepare the next attempt: a new token, or another member after a short rest."""
        if error.code() is grpc.StatusCode.UNAUTHENTICATED or (_EXPIRED in (error.details() or "")):
            self._token = ""
            return
        self._rotate()
        await self._clock.sleep(_RETRY_SECONDS)

    def _rotate(self) -> None:
        self._current = (self._current + 1) % len(self._channels)


def _channel(server: str, options: EtcdOptions) -> Any:
    parts = urlsplit(server if "://" in server else f"http://{server}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise StoreError(f"etcd server {server!r}: want http://host:port or https://host:port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    target = f"{host}:{parts.port or 2379}"
    if parts.scheme == "http":
        return grpc.aio.insecure_channel(target, options=_CHANNEL_OPTIONS)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_content(options.ca),
        private_key=_content(options.key),
        certificate_chain=_content(options.cert),
    )
    return grpc.aio.secure_channel(target, credentials, options=_CHANNEL_OPTIONS)


def _content(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise StoreError(f"etcd credentials cannot be read: {error}") from error


def _reason(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {error.details()}"


# What asking again cannot change.
_LASTING = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.UNIMPLEMENTED,
}


def _raise_lasting(error: grpc.aio.AioRpcError) -> None:
    """Raise what is an answer rather than a disturbance."""
    details = error.details() or ""
    if error.code() is grpc.StatusCode.OUT_OF_RANGE:
        raise RevisionGone(details) from error
    if "database space exceeded" in details:
        raise Unavailable("etcd has no space left; the write did not happen") from error
    if error.code() in _LASTING and _EXPIRED not in details:
        raise StoreError(f"etcd refused the request ({_reason(error)})") from error
