"""Events in the newer API, as kube-scheduler records them.

Unlike the runtime's recorder these carry an action and the profile that acted, and repetition
becomes a *series* of the first event: its count is written at the second occurrence and then at
most every half hour, and the series ends after six idle minutes.

Recording never waits. What is recorded waits its turn, by what it is about, so that repetition
before the first write costs nothing; a few writers work it off while bindings, which pods wait
for, have all other connections. The buffer holds a burst of tens of thousands of pods; what goes
beyond is dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.timestamps import rfc3339_micro
from skerry.runtime.client import Client
from skerry.runtime.events import reference
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.pod import DEFAULT_SCHEDULER

EVENTS = GroupVersionResource("events.k8s.io", "v1", "events")

# About half a kilobyte each.
_BUFFER = 50_000
_WRITERS = 2
_SERIES_KEPT = 4096
_REFRESH_SECONDS = 30 * 60.0
_IDLE_SECONDS = 6 * 60.0
_TRIES = 12
_RETRY_SECONDS = 10.0
_NOTE_LIMIT = 1024

_log = Logger("scheduler-events")

_Key = tuple[str, str, str, str, str, str]


@dataclass(slots=True)
class _Happening:
    """Something that happened, perhaps several times, and is not written yet."""

    about: Object
    controller: str
    type: str
    reason: str
    action: str
    note: str
    moment: datetime
    times: int = 1


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    seen: datetime
    written: datetime


class SchedulerEvents:
    """Records; ``run`` writes until cancelled."""

    def __init__(
        self,
        client: Client,
        instance: str,
        ids: IdSource,
        metrics: RuntimeMetrics | None = None,
        *,
        buffer: int = _BUFFER,
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._instance = instance
        self._ids = ids
        self._limit = buffer
        self._dropped = (metrics or RuntimeMetrics()).events_dropped
        # Recorded and not yet taken up, oldest first; and what is being written.
        self._waiting: OrderedDict[_Key, _Happening] = OrderedDict()
        self._busy: set[_Key] = set()
        self._recorded = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._series: OrderedDict[_Key, _Series] = OrderedDict()

    def event(self, pod: Object, type_: str, reason: str, action: str, note: str) -> None:
        controller = (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
        about = {"apiVersion": "v1", "kind": "Pod"} | reference(pod)
        key = (controller, type_, reason, action, str(about.get("uid")), about["name"])
        moment, note = self._clock.now(), note[:_NOTE_LIMIT]
        same = self._waiting.get(key)
        if same is not None:
            same.times += 1
            same.moment, same.note = moment, note
        elif len(self._waiting) >= self._limit:
            self._dropped.labels("buffer full").inc()
        else:
            happening = _Happening(about, controller, type_, reason, action, note, moment)
            self._waiting[key] = happening
            self._recorded.set()
            self._settled.clear()

    async def run(self) -> None:
        """Write recorded events, oldest first and one at a time about the same thing."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_WRITERS):
                tasks.create_task(self._write_recorded())

    async def _write_recorded(self) -> None:
        while True:
            await self._recorded.wait()
            taken = self._take()
            if taken is None:
                # All that waits is about something being written; its writer takes it up next.
                self._recorded.clear()
                continue
            key, happening = taken
            try:
                await self._write(key, happening)
            finally:
                self._busy.discard(key)
                if self._waiting:
                    self._recorded.set()
                elif not self._busy:
                    self._settled.set()

    def _take(self) -> tuple[_Key, _Happening] | None:
        for key in self._waiting:
            if key not in self._busy:
                self._busy.add(key)
                return key, self._waiting.pop(key)
        return None

    async def flush(self) -> None:
        """Wait until everything recorded so far has been dealt with."""
        await self._settled.wait()

    async def _write(self, key: _Key, item: _Happening) -> None:
        for _ in range(_TRIES):
            try:
                await self._write_once(key, item)
            except TransportError as problem:
                _log.debug("event not written yet", reason=item.reason, error=problem)
                jitter = 0.75 + 0.5 * self._ids.fraction()
                await self._clock.sleep(_RETRY_SECONDS * jitter)
            except ApiError as problem:
                self._dropped.labels("refused").inc()
                _log.warning("event refused", reason=item.reason, error=problem)
                return
            else:
                return
        self._dropped.labels("unreachable").inc()

    async def _write_once(self, key: _Key, item: _Happening) -> None:
        series = self._series.get(key)
        if series is not None and (item.moment - series.seen).total_seconds() < _IDLE_SECONDS:
            try:
                await self._continue(series, item)
            except NotFound:  # expired at the server; a new event begins
                del self._series[key]
            else:
                return
        event = self._event(item)
        await self._client.create(EVENTS, event)
        metadata = event["metadata"]
        self._series[key] = _Series(
            metadata["name"], metadata["namespace"], item.times, item.moment, item.moment
        )
        self._series.move_to_end(key)
        if len(self._series) > _SERIES_KEPT:
            self._series.popitem(last=False)

    async def _continue(self, series: _Series, item: _Happening) -> None:
        first_repetition = series.count == 1
        count = series.count + item.times
        since = (item.moment - series.written).total_seconds()
        if first_repetition or since >= _REFRESH_SECONDS:
            patch = {"series": _repeated(count, item.moment)}
            await self._client.patch(EVENTS, series.name, patch, series.namespace, kind="merge")
            series.written = item.moment
        series.count, series.seen = count, item.moment

    def _event(self, item: _Happening) -> Object:
        # The time in hexadecimal nanoseconds keeps names apart, as client-go does.
        stamp = f"{int(item.moment.timestamp() * 1_000_000_000):x}"
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{item.about['name'][:200]}.{stamp}",
                "namespace": item.about.get("namespace") or "default",
            },
            "eventTime": rfc3339_micro(item.moment),
            "reportingController": item.controller,
            "reportingInstance": self._instance[:128],
            "action": item.action,
            "reason": item.reason,
            "regarding": item.about,
            "note": item.note,
            "type": item.type,
        }
        if item.times > 1:
            event["series"] = _repeated(item.times, item.moment)
        return event


def _repeated(count: int, moment: datetime) -> Object:
    return {"count": count, "lastObservedTime": rfc3339_micro(moment)}
