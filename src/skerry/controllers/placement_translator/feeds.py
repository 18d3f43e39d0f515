"""The watches at work: what each shows goes to the event handlers, record by record.

There is a watch for each kind that somebody selects or that mailboxes hold, across workspaces where
the hub can do that. The set changes while they run, from inside the very handlers they call: a
placement that selects another kind, a definition that goes. So nobody starts or stops a watch
directly. Handlers change the set; ``Feeds`` follows it; and a feed that was stopped is deaf from
that moment, also when it is followed again before its task has noticed (hence the tokens).

A list goes in piece by piece, and the loop is given to others in between. Until its end the watch
is not complete, so half a list is never taken for the whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from skerry.kit.ids import IdSource
from skerry.logic.fleet.translation.sources import Record, Records, WatchKey, record_of
from skerry.logic.fleet.translation.workspaces import Workspaces
from skerry.runtime.answers import EventKind
from skerry.runtime.client import EVERYTHING, Client, Selection
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.reflector import Reflector

METADATA = Selection(metadata_only=True)
# Others get the loop after this many objects of a list.
_CHUNK = 200


class WatchSet:
    """Which watches are to be followed. Anybody may change it; ``Feeds`` follows it."""

    def __init__(self) -> None:
        # Each with a token of its own, so that a watch that was stopped and is followed again is
        # not the one of before.
        self.keys: dict[WatchKey, object] = {}
        self.changed = asyncio.Event()

    def follow(self, key: WatchKey) -> None:
        if key not in self.keys:
            self.keys[key] = object()
            self.changed.set()

    def stop(self, key: WatchKey) -> None:
        if self.keys.pop(key, None) is not None:
            self.changed.set()


class WatchHandlers(Protocol):
    """Who takes what watches show."""

    def watch_started(self, key: WatchKey) -> None: ...

    def watch_synced(self, key: WatchKey) -> None: ...

    def put(self, records: Records, record: Record) -> None: ...

    def removed(self, records: Records, last: Record) -> None: ...


class Feed:
    """The sink of one reflector; deaf as soon as its watch is not to be followed any more."""

    def __init__(
        self, key: WatchKey, records: Records, watches: WatchSet, handlers: WatchHandlers
    ) -> None:
        self._key = key
        self._records = records
        self._watches = watches
        self._token = watches.keys.get(key)
        self._handlers = handlers

    @property
    def _is_followed(self) -> bool:
        return self._watches.keys.get(self._key) is self._token

    async def replace(self, items: Sequence[Record]) -> None:
        """Take a whole list: what it has is put, and what it lacks has gone."""
        present: set[tuple[str, str, str]] = set()
        for count, record in enumerate(items, 1):
            present.add((record.cluster, record.namespace, record.name))
            self.apply("MODIFIED", record)
            if count % _CHUNK == 0:
                await asyncio.sleep(0)
        gone = [
            record
            for record in self._records
            if (record.cluster, record.namespace, record.name) not in present
        ]
        for record in gone:
            self.apply("DELETED", record)
        if self._is_followed:
            self._handlers.watch_synced(self._key)

    def apply(self, kind: EventKind, item: Record) -> None:
        if not self._is_followed:
            return
        if kind == "DELETED":
            self._handlers.removed(self._records, item)
        else:
            self._handlers.put(self._records, item)


class Feeds:
    """Runs a reflector for each watch to be followed."""

    def __init__(
        self,
        client: Client,
        ids: IdSource,
        metrics: RuntimeMetrics,
        watches: WatchSet,
        workspaces: Workspaces,
        handlers: WatchHandlers,
    ) -> None:
        self._client = client
        self._ids = ids
        self._metrics = metrics
        self._watches = watches
        self._workspaces = workspaces
        self._handlers = handlers

    async def run(self) -> None:
        """Follow the set until cancelled; may be run again, and reads everything anew then."""
        for key in self._watches.keys:
            self._handlers.watch_started(key)
        running: dict[WatchKey, tuple[object, asyncio.Task[None]]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._watches.changed.clear()
                for key, (token, task) in list(running.items()):
                    if self._watches.keys.get(key) is not token:
                        task.cancel()
                        del running[key]
                for key, token in list(self._watches.keys.items()):
                    if key not in running:
                        running[key] = token, group.create_task(self._reflector(key).run())
                await self._watches.changed.wait()

    def _reflector(self, key: WatchKey) -> Reflector[Record]:
        return Reflector(
            self._client.for_cluster(key.cluster),
            key.gvr,
            Feed(key, self._workspaces.watch(key), self._watches, self._handlers),
            partial(record_of, key),
            ids=self._ids,
            selection=METADATA if key.presence else EVERYTHING,
            metrics=self._metrics,
        )
