"""Which types the workspaces concerned serve, and the feeds that follow them.

A workspace is followed while a placement is in it or while it is a mailbox. What it serves is
worked out anew whenever a binding, definition or schema of it changes, at that very event.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import orjson

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.feeds import (
    METADATA,
    Changed,
    Feed,
    FeedKey,
    Record,
    record_of,
    wide,
)
from skerry.kit.ids import IdSource
from skerry.logic.fleet.translation.categories import NAMESPACES
from skerry.logic.fleet.translation.types import ServedType, WorkspaceTypes, workspace_types
from skerry.runtime.client import EVERYTHING, EVERYWHERE, Client
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.reflector import Reflector

_BINDING_FEED = wide("apis.kcp.io", "v1alpha1", "apibindings")
_DEFINITION_FEED = wide("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_NAMESPACE_FEED = wide("", "v1", "namespaces")
_BASIC = (_BINDING_FEED, _DEFINITION_FEED, _NAMESPACE_FEED)
# Most of a cluster's traffic, nobody's workload, and gone within the hour.
_IGNORED = frozenset((GroupResource("", "events"), GroupResource("events.k8s.io", "events")))
_NOTHING = WorkspaceTypes({})

Retyped = Callable[[str, frozenset[GroupResource]], None]


class Feeds:
    """The reflectors at work; one per key, started when first asked for."""

    def __init__(
        self, client: Client, ids: IdSource, metrics: RuntimeMetrics, changed: Changed
    ) -> None:
        self._client = client
        self._ids = ids
        self._metrics = metrics
        self._changed = changed
        self._feeds: dict[FeedKey, Feed] = {}
        self._tasks: dict[FeedKey, list[asyncio.Task[None]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.on_synced: Callable[[Feed], None] = lambda _: None

    def __iter__(self) -> Iterator[Feed]:
        return iter(list(self._feeds.values()))

    def get(self, key: FeedKey) -> Feed:
        """Return the feed of *key*; one not known yet starts now."""
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(key, self._changed)
            self._start(feed)
        return feed

    def stop(self, key: FeedKey) -> None:
        """Follow a type no longer; what it brought is told as gone."""
        feed = self._feeds.pop(key, None)
        for task in self._tasks.pop(key, ()):
            task.cancel()
        if feed is not None:
            for record in list(feed.everything(key.cluster)):
                feed.apply("DELETED", record)

    async def run(self) -> None:
        """Follow everything asked for until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for feed in list(self._feeds.values()):
                    feed.synced.clear()  # it may be old by now
                    self._start(feed)
                await asyncio.Event().wait()
        finally:
            self._group = None

    def _start(self, feed: Feed) -> None:
        if self._group is None:
            return
        key = feed.key
        reflector = Reflector(
            self._client.for_cluster(key.cluster),
            key.gvr,
            feed,
            partial(record_of, key),
            ids=self._ids,
            selection=METADATA if key.presence else EVERYTHING,
            metrics=self._metrics,
        )
        self._tasks[key] = [
            self._group.create_task(reflector.run()),
            self._group.create_task(self._tell_synced(feed)),
        ]

    async def _tell_synced(self, feed: Feed) -> None:
        await feed.synced.wait()
        self.on_synced(feed)


