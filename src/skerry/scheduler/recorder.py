"""Events in the newer API, as kube-scheduler records them.

Unlike the runtime's recorder these carry an action and the profile that acted, and repetition
becomes a *series* of the first event: its count is written at the second occurrence and then at
most every half hour, and the series ends after six idle minutes. Recording never waits; what does
not fit the buffer is dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from skerry.api.errors import ApiError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import rfc3339_micro
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.runtime.client import Client
from skerry.runtime.events import reference
from skerry.runtime.transport import TransportError
from skerry.scheduler.cache.pod import DEFAULT_SCHEDULER, Object

EVENTS = GroupVersionResource("events.k8s.io", "v1", "events")

_BUFFER = 1000
_SERIES_KEPT = 4096
_REFRESH_SECONDS = 30 * 60.0
_IDLE_SECONDS = 6 * 60.0
_TRIES = 12
_RETRY_SECONDS = 10.0
_NOTE_LIMIT = 1024

_log = Logger("scheduler-events")


@dataclass(frozen=True, slots=True)
class _Happening:
    about: Object
    controller: str
    type: str
    reason: str
    action: str
    note: str
    moment: datetime


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    seen: datetime
    written: datetime


class SchedulerEvents:
    """Records; ``run`` writes until cancelled."""

    def __init__(self, client: Client, instance: str, ids: IdSource) -> None:
        self._client = client
        self._clock = client.clock
        self._instance = instance
        self._ids = ids
        self._buffer: asyncio.Queue[_Happening] = asyncio.Queue(_BUFFER)
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self.dropped = 0

    def event(self, pod: Object, type_: str, reason: str, action: str, note: str) -> None:
        controller = (pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER
        about = {"apiVersion": "v1", "kind": "Pod"} | reference(pod)
        happening = _Happening(
            about, controller, type_, reason, action, note[:_NOTE_LIMIT], self._clock.now()
        )
        try:
            self._buffer.put_nowait(happening)
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write recorded events, oldest first."""
        while True:
            happening = await self._buffer.get()
            await self._write(happening)
            self._buffer.task_done()

    async def flush(self) -> None:
        """Wait until everything recorded so far has been dealt with."""
        await self._buffer.join()

    async def _write(self, item: _Happening) -> None:
        for _ in range(_TRIES):
            try:
                await self._write_once(item)
            except TransportError as problem:
                _log.debug("event not written yet", reason=item.reason, error=problem)
                jitter = 0.75 + 0.5 * self._ids.fraction()
                await self._clock.sleep(_RETRY_SECONDS * jitter)
            except ApiError as problem:
                _log.warning("event refused", reason=item.reason, error=problem)
                return
            else:
                return
        self.dropped += 1

    async def _write_once(self, item: _Happening) -> None:
        key = (
            item.controller,
            item.type,
            item.reason,
            item.action,
            str(item.about.get("uid")),
            item.about["name"],
        )
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
            metadata["name"], metadata["namespace"], 1, item.moment, item.moment
        )
        self._series.move_to_end(key)
        if len(self._series) > _SERIES_KEPT:
            self._series.popitem(last=False)

    async def _continue(self, series: _Series, item: _Happening) -> None:
        series.count += 1
        series.seen = item.moment
        since = (item.moment - series.written).total_seconds()
        if series.count > 2 and since < _REFRESH_SECONDS:
            return
        observed = rfc3339_micro(item.moment)
        patch = {"series": {"count": series.count, "lastObservedTime": observed}}
        await self._client.patch(EVENTS, series.name, patch, series.namespace, kind="merge")
        series.written = item.moment

    def _event(self, item: _Happening) -> Object:
        # The time in hexadecimal nanoseconds keeps names apart, as client-go does.
        stamp = f"{int(item.moment.timestamp() * 1_000_000_000):x}"
        return {
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
