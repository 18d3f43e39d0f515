"""Several watches in one stream, resumed from one revision.

``POST /extensions/v1/watch`` names the watches; the answer is a stream of lines, each an event of
the watch it names. All types share the store's revision, and changes of all channels are written
in the order they happened. So once every channel has caught up, which a BOOKMARK without a watch
says, whoever has read up to an event has read everything of every watch up to its revision, and
may resume all of them from there.

A watch that cannot be (no right, no such type, history forgotten) gets an ERROR of its own and
ends; the others go on. The whole ends when its time is up, its reader falls far behind, or its
user may no longer use it. A reader whose revision was forgotten asks for the state anew and says
what it had read: unchanged objects are then sent by name only. That needs the reader to have
read this very store, which it names.

docs/reference/extensions.md is the reference of the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import msgspec

from skerry.api.errors import (
    ApiError,
    BadRequest,
    Gone,
    NotAcceptable,
    NotFound,
    ServiceUnavailable,
)
from skerry.kit.ids import IdSource
from skerry.kit.returning import return_seconds
from skerry.kit.text import whole_number
from skerry.logic.machinery.names import dns1123_label
from skerry.server.access import Authorizer
from skerry.server.codec import dump
from skerry.server.extensions import Visit
from skerry.server.http.encoding import accepts_gzip
from skerry.server.http.message import Answer, Request, Sender, Stream
from skerry.server.http.packing import PackedSender
from skerry.server.multiplex.channel import Channel
from skerry.server.request.call import Call
from skerry.server.request.info import RequestInfo, selected_name
from skerry.server.request.options import ListOptions, list_options
from skerry.server.request.selection import Selection
from skerry.server.rest.read import Reader
from skerry.server.security.authorization import forbidden
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Compacted, Unavailable

# More than an edge has types; each costs the server a subscription.
_MAX_WATCHES = 300
# A reader this far behind will not catch up.
_MAX_QUEUED_BYTES = 16 << 20
# As ordinary watches: an hour at most, spread so that readers do not return all at once.
_SHORTEST_SECONDS = 1800.0
_BOOKMARK_SECONDS = 60.0
_SHORTEST_BOOKMARK_SECONDS = 1.0
_SHORTEST_RETURN_SECONDS = 1.0
_SHORT_SELECTORS = 256
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class WatchTerms(msgspec.Struct, rename="camel", frozen=True):
    """One watch as asked for. Without a revision, or with ``initial``, its state comes first."""

    id: str
    version: str
    resource: str
    group: str = ""
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    compact: bool = False
    initial: bool = False
    resource_version: str = ""
    known_resource_version: str = ""


class StreamTerms(msgspec.Struct, rename="camel", frozen=True):
    """All watches of one stream, and the revision those resume from that name none."""

    watches: list[WatchTerms]
    resource_version: str = ""
    store: str = ""
    timeout_seconds: float = 0.0
    bookmark_seconds: float = _BOOKMARK_SECONDS


_TERMS = msgspec.json.Decoder(StreamTerms)


class MultiplexedWatches:
    """Begins such streams."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        reader: Reader,
        authorizer: Authorizer,
        ids: IdSource,
        identity: Callable[[], str],
    ) -> None:
        self._dispatcher = dispatcher
        self._reader = reader
        self._authorizer = authorizer
        self._ids = ids
        self._identity = identity
        # How many streams are open.
        self._streams = 0

    async def handle(self, visit: Visit) -> Answer:
        """Answer with the stream."""
        terms = _terms(visit.request.body)
        stream = MultiplexedStream(
            self._dispatcher,
            self._reader,
            seconds=terms.timeout_seconds or _SHORTEST_SECONDS * (1 + self._ids.fraction()),
            bookmark_seconds=max(_SHORTEST_BOOKMARK_SECONDS, terms.bookmark_seconds),
            return_seconds=self._return_seconds,
        )
        wanted = [self._wanted(visit, terms, each, stream) for each in terms.watches]
        packed = accepts_gzip(visit.request.headers.get("accept-encoding", ""))

        async def run(sender: Sender) -> None:
            self._streams += 1
            try:
                await stream.run(PackedSender(sender) if packed else sender, wanted)
            finally:
                self._streams -= 1

        def recheck() -> None:
            stream.recheck(lambda channel: self._refusal(visit, channel))

        headers = (("Content-Encoding", "gzip"),) if packed else ()
        return Stream(run=run, headers=headers, recheck=recheck, watches=len(wanted))

    def _return_seconds(self) -> float:
        """Return over how long a time all present readers should come back, should this end."""
        return return_seconds(self._streams)

    def _wanted(
        self, visit: Visit, terms: StreamTerms, asked: WatchTerms, stream: MultiplexedStream
    ) -> Wanted:
        after = _revision(asked.resource_version or terms.resource_version)
        known = _revision(asked.known_resource_version)
        if terms.store != self._identity():
            known = 0  # what was read of another store says nothing about this one
        try:
            channel = self._channel(visit, asked, stream)
            error = self._refusal(visit, channel)
        except ApiError as failure:
            return Wanted(asked.id, error=failure)
        if error is not None:
            return Wanted(asked.id, error=error)
        return Wanted(asked.id, channel, None if asked.initial or not after else after, known)

    def _channel(self, visit: Visit, asked: WatchTerms, stream: MultiplexedStream) -> Channel:
        resource = visit.types.find(asked.group, asked.version, asked.resource)
        if resource is None or "watch" not in resource.info.verbs:
            raise NotFound.path()
        if asked.namespace:
            _check_namespace(asked.namespace, namespaced=resource.info.namespaced)
        # What is authorized are these fields, each as it was looked up or checked.
        info = RequestInfo(
            path=visit.request.path,
            verb="watch",
            is_resource=True,
            cluster=visit.cluster,
            group=asked.group,
            version=asked.version,
            resource=asked.resource,
            namespace=asked.namespace,
            selected_name=selected_name(asked.field_selector) if asked.field_selector else "",
        )
        query, options = _selected(asked.label_selector, asked.field_selector)
        headers = {"accept": _METADATA} if asked.metadata_only else {}
        request = Request("GET", visit.request.path, query, headers)
        call = Call(request, info, visit.user, resource, visit.types)
        selection = Selection(call, options)
        shown = self._reader.representation(call)
        if resource.webhook is not None and shown.decodes:
            # What waits for a webhook would keep every other watch of the stream waiting.
            raise NotAcceptable("objects that a webhook converts are watched one type at a time")
        return Channel(asked.id, call, selection, shown, stream, compact=asked.compact)

    def _refusal(self, visit: Visit, channel: Channel) -> ApiError | None:
        for needed in channel.needs:
            decision = self._authorizer.authorize(visit.user, needed)
            if not decision.allowed:
                return forbidden(visit.user, needed, decision.reason)
        return None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A watch to begin: after a revision, or (None) with the state newer than *known*."""

    id: str
    channel: Channel | None = None
    after: int | None = None
    known: int = 0
    error: ApiError | None = None


class MultiplexedStream:
    """The channels of one reader, and the sender they share."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        reader: Reader,
        *,
        seconds: float,
        bookmark_seconds: float,
        return_seconds: Callable[[], float],
    ) -> None:
        self._dispatcher = dispatcher
        self._reader = reader
        self._return_seconds = return_seconds
        self._seconds = seconds
        self._bookmark_seconds = bookmark_seconds
        self._channels: dict[Channel, None] = {}
        self._lines: list[bytes] = []
        self._sender: Sender | None = None
        self._ended: asyncio.Future[None] | None = None
        self._beating: asyncio.TimerHandle | None = None
        self._reported = 0
        self._busy = False

    async def run(self, sender: Sender, wanted: Sequence[Wanted]) -> None:
        """Begin every watch, then pass on what changes, until time is up or the peer is gone."""
        loop = asyncio.get_running_loop()
        self._sender, self._ended = sender, loop.create_future()
        ending = loop.call_later(self._seconds, self._end)
        try:
            for each in wanted:
                await self._begin(each)
            self._bookmark(last=True)
            self._next_beat(loop)
            await self._ended
        except Unavailable as error:
            self._error(None, ServiceUnavailable(str(error)))
        finally:
            ending.cancel()
            if self._beating is not None:
                self._beating.cancel()
            for channel in self._channels:
                self._dispatcher.unsubscribe(channel)

    def recheck(self, refusal: Callable[[Channel], ApiError | None]) -> None:
        """End the channels that are no longer allowed."""
        for channel in list(self._channels):
            error = refusal(channel)
            if error is not None:
                self.failed(channel, error)

    # What channels call.

    def line(self, line: bytes) -> None:
        self._busy = True
        self._lines.append(line)

    def flush(self, *, last: bool = False) -> None:
        if not self._lines or self._sender is None:
            return
        sender, lines = self._sender, b"".join(self._lines)
        self._lines.clear()
        if last and isinstance(sender, PackedSender):
            sender.write_last(lines)
        else:
            sender.write(lines)
        if sender.closed or sender.queued_bytes > _MAX_QUEUED_BYTES:
            self._end()

    def failed(self, channel: Channel, error: ApiError) -> None:
        self._channels.pop(channel, None)
        self._dispatcher.unsubscribe(channel)
        self._error(channel, error)

    # Beginning.

    async def _begin(self, wanted: Wanted) -> None:
        channel = wanted.channel
        if channel is None:
            if wanted.error is not None:
                self._lines.append(_error_line(wanted.id, wanted.error))
                self.flush()
            return
        self._channels[channel] = None
        try:
            if wanted.after is None:
                await self._state(channel, wanted.known)
            else:
                channel.after = wanted.after
            if channel in self._channels:
                await self._dispatcher.subscribe(channel, channel.after)
        except Compacted as error:
            text = f"too old resource version: {channel.after} ({error.oldest})"
            self.failed(channel, Gone(text))
        except ApiError as error:
            self.failed(channel, error)
        if channel not in self._channels:
            self._dispatcher.unsubscribe(channel)  # it was ended while it began

    async def _state(self, channel: Channel, known: int) -> None:
        async for lines in channel.state(self._reader, known):
            if channel not in self._channels:
                return
            self._lines += lines
            self.flush()
            if self._sender is not None:
                await self._sender.drain()
            await asyncio.sleep(0)
        if channel in self._channels:
            self._lines.append(channel.bookmark(channel.after))
            self.flush()

    # Going on.

    def _next_beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beating = loop.call_later(self._bookmark_seconds, self._beat, loop)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell how far everything has been read, if it moved."""
        rests = not self._busy
        if self._dispatcher.position != self._reported:
            self._bookmark(last=rests)
        elif rests and isinstance(self._sender, PackedSender):
            self._sender.rest()
        self._busy = False
        self._next_beat(loop)

    def _bookmark(self, *, last: bool) -> None:
        """Tell how far everything has been read. With *last* hold nothing for the next line: most
        streams are silent from then on, and thousands that began in the same minute would all
        remember what they packed."""
        self._reported = self._dispatcher.position
        found: dict[str, Any] = {"metadata": {"resourceVersion": str(self._reported)}}
        if (spread := self._return_seconds()) >= _SHORTEST_RETURN_SECONDS:
            found["returnSeconds"] = spread
        body = dump(found)
        self._lines.append(b'{"type":"BOOKMARK","object":%b}\n' % body)
        self.flush(last=last)

    def _error(self, channel: Channel | None, error: ApiError) -> None:
        body = dump(error.status())
        line = b'{"type":"ERROR","object":%b}\n' % body
        self._lines.append(line if channel is None else channel.event("ERROR", body))
        self.flush()

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)


def _terms(body: bytes) -> StreamTerms:
    try:
        terms = _TERMS.decode(body)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the watches of a stream: {error}") from error
    if not 0 < len(terms.watches) <= _MAX_WATCHES:
        raise BadRequest(f"a stream of {len(terms.watches)} watches: want 1 to {_MAX_WATCHES}")
    if len({each.id for each in terms.watches}) != len(terms.watches):
        raise BadRequest("two watches of a stream have the same id")
    return terms


def _revision(text: str) -> int:
    revision = whole_number(text or "0")
    if revision is None:
        raise BadRequest(f"Invalid value: {text!r}: want a resourceVersion")
    return revision


def _check_namespace(name: str, *, namespaced: bool) -> None:
    """Raise unless a watch in the namespace *name* can be meant."""
    problems = dns1123_label(name)
    if problems:
        raise BadRequest(f"namespace {name[:63]!r} of a watch: {problems[0]}")
    if not namespaced:
        raise NotFound.path()


def _selected(labels: str, fields: str) -> tuple[str, ListOptions]:
    """Return the options of a watch, and the query of a request that they are read from."""
    if len(labels) + len(fields) > _SHORT_SELECTORS:
        return _read_selectors(labels, fields)
    return _short_selectors(labels, fields)


def _read_selectors(labels: str, fields: str) -> tuple[str, ListOptions]:
    asked = {"watch": "true", "allowWatchBookmarks": "true"}
    if labels:
        asked["labelSelector"] = labels
    if fields:
        asked["fieldSelector"] = fields
    query = urlencode(asked)
    return query, list_options(Request("GET", "/", query, {}))


# All edges watch by the same few, and come back in their thousands.
_short_selectors = lru_cache(maxsize=256)(_read_selectors)


def _error_line(identity: str, error: ApiError) -> bytes:
    return dump({"watch": identity, "type": "ERROR", "object": error.status()}) + b"\n"
