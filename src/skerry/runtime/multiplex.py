"""All watches of one cluster in one stream, where the server offers that.

A ``WatchSource`` whose watches share ``POST /extensions/v1/watch`` (see docs/reference/
extensions.md). Reflectors cannot tell: they ask for a watch and get its events.

The stream is one connection, so what matters to a far-away reader is how it ends. A broken one is
opened again here, with all its watches, from the revision read so far: nobody else notices. A
server that many read says over how long a time they are to come back, should it end. It writes
the changes of all watches in the order they happened, so once it says that all have caught up, one
revision is the place of every watch; a watch that was silent learns so by a bookmark, and an
interrupted one resumes from where the stream was, not from its own last event.

A watch that is added opens the stream anew, from that revision too; nothing is read twice. What
fails for one watch alone (no right, forgotten revision) is raised to its reader.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import orjson

from skerry.api.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    MethodNotAllowed,
    NotFound,
    from_status,
)
from skerry.api.objects import Object
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.kit.returning import MAX_NEXT_TURN_SECONDS, MAX_RETURN_SECONDS
from skerry.runtime.answers import answer_failure
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import Client
from skerry.runtime.transport import (
    Answer,
    AnswerStream,
    ConnectTimeout,
    TransportError,
    Unreachable,
    lines,
    whole,
)
from skerry.runtime.watching import Notice, NoticeKind, OrdinaryWatches, Watched, WatchSource

EXTENSION = "multiplexed-watch"
_STORE = "x-skerry-store-identity"
# Watches that begin in the same moment share the first request.
_GATHER_SECONDS = 0.02
# Half an hour to an hour, spread over the clients; each end costs a handshake.
_STREAM_SECONDS = 1800
# A stream that outlives its own time limit by this much is dead without saying so.
_OVERTIME_SECONDS = 30
# A stream that ends sooner counts as a failure: do not spin.
_SHORT_STREAM_SECONDS = 1.0
# How far a stream has read matters only when it breaks, and then some seconds' history more.
_BOOKMARK_SECONDS = 120
# A hub that was away for long is tried again twice a minute at the least, and by then nobody needs
# to be spread further: a refused connection costs neither side anything.
_BACKOFF = Backoff(min_seconds=0.8, max_seconds=15.0, jitter=1.0)
# Events a slow reader may leave waiting before the stream waits for it.
_WAITING_EVENTS = 256
_GONE_EXTENSION = (Forbidden, MethodNotAllowed, NotFound, BadRequest)

_log = Logger("multiplex")


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw
    watch: str = ""


_ENVELOPE = msgspec.json.Decoder(_Envelope)


class _Member:
    """One watch of the stream. ``version`` empty: its state is yet to be reported."""

    __slots__ = ("events", "id", "reported", "version", "watched")

    def __init__(self, identity: str, watched: Watched) -> None:
        self.id = identity
        self.watched = watched
        self.version = watched.resource_version
        # Whether part of the state was reported already, to be taken back if its end never comes.
        self.reported = False
        self.events: asyncio.Queue[Notice | Exception] = asyncio.Queue(_WAITING_EVENTS)

    def reached(self, revision: str) -> None:
        """Take note that everything up to *revision* was reported, this watch being silent."""
        if self.version and int(self.version) < int(revision):
            self.version = revision
            with suppress(asyncio.QueueFull):
                note = {"metadata": {"resourceVersion": revision}}
                self.events.put_nowait(Notice("BOOKMARK", note))

    def terms(self, common: str) -> dict[str, Any]:
        gvr, selection = self.watched.gvr, self.watched.selection
        asked: dict[str, Any] = {
            "id": self.id,
            "group": gvr.group,
            "version": gvr.version,
            "resource": gvr.resource,
            "namespace": selection.namespace,
            "labelSelector": selection.labels,
            "fieldSelector": selection.fields,
            "metadataOnly": selection.metadata_only,
            "compact": self.watched.compact,
            "initial": not self.version,
            "resourceVersion": self.version if self.version != common else "",
            "knownResourceVersion": self.watched.known_version,
        }
        return {name: value for name, value in asked.items() if value}


class MultiplexedWatches:
    """The shared stream; ``run`` it while watches are wanted.

    Where the server does not offer it, watches are ordinary ones.
    """

    def __init__(self, client: Client, ids: IdSource) -> None:
        self._client = client
        self._ids = ids
        self._ordinary: WatchSource = OrdinaryWatches(client, ids)
        self._members: dict[str, _Member] = {}
        self._count = 0
        self._wanted = asyncio.Event()
        # The stream at work, to be interrupted when a watch joins; None until all caught up.
        self._scope: asyncio.Timeout | None = None
        self._joined = False
        self._store = ""
        self._reporting = False
        # The revision up to which every watch has seen everything; empty until then.
        self.position = ""

    # What reflectors call.

    async def reports_state(self) -> bool:
        return await self._offered() or await self._ordinary.reports_state()

    def state_refused(self) -> bool:
        offered = EXTENSION in (self._client.facts.extensions or {})
        return not offered and self._ordinary.state_refused()

    @asynccontextmanager
    async def watch(self, watched: Watched) -> AsyncIterator[AsyncIterator[Notice]]:
        if not await self._offered():
            async with self._ordinary.watch(watched) as events:
                yield events
            return
        self._count += 1
        member = self._members[str(self._count)] = _Member(str(self._count), watched)
        self._join()
        try:
            yield _notices(member)
        finally:
            self._members.pop(member.id, None)
            while not member.events.empty():  # the stream may be waiting for room
                member.events.get_nowait()

    async def _offered(self) -> bool:
        return EXTENSION in await self._client.extensions()

    def _join(self) -> None:
        self._wanted.set()
        self._joined = True
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())
            self._scope = None

    # The stream.

    async def run(self) -> None:
        """Keep the stream open until cancelled."""
        failures = 0
        while True:
            await self._wanted.wait()
            await self._client.clock.sleep(_GATHER_SECONDS)
            if not self._members:
                self._wanted.clear()
                continue
            try:
                ended_early = await self._stream()
                failures = 0
                if ended_early:
                    delay = self._client.facts.return_delay(self._ids)
                    await self._client.clock.sleep(delay)
            except _GONE_EXTENSION as error:
                self._abandon(error)
            except (ApiError, TransportError) as error:
                failures = 1 if self.position else failures + 1
                _log.warning("stream of watches failed", attempt=failures, error=error)
                await self._away(failures, error)

    async def _away(self, failures: int, error: ApiError | TransportError) -> None:
        clock, facts = self._client.clock, self._client.facts
        limit = MAX_NEXT_TURN_SECONDS if isinstance(error, ConnectTimeout) else MAX_RETURN_SECONDS
        spread = facts.return_delay(self._ids, limit)
        delay = max(_BACKOFF.seconds(failures, self._ids), spread)
        # Where many return, each comes when its own time has come, whoever was answered before.
        if isinstance(error, Unreachable) and not facts.return_seconds:
            await facts.returned(clock, self._ids, delay)
        else:
            await clock.sleep(delay)

    def _abandon(self, error: ApiError) -> None:
        """Let everyone choose again: the server no longer offers this, or not to us."""
        _log.warning("watches are no longer multiplexed", error=error)
        self._client.facts.extensions = None
        for member in self._members.values():
            _put_last(member, TransportError(error.message))
        self._members.clear()

    async def _stream(self) -> bool:
        """Open the stream with all watches there are, and read it to its end.

        Tells whether the server ended it before its time, as one does that stops.
        """
        self._joined = False
        self.position = ""
        members = dict(self._members)
        await _take_back(members.values())
        seconds = int(_STREAM_SECONDS * (1 + self._ids.fraction()))
        path = self._client.base + self._path()
        headers = {
            "accept": "application/json",
            "content-type": "application/json",
            "user-agent": self._client.user_agent,
        }
        body = orjson.dumps(self._terms(members, seconds))
        began = self._client.clock.monotonic()
        try:
            async with (
                asyncio.timeout(seconds + _OVERTIME_SECONDS) as scope,
                self._client.transport.stream("POST", path, "", headers, body) as answer,
            ):
                if answer.status != 200:
                    raise answer_failure(Answer(answer.status, answer.headers, await whole(answer)))
                self._client.facts.heard()
                await self._read(answer, members, scope)
        except TimeoutError as error:
            if not self._joined:
                raise TransportError("the stream of watches went silent") from error
            return False
        finally:
            self._scope = None
        lasted = self._client.clock.monotonic() - began
        if lasted < _SHORT_STREAM_SECONDS:
            raise TransportError("the stream of watches ended at once")
        return lasted < seconds - _SHORT_STREAM_SECONDS

    def _path(self) -> str:
        return (self._client.facts.extensions or {}).get(EXTENSION, "")

    def _terms(self, members: Mapping[str, _Member], seconds: int) -> dict[str, Any]:
        versions = Counter(member.version for member in members.values() if member.version)
        common = versions.most_common(1)[0][0] if versions else ""
        return {
            "watches": [member.terms(common) for member in members.values()],
            "resourceVersion": common,
            "store": self._store,
            "timeoutSeconds": seconds,
            "bookmarkSeconds": _BOOKMARK_SECONDS,
        }

    async def _read(
        self, answer: AnswerStream, members: dict[str, _Member], scope: asyncio.Timeout
    ) -> None:
        self._store = answer.headers.get(_STORE, "")
        try:
            async for record in lines(aiter(answer)):
                envelope, obj = _decoded(record)
                member = members.get(envelope.watch)
                if member is not None:
                    await self._pass_on(member, envelope.type, obj)
                elif envelope.type == "ERROR":
                    raise from_status(int(obj.get("code", 500)), obj)
                else:
                    self._client.facts.return_seconds = _return_seconds(obj)
                    if not self.position:
                        self._caught_up(scope)
                if envelope.type != "ERROR" and (self.position or member is None):
                    self._advance(members, obj["metadata"]["resourceVersion"])
        finally:
            self._report_position(members)

    def _caught_up(self, scope: asyncio.Timeout) -> None:
        """Every watch is at one revision from now on: another one may join."""
        self._scope = scope
        if self._joined:
            self._join()

    async def _pass_on(self, member: _Member, kind: str, obj: Object) -> None:
        if self._members.get(member.id) is not member:
            return  # its reader has left
        if kind == "ERROR":
            del self._members[member.id]
            _put_last(member, from_status(int(obj.get("code", 500)), obj))
            return
        member.reported = True
        await member.events.put(Notice(_kind(kind), obj))
        # Only now: what could not be handed over is asked for again.
        if member.version or kind == "BOOKMARK":
            member.version = obj["metadata"]["resourceVersion"]

    def _advance(self, members: Mapping[str, _Member], revision: str) -> None:
        """Take note of how far all have read; they are notified once per piece that arrives."""
        if not self._reporting:
            self._reporting = True
            asyncio.get_running_loop().call_soon(self._report_position, members)
        self.position = revision

    def _report_position(self, members: Mapping[str, _Member]) -> None:
        self._reporting = False
        if self.position:
            for member in members.values():
                member.reached(self.position)


async def _notices(member: _Member) -> AsyncIterator[Notice]:
    while True:
        event = await member.events.get()
        if isinstance(event, Exception):
            raise event
        yield event


async def _take_back(members: Any) -> None:
    """Take back what was reported of states that did not come to their end."""
    for member in members:
        if not member.version and member.reported:
            member.reported = False
            await member.events.put(Notice("RESET", {}))


def _return_seconds(bookmark: Object) -> float:
    """Return over how long a time the server wants its readers to come back, as it says."""
    said = bookmark.get("returnSeconds")
    return min(max(float(said), 0.0), MAX_RETURN_SECONDS) if isinstance(said, int | float) else 0.0


def _put_last(member: _Member, error: Exception) -> None:
    """Have the reader meet *error*; what it has not read by then it will ask for again."""
    if member.events.full():
        member.events.get_nowait()
    member.events.put_nowait(error)


def _decoded(record: bytes) -> tuple[_Envelope, Object]:
    try:
        envelope = _ENVELOPE.decode(record)
        return envelope, orjson.loads(bytes(envelope.object))
    except (msgspec.DecodeError, orjson.JSONDecodeError) as error:
        raise TransportError(f"a record of a stream of watches is no event: {error}") from error


_KINDS: dict[str, NoticeKind] = {
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
    "BOOKMARK": "BOOKMARK",
    "PATCHED": "PATCHED",
    "UNCHANGED": "UNCHANGED",
}


def _kind(text: str) -> NoticeKind:
    try:
        return _KINDS[text]
    except KeyError as error:
        raise TransportError(f"event {text!r} in a stream of watches") from error
