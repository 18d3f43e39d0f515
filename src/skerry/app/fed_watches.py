"""Watches of controllers beside a server, fed by its dispatcher with no stream in between.

A watch by the in-process transport makes a line of JSON of every change, queues it, cuts the
queue into lines and reads each again; for the garbage collector, which sees every object there
is, that was most of what a create cost beyond itself. Here a change is handed over as the store
has it and read once, by whoever asked.

The promise is that of any ``WatchSource``. The state is listed as ever, and watches that are
narrower than a type, or of types whose objects need converting, are ordinary ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypedDict, cast

import msgspec

from skerry.api.errors import Gone
from skerry.api.keys import PLAIN, type_prefix
from skerry.api.objects import Object
from skerry.app.api_server import ApiServer
from skerry.runtime.client import Selection
from skerry.runtime.transport import TransportError
from skerry.runtime.watching import Notice, OrdinaryWatches, Watched
from skerry.server.change import Change, EventType
from skerry.server.codec import decode, decode_as
from skerry.store.base import Compacted, Unavailable

# As much as a watch by a socket may have waiting; whoever is further behind begins again.
MAX_WAITING_BYTES = 16 << 20
# Others get the loop after this many changes.
_IN_A_ROW = 200


class FedWatches:
    """The watches of one plain server's own controllers."""

    def __init__(self, api: ApiServer, ordinary: OrdinaryWatches) -> None:
        self._catalogue = api.catalogue
        self._dispatcher = api.dispatcher
        self._ordinary = ordinary

    async def reports_state(self) -> bool:
        return False

    def state_refused(self) -> bool:
        return self._ordinary.state_refused()

    @asynccontextmanager
    async def watch(self, watched: Watched) -> AsyncIterator[AsyncIterator[Notice]]:
        prefix = self._prefix(watched)
        if not prefix or not watched.resource_version:
            async with self._ordinary.watch(watched) as notices:
                yield notices
            return
        after = int(watched.resource_version)
        fed = _Fed(prefix, after, _reading(watched.selection))
        try:
            await self._dispatcher.subscribe(fed, after)
            yield fed
        except Compacted as error:
            raise Gone(f"too old resource version: {after} ({error.oldest})") from error
        except Unavailable as error:
            raise TransportError(str(error)) from error
        finally:
            self._dispatcher.unsubscribe(fed)

    def _prefix(self, watched: Watched) -> str:
        """Return the prefix of what is watched; nothing where a key and bytes do not tell all."""
        gvr, selection = watched.gvr, watched.selection
        resource = self._catalogue.types(PLAIN).find(gvr.group, gvr.version, gvr.resource)
        if (
            resource is None
            or resource.custom
            or resource.convert is not None
            or resource.stored_group != gvr.group
            or selection.parameters()
        ):
            return ""
        if gvr.version != resource.storage_version and not selection.metadata_only:
            return ""
        stored = resource.storage_resource
        return type_prefix(resource.stored_group, stored, PLAIN, selection.namespace)


class _Waiting(NamedTuple):
    kind: EventType
    value: bytes
    revision: int


class _Fed(AsyncIterator[Notice]):
    """A subscription that is read one change after the other."""

    view = ""

    def __init__(self, prefix: str, after: int, read: Callable[[bytes, int], Object]) -> None:
        self.prefix = prefix
        self._after = after
        self._read = read
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._ended = False
        self._gone: Gone | None = None
        self._arrived: asyncio.Future[None] | None = None
        self._in_a_row = 0

    def offer(self, change: Change) -> bool:
        event = change.event
        if event.revision <= self._after or self._ended:
            return False
        value = event.value if event.value is not None else event.previous or b""
        self._bytes += len(value)
        if self._bytes > MAX_WAITING_BYTES:
            self._end()
            return False
        self._waiting.append(_Waiting(change.type(), value, event.revision))
        return True

    def flush(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def expire(self, oldest: int) -> None:
        self._gone = Gone(f"too old resource version: {self._after} ({oldest})")
        self._end()

    def _end(self) -> None:
        """Let go of what waits: the reader asks again from the last change that it has taken."""
        self._waiting.clear()
        self._ended = True
        self.flush()

    async def __anext__(self) -> Notice:
        self._in_a_row += 1
        if self._in_a_row >= _IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)
        while not self._waiting:
            if self._gone is not None:
                raise self._gone
            if self._ended:
                raise StopAsyncIteration
            self._in_a_row = 0
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        kind, value, revision = self._waiting.popleft()
        self._bytes -= len(value)
        return Notice(kind, self._read(value, revision))


class _Metadata(TypedDict, total=False):
    """All of ObjectMeta but ``managedFields``: most of it, and of interest to no controller.

    What the members are was checked when they were stored.
    """

    name: Any
    generateName: Any
    namespace: Any
    uid: Any
    generation: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    deletionGracePeriodSeconds: Any
    labels: Any
    annotations: Any
    ownerReferences: Any
    finalizers: Any


def _reading(selection: Selection) -> Callable[[bytes, int], Object]:
    """Return what reads as much of a stored object as was asked for."""
    if selection.metadata_only:
        return metadata_of
    return parts_of(selection.parts) if selection.parts else decode


def parts_of(paths: Sequence[str]) -> Callable[[bytes, int], Object]:
    """Return what reads the type, the metadata but for managedFields, and *paths* of an object.

    The rest is skipped, not built: of a pod that is most of it.
    """
    members: dict[str, dict[str, Any]] = {}
    for path in paths:
        member, _, part = path.partition(".")
        members.setdefault(member, {})[part] = Any
    below = {name: _some_of(name, parts) | None for name, parts in members.items()}
    whole = _some_of("Parts", {"apiVersion": Any, "kind": Any, "metadata": _Metadata, **below})
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(whole)

    def read(value: bytes, revision: int) -> Object:
        obj: Object = decode_as(decoder, value)
        obj["metadata"]["resourceVersion"] = str(revision)
        return obj

    return read


def _some_of(name: str, members: Mapping[str, Any]) -> Any:
    """Return the type of an object of which *members* are read, where it has them."""
    make = cast("Callable[..., Any]", TypedDict)
    return make(name, dict(members), total=False)


class _Envelope(msgspec.Struct, gc=False):
    metadata: _Metadata


_ENVELOPE = msgspec.json.Decoder(_Envelope)


def metadata_of(value: bytes, revision: int) -> Object:
    """Return a stored object's PartialObjectMetadata, without what nobody here asks for."""
    metadata = cast("Object", decode_as(_ENVELOPE, value).metadata)
    metadata["resourceVersion"] = str(revision)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
    }
