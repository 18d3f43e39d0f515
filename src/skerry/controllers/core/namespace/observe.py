"""What a terminating namespace still holds, read live: nothing here is taken from a cache."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from skerry.api.errors import ApiError, MethodNotAllowed, NotFound
from skerry.api.kinds import GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.runtime.client import Client, Selection
from skerry.runtime.discovery import discover
from skerry.runtime.index import Key
from skerry.runtime.informer import Informer
from skerry.runtime.transport import TransportError

KUBERNETES_FINALIZER = "kubernetes"
# Types read at once; a server has some fifty, and others want to be served too.
_SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class Content:
    """What is left of one type. ``live`` objects have not been asked to go yet."""

    gvr: GroupVersionResource
    deletes_collections: bool
    total: int
    live: tuple[tuple[str, str], ...]  # name and uid
    finalizers: tuple[tuple[str, int], ...]  # name and how many objects have it
    grace_seconds: int  # the longest time any of them was given to end


@dataclass(frozen=True, slots=True)
class Observed:
    """A terminating namespace, its content, and what could not be read."""

    key: Key
    namespace: Object
    content: tuple[Content, ...]
    undiscovered: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Observer:
    """Reads one namespace at a time."""

    def __init__(self, client: Client, namespaces: Informer) -> None:
        self._client = client
        self._namespaces = namespaces

    async def observe(self, key: Key) -> Observed | None:
        cached = self._namespaces.index.get(key)
        if cached is None or not cached["metadata"].get("deletionTimestamp"):
            return None
        client = self._client.for_cluster(key.cluster)
        try:
            namespace = await client.get(self._namespaces.gvr, key.name)
        except NotFound:
            return None
        same = namespace["metadata"]["uid"] == cached["metadata"]["uid"]
        finalizers = (namespace.get("spec") or {}).get("finalizers") or ()
        if not same or KUBERNETES_FINALIZER not in finalizers:
            return None
        served = await discover(client)
        content, unread = await _read(client, key.name, _deletable(served.preferred().values()))
        return Observed(
            key,
            namespace,
            tuple(sorted(content, key=lambda item: item.gvr)),
            tuple(sorted(str(version) for version in served.failed)),
            tuple(sorted(unread)),
        )


def _deletable(types: Iterable[ResourceInfo]) -> list[ResourceInfo]:
    return [info for info in types if info.namespaced and {"list", "delete"} <= set(info.verbs)]


async def _read(
    client: Client, namespace: str, types: list[ResourceInfo]
) -> tuple[list[Content], list[str]]:
    """Return what is left of each type, and what went wrong with those that cannot be read."""
    room = asyncio.Semaphore(_SIDE_BY_SIDE)
    content: list[Content] = []
    unread: list[str] = []

    async def read(info: ResourceInfo) -> None:
        selection = Selection(namespace=namespace, metadata_only=True)
        try:
            async with room:
                found = await client.list(info.gvr, selection)
        except (NotFound, MethodNotAllowed):
            return  # the type has gone since discovery, or was never listable
        except (ApiError, TransportError) as error:
            # The others can go meanwhile; this one keeps the namespace until it can be read.
            unread.append(f"{info.group_resource}: {error}")
            return
        if found.items:
            content.append(_content(info, found.items))

    async with asyncio.TaskGroup() as tasks:
        for info in types:
            tasks.create_task(read(info))
    return content, unread


def _content(info: ResourceInfo, items: list[Object]) -> Content:
    finalizers: Counter[str] = Counter()
    live, grace = [], 0
    for item in items:
        metadata = item["metadata"]
        finalizers.update(metadata.get("finalizers") or ())
        grace = max(grace, int(metadata.get("deletionGracePeriodSeconds") or 0))
        if not metadata.get("deletionTimestamp"):
            live.append((metadata["name"], metadata["uid"]))
    return Content(
        info.gvr,
        "deletecollection" in info.verbs,
        len(items),
        tuple(live),
        tuple(sorted(finalizers.items())),
        grace,
    )