class Workspaces:
    """What the followed workspaces serve."""

    def __init__(
        self, feeds: Feeds, schemas: Callable[[], Mapping[tuple[str, str], Object] | None]
    ) -> None:
        """*schemas* returns every schema by cluster and name; None until all are known."""
        self._feeds = feeds
        self._schemas = schemas
        self._common: tuple[ServedType, ...] | None = None
        self._followed: Counter[str] = Counter()
        self._types: dict[str, WorkspaceTypes] = {}
        # Feeds by type and version, as they were last found: for each cluster that defines types
        # of its own, and once for all that serve the same.
        self._found: dict[str | int, dict[tuple[GroupResource, str], Feed | None]] = {}
        self._shared: dict[tuple[bytes, ...], WorkspaceTypes] = {}
        self.on_retyped: Retyped = lambda _, __: None
        self.bindings, self.definitions, self.namespaces = (feeds.get(key) for key in _BASIC)

    # Following.

    def learn_common(self, common: tuple[ServedType, ...]) -> None:
        """Take *common* for the types every workspace has; until then nothing is known."""
        self._common = common
        self.retype_all()

    def retype_all(self) -> None:
        """Work out what every workspace serves, from the beginning."""
        self._shared.clear()
        self._found.clear()
        for cluster in list(self._followed):
            self.retype(cluster)

    def follow(self, cluster: str) -> None:
        """Begin to follow a workspace; each call wants its own ``leave``."""
        self._followed[cluster] += 1
        if self._followed[cluster] == 1:
            self.retype(cluster)

    def leave(self, cluster: str) -> None:
        self._followed[cluster] -= 1
        if self._followed[cluster] > 0:
            return
        del self._followed[cluster]
        self._found.pop(cluster, None)
        for served in self._types.pop(cluster, _NOTHING).served.values():
            if served.local:
                self._feeds.stop(_feed_key(cluster, served, served.versions[0]))

    @property
    def followed(self) -> list[str]:
        return list(self._followed)

    def retype(self, cluster: str) -> None:
        """Work out what a workspace serves, and tell what is different.

        Nothing is worked out from a part of what decides about it.
        """
        if cluster not in self._followed or not self._knows_basics:
            return
        old, new = self._types.get(cluster, _NOTHING), self._worked_out(cluster)
        if old is new:
            return
        self._types[cluster] = new
        self._found.pop(cluster, None)
        changed = {
            each
            for each in old.served.keys() | new.served.keys() | old.unknown | new.unknown
            if old.served.get(each) != new.served.get(each)
            or (each in old.unknown) != (each in new.unknown)
        }
        self._refeed(cluster, old, new, changed)
        if changed:
            self.on_retyped(cluster, frozenset(changed))

    def _worked_out(self, cluster: str) -> WorkspaceTypes:
        bindings, definitions = _leans(self.bindings, cluster), _leans(self.definitions, cluster)
        key = (*bindings, b"", *definitions)
        known = self._shared.get(key)
        if known is None:
            known = self._shared[key] = workspace_types(
                self._common or (),
                map(orjson.loads, bindings),
                self._schemas() or {},
                map(orjson.loads, definitions),
            )
        return known

    def _refeed(
        self, cluster: str, old: WorkspaceTypes, new: WorkspaceTypes, changed: set[GroupResource]
    ) -> None:
        for resource in sorted(changed):
            before, now = old.served.get(resource), new.served.get(resource)
            if before is not None and before.local and (now is None or not now.local):
                self._feeds.stop(_feed_key(cluster, before, before.versions[0]))
            if now is not None and _is_followed(now):
                self._feeds.get(_feed_key(cluster, now, now.versions[0]))

    # Asking.

    def types(self, cluster: str) -> WorkspaceTypes:
        return self._types.get(cluster, _NOTHING)

    def served(self, cluster: str, resource: GroupResource) -> ServedType | None:
        return self.types(cluster).served.get(resource)

    def feed(self, cluster: str, resource: GroupResource, version: str = "") -> Feed | None:
        """Return the feed with a workspace's objects of a type, at a version it serves."""
        types = self._types.get(cluster, _NOTHING)
        known = self._found.setdefault(cluster if types.local else id(types), {})
        key = (resource, version)
        if key not in known:
            known[key] = self._found_feed(cluster, resource, version)
        return known[key]

    def _found_feed(self, cluster: str, resource: GroupResource, version: str) -> Feed | None:
        served = self.served(cluster, resource)
        if served is None or not _is_followed(served):
            return None
        if version and version not in served.versions:
            return None
        return self._feeds.get(_feed_key(cluster, served, version or served.versions[0]))

    def record(self, cluster: str, item: ObjectRef, version: str = "") -> Record | None:
        feed = self.feed(cluster, item.group_resource, version)
        return None if feed is None else feed.get(cluster, item.namespace, item.name)

    def followed_types(self, cluster: str) -> Iterator[tuple[ServedType, Feed]]:
        """Yield each type of a workspace that is followed, with its feed."""
        for resource, served in self.types(cluster).served.items():
            feed = self.feed(cluster, resource)
            if feed is not None:
                yield served, feed

    def travelling(self, cluster: str) -> Iterator[tuple[ServedType, Feed]]:
        """Yield each type of a workspace whose objects travel, Namespaces not counted."""
        for served, feed in self.followed_types(cluster):
            if served.travels and served.group_resource != NAMESPACES:
                yield served, feed

    def knows_types(self, cluster: str) -> bool:
        """Tell whether everything is known that decides what a workspace serves."""
        known = self._types.get(cluster)
        return self._knows_basics and known is not None and not known.unknown

    @property
    def _knows_basics(self) -> bool:
        return (
            self._common is not None
            and self.bindings.synced.is_set()
            and self.definitions.synced.is_set()
            and self._schemas() is not None
        )

    def knows(self, cluster: str, resource: GroupResource, version: str = "") -> bool:
        """Tell whether a workspace's objects of a type, and its namespaces, have been read."""
        if not self.knows_types(cluster) or not self.namespaces.synced.is_set():
            return False
        feed = self.feed(cluster, resource, version)
        return feed is None or feed.synced.is_set()

    def knows_everything(self, cluster: str) -> bool:
        """Tell whether everything in a workspace has been read."""
        return (
            self.knows_types(cluster)
            and self.namespaces.synced.is_set()
            and all(feed.synced.is_set() for _, feed in self.followed_types(cluster))
        )


def _leans(feed: Feed, cluster: str) -> list[bytes]:
    return sorted(r.lean for r in feed.within(cluster).values() if r.lean and not r.deleting)


def _is_followed(served: ServedType) -> bool:
    """Tell whether a type matters: it travels, or may be found in a mailbox's namespace."""
    if not served.versions or served.group_resource in _IGNORED:
        return False
    return served.travels or served.namespaced


def _feed_key(cluster: str, served: ServedType, version: str) -> FeedKey:
    where = cluster if served.local else EVERYWHERE
    presence = not served.travels
    return FeedKey(
        where, served.group, version, served.resource, served.identity, presence=presence
    )
