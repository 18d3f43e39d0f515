"""Events in the newer API (``events.k8s.io``), as kube-scheduler records them.

They carry an action and who acted, and repetition becomes a *series* of the first event: its count
is written at the second occurrence and then at most every half hour, and the series ends after six
idle minutes. That bounds what is written, so nothing is dropped for being too many.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339_micro
from skerry.runtime.client import Client
from skerry.runtime.events import EventNames, Key, Occurrence, RecentEntries

EVENTS = GroupVersionResource("events.k8s.io", "v1", "events")

_REFRESH_SECONDS = 30 * 60.0
_IDLE_SECONDS = 6 * 60.0
_INSTANCE_LIMIT = 128


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    seen: datetime
    written: datetime


class EventSeries:
    """An ``EventWriter``; *instance* is the process that reports, as its Lease names it."""

    def __init__(self, client: Client, instance: str) -> None:
        self._client = client
        self._instance = instance[:_INSTANCE_LIMIT]
        self._names = EventNames()
        self._series: RecentEntries[_Series] = RecentEntries()

    def key(self, item: Occurrence) -> Key:
        """The note may change from one time to the next; the last one counts."""
        about = item.about
        kind = (item.controller, item.type, item.reason, item.action)
        return (*kind, str(about.get("uid")), about["name"])

    def admitted(self, item: Occurrence) -> int:
        return item.times

    async def write(self, key: Key, item: Occurrence) -> None:
        series = self._series.get(key)
        if series is not None and (item.moment - series.seen).total_seconds() < _IDLE_SECONDS:
            try:
                await self._continue(series, item)
            except NotFound:  # expired at the server; a new event begins
                self._series.drop(key)
            else:
                return
        event = self._event(item)
        await self._client.create(EVENTS, event, quiet=True)
        metadata = event["metadata"]
        self._series.put(
            key,
            _Series(metadata["name"], metadata["namespace"], item.times, item.moment, item.moment),
        )

    async def _continue(self, series: _Series, item: Occurrence) -> None:
        first_repetition = series.count == 1
        count = series.count + item.times
        since = (item.moment - series.written).total_seconds()
        if first_repetition or since >= _REFRESH_SECONDS:
            patch = {"series": _repeated(count, item.moment)}
            await self._client.patch(
                EVENTS, series.name, patch, series.namespace, kind="merge", quiet=True
            )
            series.written = item.moment
        series.count, series.seen = count, item.moment

    def _event(self, item: Occurrence) -> Object:
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": self._names.metadata(item.about, item.moment),
            "eventTime": rfc3339_micro(item.moment),
            "reportingController": item.controller,
            "reportingInstance": self._instance,
            "action": item.action,
            "reason": item.reason,
            "regarding": item.about,
            "note": item.message,
            "type": item.type,
        }
        if item.times > 1:
            event["series"] = _repeated(item.times, item.moment)
        return event


def _repeated(count: int, moment: datetime) -> Object:
    return {"count": count, "lastObservedTime": rfc3339_micro(moment)}
