"""Kubernetes Events about what was decided, without ever slowing down who decides.

``EventRecorder.record`` only puts an occurrence among those that wait, by what it is about, so
that repetition before the first write costs nothing; ``run`` writes them. What does not fit is
dropped and counted. An event that cannot be written is given up after a few attempts: events
inform, they do not carry state.

How repetition shows is a matter of the API an event is written in, and there are two, as in
client-go. Here is the older one (``CoreEvents``), which controllers and kubelets use: the same
event again raises the count of the first one; more than ten similar ones (differing in the message
alone) within ten minutes become one "combined from similar events"; and one object gets at most a
burst of 25 events, then one in five minutes. The newer one, kube-scheduler's, is in
``event_series.py``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

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
# The longest text the Events APIs accept.
_MESSAGE_LIMIT = 1024

_COMBINED = "(combined from similar events): "

_log = Logger("event-recorder")

Key = tuple[str, ...]
V = TypeVar("V")


@dataclass(slots=True)
class Occurrence:
    """Something that happened, perhaps several times, and is not written yet.

    ``controller`` and ``action`` are of the newer API: who acted, and what it was about to do.
    """

    about: Object
    cluster: str
    type: EventType
    reason: str
    message: str
    moment: datetime
    controller: str = ""
    action: str = ""
    times: int = 1


class EventWriter(Protocol):
    """One of the two Event APIs."""

    def key(self, item: Occurrence) -> Key:
        """Return what is the same for occurrences of which one counts for all."""

    def admitted(self, item: Occurrence) -> int:
        """Return how many of an occurrence's times may be written now."""

    async def write(self, key: Key, item: Occurrence) -> None:
        """Create the event, or let the one of before say that it happened again."""


