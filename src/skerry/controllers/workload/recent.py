"""Reading one's own writes: what a controller just created or deleted, its cache may not show yet.

Without this a controller that makes pods under fresh names would make them twice whenever it
looks again before the watch has told it. Whatever a plan touches is remembered; while the cache
does not show it, the object itself is read. So a failed write is forgotten by itself, and no
timeout is needed as with counted expectations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.logic.machinery.plan import Create, Delete, Plan
from skerry.runtime.client import Client
from skerry.runtime.index import Key, key_of
from skerry.runtime.informer import Informer


class RecentWrites:
    """What was created and deleted of one type, by the owner it was done for."""

    def __init__(self, client: Client, informer: Informer) -> None:
        self._client = client
        self._informer = informer
        self._created: dict[Key, set[Key]] = {}
        self._deleted: dict[Key, set[tuple[Key, str]]] = {}

    def note(self, owner: Key, plan: Plan) -> Plan:
        """Remember what *plan* is about to do; returns it."""
        gvr = self._informer.gvr
        for action in plan:
            if isinstance(action, Create) and action.target.gvr == gvr:
                target = action.target
                key = Key(target.cluster, target.namespace, target.name)
                self._created.setdefault(owner, set()).add(key)
            elif isinstance(action, Delete) and action.target.gvr == gvr:
                target = action.target
                key = Key(target.cluster, target.namespace, target.name)
                self._deleted.setdefault(owner, set()).add((key, action.uid))
        return plan

    async def overlaid(self, owner: Key, cached: Iterable[Object]) -> list[Object]:
        """Return the cached objects of *owner* with what the cache does not show yet."""
        found = {key_of(obj): obj for obj in cached}
        await self._show_deleted(owner, found)
        await self._show_created(owner, found)
        return list(found.values())

    async def _show_created(self, owner: Key, found: dict[Key, Object]) -> None:
        for key in sorted(self._created.get(owner, ())):
            seen = self._informer.index.get(key)
            live = await self._live(key) if seen is None else seen
            if live is not None:
                # Also when the cache shows it: it may have come while we waited for another.
                found[key] = live
            if seen is not None or live is None:
                self._forget(self._created, owner, key)

    async def _show_deleted(self, owner: Key, found: dict[Key, Object]) -> None:
        for entry in sorted(self._deleted.get(owner, ())):
            key, uid = entry
            cached = found.get(key)
            if (
                cached is None
                or cached["metadata"]["uid"] != uid
                or "deletionTimestamp" in cached["metadata"]
            ):
                self._forget(self._deleted, owner, entry)
                continue
            live = await self._live(key)
            if live is None or live["metadata"]["uid"] != uid:
                del found[key]
            else:
                found[key] = live
                if "deletionTimestamp" not in live["metadata"]:
                    self._forget(self._deleted, owner, entry)

    async def _live(self, key: Key) -> Object | None:
        client = self._client.for_cluster(key.cluster)
        try:
            return await client.get(self._informer.gvr, key.name, key.namespace)
        except NotFound:
            return None

    @staticmethod
    def _forget(noted: dict[Key, set[Any]], owner: Key, entry: Any) -> None:
        noted[owner].discard(entry)
        if not noted[owner]:
            del noted[owner]
