"""Kubernetes Events about what was decided, without ever slowing down who decides.

``record`` only appends to a bounded buffer; ``run`` writes. Repetition is folded as client-go
folds it: the same event again raises the count of the first one; more than ten similar ones
(differing in the message alone) within ten minutes become one "combined from similar events"; and
one object gets at most a burst of 25 events, then one in five minutes. What does not fit the
buffer is dropped and counted. An event that cannot be written is given up after a few attempts:
events inform, they do not carry state.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339
from skerry.logic.machinery.plan import Announcement, EventType
from skerry.runtime.client import Client, cluster_of
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

EVENTS = GroupVersionResource("", "v1", "events")

_BUFFER = 1000
_REMEMBERED = 4096
_SIMILAR = 10
_SIMILAR_SECONDS = 600.0
_BURST = 25.0
_REFILL_PER_SECOND = 1.0 / 300.0
_ATTEMPTS = 12
_RETRY_SECONDS = 10.0
# The longest text the Events API accepts.
_MESSAGE_LIMIT = 1024

_COMBINED = "(combined from similar events): "

_log = Logger("event-recorder")

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Item:
    about: Object
    cluster: str
    type: EventType
    reason: str
    message: str
    moment: datetime


@dataclass(slots=True)
class _Written:
    """An event the server has, to be counted up when it happens again."""

    name: str
    namespace: str
    first: str
    count: int = 1


@dataclass(slots=True)
class _Similar:
    since: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class _Recent(Generic[V]):
    """The most recently used entries, so that memory does not grow with the objects seen."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, ...], V] = OrderedDict()

    def get(self, key: tuple[str, ...]) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: tuple[str, ...], value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)

    def drop(self, key: tuple[str, ...]) -> None:
        self._entries.pop(key, None)


class EventRecorder:
    """Records events of one component; ``run`` it in a task beside the controller."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        host: str = "",
        metrics: RuntimeMetrics | None = None,
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._component = component
        self._host = host
        self._buffer: asyncio.Queue[_Item] = asyncio.Queue(_BUFFER)
        self._dropped = (metrics or RuntimeMetrics()).events_dropped
        self._written: _Recent[_Written] = _Recent()
        self._similar: _Recent[_Similar] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()

    def record(self, about: Object, type: EventType, reason: str, message: str) -> None:  # noqa: A002
        """Say that something happened to *about*; never waits, may drop."""
        item = _Item(
            reference(about),
            cluster_of(about),
            type,
            reason,
            message[:_MESSAGE_LIMIT],
            self._clock.now(),
        )
        try:
            self._buffer.put_nowait(item)
        except asyncio.QueueFull:
            self._dropped.labels("buffer full").inc()

    def announce(self, announcement: Announcement) -> None:
        """Record what a plan announces; fits ``Executor``'s *announce*."""
        self.record(
            announcement.about, announcement.type, announcement.reason, announcement.message
        )

    async def run(self) -> None:
        """Write recorded events until cancelled."""
        while True:
            item = await self._buffer.get()
            await self._handle(item)
            self._buffer.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far has been dealt with."""
        await self._buffer.join()

    async def _handle(self, item: _Item) -> None:
        about = tuple(str(value) for value in item.about.values())
        if not self._admitted((item.cluster, *about)):
            self._dropped.labels("too many").inc()
            return
        message = self._folded((item.cluster, *about, item.type, item.reason), item)
        key = (item.cluster, *about, item.type, item.reason, message)
        if message.startswith(_COMBINED):
            key = (item.cluster, *about, item.type, item.reason, _COMBINED)
        for attempt in range(_ATTEMPTS):
            try:
                await self._write(key, item, message)
            except TransportError as error:
                _log.debug("event not written yet", attempt=attempt, error=error)
                await self._clock.sleep(_RETRY_SECONDS)
            except ApiError as error:
                self._dropped.labels("refused").inc()
                _log.warning("event refused", reason=item.reason, error=error)
                return
            else:
                return
        self._dropped.labels("unreachable").inc()

    def _admitted(self, key: tuple[str, ...]) -> bool:
        """Take a token from the object's bucket, if there is one."""
        now = self._clock.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(_BURST, now)
            self._buckets.put(key, bucket)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.at) * _REFILL_PER_SECOND)
        bucket.at = now
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True

    def _folded(self, key: tuple[str, ...], item: _Item) -> str:
        """Return the message to write: its own, or that of many similar ones combined."""
        now = self._clock.monotonic()
        similar = self._similar.get(key)
        if similar is None or now - similar.since > _SIMILAR_SECONDS:
            similar = _Similar(now)
        similar.messages.add(item.message)
        similar.since = now
        self._similar.put(key, similar)
        if len(similar.messages) < _SIMILAR:
            return item.message
        while len(similar.messages) > _SIMILAR:
            similar.messages.pop()
        return _COMBINED + item.message

    async def _write(self, key: tuple[str, ...], item: _Item, message: str) -> None:
        client = self._client.for_cluster(item.cluster)
        known = self._written.get(key)
        if known is not None:
            patch = {
                "message": message,
                "count": known.count + 1,
                "lastTimestamp": rfc3339(item.moment),
            }
            try:
                await client.patch(EVENTS, known.name, patch, known.namespace, kind="merge")
            except NotFound:  # expired; it starts anew
                self._written.drop(key)
            else:
                known.count += 1
                return
        event = self._event(item, message)
        await client.create(EVENTS, event)
        metadata = event["metadata"]
        self._written.put(
            key, _Written(metadata["name"], metadata["namespace"], event["firstTimestamp"])
        )

    def _event(self, item: _Item, message: str) -> Object:
        moment = rfc3339(item.moment)
        # client-go's name: the object's, and the time in hexadecimal nanoseconds.
        stamp = int(self._clock.now().timestamp() * 1_000_000_000)
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{item.about['name'][:200]}.{stamp:x}",
                "namespace": item.about.get("namespace") or "default",
            },
            "involvedObject": item.about,
            "reason": item.reason,
            "message": message,
            "source": source,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": item.type,
        }


def reference(obj: Mapping[str, Any]) -> Object:
    """Return the ObjectReference that names *obj*.

    Without its resourceVersion, which differs from event to event and would defeat counting.
    """
    metadata = obj["metadata"]
    found = {
        "kind": obj.get("kind", ""),
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "apiVersion": obj.get("apiVersion", ""),
    }
    return {name: value for name, value in found.items() if value}