class RecentEntries(Generic[V]):
    """The most recently used entries, so that memory does not grow with the objects seen."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Key, V] = OrderedDict()

    def get(self, key: Key) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: Key, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > _REMEMBERED:
            self._entries.popitem(last=False)

    def drop(self, key: Key) -> None:
        self._entries.pop(key, None)


class EventRecorder:
    """Records events of one component; ``run`` it in a task beside the controller.

    *writer* is the API they are written in, the older one unless given.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        host: str = "",
        metrics: RuntimeMetrics | None = None,
        writer: EventWriter | None = None,
        buffer: int = _BUFFER,
    ) -> None:
        self._clock = client.clock
        self._writer = writer or CoreEvents(client, component, host)
        self._limit = buffer
        self._dropped = (metrics or RuntimeMetrics()).events_dropped
        # Recorded and not yet taken up, oldest first; and what is being written.
        self._waiting: OrderedDict[Key, Occurrence] = OrderedDict()
        self._busy: set[Key] = set()
        self._recorded = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    def record(
        self,
        about: Object,
        type: EventType,  # noqa: A002
        reason: str,
        message: str,
        *,
        controller: str = "",
        action: str = "",
    ) -> None:
        """Say that something happened to *about*; never waits, may drop."""
        moment, text = self._clock.now(), message[:_MESSAGE_LIMIT]
        item = Occurrence(
            reference(about), cluster_of(about), type, reason, text, moment, controller, action
        )
        key = self._writer.key(item)
        same = self._waiting.get(key)
        if same is not None:
            same.times += 1
            same.moment, same.message = moment, text
        elif len(self._waiting) >= self._limit:
            self._dropped.labels("buffer full").inc()
        else:
            self._waiting[key] = item
            self._recorded.set()
            self._settled.clear()

    def announce(self, announcement: Announcement) -> None:
        """Record what a plan announces; fits ``Executor``'s *announce*."""
        self.record(
            announcement.about, announcement.type, announcement.reason, announcement.message
        )

    async def run(self, at_once: int = 1) -> None:
        """Write recorded events until cancelled, oldest first, one at a time about the same."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(self._write_recorded())

    async def flush(self) -> None:
        """Wait until everything recorded so far has been dealt with."""
        await self._settled.wait()

    async def _write_recorded(self) -> None:
        while True:
            await self._recorded.wait()
            taken = self._take()
            if taken is None:
                # All that waits is about something being written; its writer takes it up next.
                self._recorded.clear()
                continue
            key, item = taken
            try:
                await self._handle(key, item)
            finally:
                self._busy.discard(key)
                if self._waiting:
                    self._recorded.set()
                elif not self._busy:
                    self._settled.set()

    def _take(self) -> tuple[Key, Occurrence] | None:
        for key in self._waiting:
            if key not in self._busy:
                self._busy.add(key)
                return key, self._waiting.pop(key)
        return None

    async def _handle(self, key: Key, item: Occurrence) -> None:
        admitted = self._writer.admitted(item)
        if admitted < item.times:
            self._dropped.labels("too many").inc(item.times - admitted)
        if not admitted:
            return
        item.times = admitted
        for attempt in range(_ATTEMPTS):
            try:
                await self._writer.write(key, item)
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


@dataclass(slots=True)
class _Written:
    """An event the server has, to be counted up when it happens again."""

    name: str
    namespace: str
    count: int


@dataclass(slots=True)
class _Similar:
    since: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class CoreEvents:
    """Events of the API group ``""``: a count, and what client-go does against floods."""

    def __init__(self, client: Client, component: str, host: str = "") -> None:
        self._client = client
        self._clock = client.clock
        self._component = component
        self._host = host
        self._names = EventNames()
        self._written: RecentEntries[_Written] = RecentEntries()
        self._similar: RecentEntries[_Similar] = RecentEntries()
        self._buckets: RecentEntries[_Bucket] = RecentEntries()

    def key(self, item: Occurrence) -> Key:
        return (*_object_key(item), item.type, item.reason, item.message)

    def admitted(self, item: Occurrence) -> int:
        """Take a token a time from the object's bucket, as far as there are any."""
        key, now = _object_key(item), self._clock.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = _Bucket(_BURST, now)
            self._buckets.put(key, bucket)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.at) * _REFILL_PER_SECOND)
        bucket.at = now
        taken = min(item.times, int(bucket.tokens))
        bucket.tokens -= taken
        return taken

    async def write(self, key: Key, item: Occurrence) -> None:
        *kind, _ = key
        message = self._folded(tuple(kind), item.message)
        if message.startswith(_COMBINED):
            key = (*kind, _COMBINED)
        client = self._client.for_cluster(item.cluster)
        known = self._written.get(key)
        if known is not None:
            count = known.count + item.times
            last = rfc3339(item.moment)
            patch = {"message": message, "count": count, "lastTimestamp": last}
            try:
                await client.patch(EVENTS, known.name, patch, known.namespace, kind="merge")
            except NotFound:  # expired; it starts anew
                self._written.drop(key)
            else:
                known.count = count
                return
        event = self._event(item, message)
        await client.create(EVENTS, event)
        metadata = event["metadata"]
        self._written.put(key, _Written(metadata["name"], metadata["namespace"], item.times))

    def _folded(self, key: Key, message: str) -> str:
        """Return the message to write: its own, or that of many similar ones combined."""
        now = self._clock.monotonic()
        similar = self._similar.get(key)
        if similar is None or now - similar.since > _SIMILAR_SECONDS:
            similar = _Similar(now)
        similar.messages.add(message)
        similar.since = now
        self._similar.put(key, similar)
        if len(similar.messages) < _SIMILAR:
            return message
        while len(similar.messages) > _SIMILAR:
            similar.messages.pop()
        return _COMBINED + message

    def _event(self, item: Occurrence, message: str) -> Object:
        moment = rfc3339(item.moment)
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": self._names.metadata(item.about, self._clock.now()),
            "involvedObject": item.about,
            "reason": item.reason,
            "message": message,
            "source": source,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": item.times,
            "type": item.type,
        }


def _object_key(item: Occurrence) -> Key:
    return (item.cluster, *map(str, item.about.values()))


class EventNames:
    """Names events as client-go does: the object's, and the time in hexadecimal nanoseconds.

    Clocks count in microseconds at best, and one decision says several things of an object: two
    that are equally late are numbered on, or the server would refuse the second.
    """

    def __init__(self) -> None:
        self._last = 0

    def metadata(self, about: Object, moment: datetime) -> Object:
        """Return the metadata of a new event about an object."""
        self._last = max(self._last + 1, int(moment.timestamp() * 1_000_000_000))
        return {
            "name": f"{about['name'][:200]}.{self._last:x}",
            "namespace": about.get("namespace") or "default",
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
