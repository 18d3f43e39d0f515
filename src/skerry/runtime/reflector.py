"""Follow one resource type: everything there is, then every change, for ever.

The theory. A list gives the state at a revision; a watch from that revision gives every later
change in order. As long as the watch can be resumed from the last revision seen, nothing is
listed again. When the server has forgotten that revision (410), the state is read afresh and the
sink works out what changed, so its readers see no gap: only the differences.

Reads are consistent ones (no ``resourceVersion``): a relist never shows a past the sink has
already left. Where the server offers streaming lists (``sendInitialEvents``) state and changes
come in one watch; otherwise the list is paged.

Failures wait a jittered, doubling time; who could not connect, no longer than until another on
the same transport could. A server that keeps refusing a resumed watch is asked for
the state again after a few attempts: that also covers servers restored to an older revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from skerry.api.errors import (
    ApiError,
    BadRequest,
    Gone,
    InternalError,
    Invalid,
    NotAcceptable,
    ServiceUnavailable,
    TooManyRequests,
)
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.machinery.patch.json_patch import apply_json_patch
from skerry.runtime.answers import EventKind
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import EVERYTHING, PAGE_SIZE, Client, Selection
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError, Unreachable
from skerry.runtime.watching import Notice, OrdinaryWatches, Watched, WatchSource

# A watch that ends sooner, and brought nothing, counts as a failure: do not spin.
_SHORT_WATCH_SECONDS = 1.0
_REFUSALS_BEFORE_RELIST = 3
# Whose state comes slowly, as one that a webhook converts, keeps others waiting no longer.
_READING_SECONDS = 0.25
_NOT_NOW = (ServiceUnavailable, TooManyRequests)
_INITIAL_END = "k8s.io/initial-events-end"

# client-go's reflector waits 0.8 to 30 s; the jitter spreads a fleet over twice the time.
_BACKOFF = Backoff(min_seconds=0.8, max_seconds=30.0, jitter=1.0)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """What receives the state and its changes, in whatever form it asked for."""

    async def replace(self, items: Sequence[T_contra]) -> None:
        """Take *items* for all there is."""

    def apply(self, kind: EventKind, item: T_contra) -> None:
        """Take one change (never a BOOKMARK)."""


class Reflector(Generic[T]):
    """Keeps one sink up to date; ``run`` it in a task and cancel it to stop.

    *transform* makes of each object, as it arrives, what the sink keeps: a long list is never
    held in any larger form.
    """

    def __init__(
        self,
        client: Client,
        gvr: GroupVersionResource,
        sink: Sink[T],
        transform: Callable[[Object], T],
        *,
        ids: IdSource,
        selection: Selection = EVERYTHING,
        metrics: RuntimeMetrics | None = None,
        source: WatchSource | None = None,
        held: Callable[[str, str], Object | None] | None = None,
    ) -> None:
        """*held* returns by namespace and name what the sink holds, for compact watches.

        *transform* must then change nothing in what it returned before.
        """
        self._source: WatchSource = source or OrdinaryWatches(client, ids)
        self._held = held
        self._known_version = ""
        self._client = client
        self._clock: Clock = client.clock
        self._gvr = gvr
        self._sink = sink
        self._ids = ids
        self._selection = selection
        self._transform = transform
        self._failures = 0
        self._refusals = 0
        # Held while this reads a whole state, where not many may at once.
        self._reading: asyncio.Semaphore | None = None
        self._page_size = PAGE_SIZE
        self.resource_version = ""
        # Since when, in monotonic seconds, a watch shows changes; None while none does.
        self.following_since: float | None = None
        name = str(gvr.group_resource)
        counted = metrics or RuntimeMetrics()
        self._lists = counted.lists.labels(name)
        self._watches = counted.watches.labels(name)
        self._log = Logger("reflector", kind=name)

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._step()
            except Gone as error:
                self._log.info("relisting", v=2, rv=self.resource_version, error=error.message)
                self._start_over()
                await self._wait_unless_first()
            except Unreachable as error:
                self._refused(error)
                await self._client.facts.returned(self._clock, self._ids, self._delay())
            except (ApiError, TransportError) as error:
                self._refused(error)
                await self._clock.sleep(self._delay())

    async def _step(self) -> None:
        """Read the state if it must be read, then follow it until the watch ends."""
        reading = self._client.facts.reading
        if reading is None or self.resource_version:
            await self._read_or_follow()
            return
        await reading.acquire()
        self._reading = reading
        given_back = asyncio.get_running_loop().call_later(_READING_SECONDS, self._has_read)
        try:
            await self._read_or_follow()
        finally:
            given_back.cancel()
            self._has_read()

    def _has_read(self) -> None:
        """Let others read whole states."""
        if self._reading is not None:
            self._reading.release()
            self._reading = None

    async def _read_or_follow(self) -> None:
        if self.resource_version:
            await self._follow()
        elif await self._source.reports_state():
            try:
                await self._follow()
            except (BadRequest, Invalid, NotAcceptable, InternalError) as error:
                # The last is how Kubernetes says that its storage cannot keep the promise. A
                # paged list asks less of a server that has some other trouble, too.
                if self.resource_version:
                    raise  # the list had come through; it is the watch that failed
                if not self._source.state_refused():
                    raise
                self._log.debug("no streaming lists here", error=error.message)
        else:
            await self._list()

    async def _list(self) -> None:
        """Replace the sink's content by a list.

        When pages expire under us, because the list takes longer than history is kept, the next
        attempt asks for everything at once.
        """
        self._lists.inc()
        found: list[T] = []
        try:
            async for page in self._client.pages(self._gvr, self._selection, self._page_size):
                found.extend(map(self._transform, page.items))
        except Gone:
            self._page_size = 0
            raise
        self._page_size = PAGE_SIZE
        await self._sink.replace(found)
        self.resource_version = page.resource_version
        self._failures = 0

    async def _follow(self) -> None:
        self._watches.inc()
        began, before = self._clock.monotonic(), self.resource_version
        watched = Watched(
            self._gvr,
            self._selection,
            self.resource_version,
            known_version=self._known_version,
            compact=self._held is not None,
        )
        async with self._source.watch(watched) as notices:
            if not self.resource_version:
                await self._fill(notices)
                self._has_read()
            self.following_since = self._clock.monotonic()
            try:
                async for notice in notices:
                    self._take(notice)
            finally:
                self.following_since = None
        lasted = self._clock.monotonic() - began
        if lasted < _SHORT_WATCH_SECONDS and self.resource_version == before:
            raise TransportError("the watch ended at once and brought nothing")

    async def _fill(self, notices: AsyncIterator[Notice]) -> None:
        """Read the state a streaming list begins with, and hand it over in one piece."""
        # One object may change while it streams; the uid tells it from a namesake elsewhere.
        found: dict[tuple[str, ...], T] = {}
        async for notice in notices:
            if notice.kind == "RESET":
                found.clear()
            elif notice.kind == "BOOKMARK":
                await self._filled(notice.object["metadata"], list(found.values()))
                return
            elif notice.kind == "UNCHANGED":
                for namespace, name in notice.object["names"]:
                    held = self._held_at(namespace, name)
                    found[_identity(held)] = self._transform(held)
            elif notice.kind == "DELETED":
                found.pop(_identity(notice.object), None)
            else:
                found[_identity(notice.object)] = self._transform(notice.object)
        raise TransportError("the streaming list broke off before its end")

    async def _filled(self, metadata: Mapping[str, Any], found: list[T]) -> None:
        if _INITIAL_END not in (metadata.get("annotations") or {}):
            self._source.state_refused()  # the server ignored the request
            raise TransportError("a bookmark that does not end a streaming list")
        await self._sink.replace(found)
        self.resource_version = metadata["resourceVersion"]
        self._known_version = ""
        self._failures = self._refusals = 0

    def _take(self, notice: Notice) -> None:
        version = notice.object["metadata"]["resourceVersion"]
        if notice.kind == "PATCHED":
            self._sink.apply("MODIFIED", self._transform(self._patched(notice.object)))
        elif notice.kind == "DELETED":
            self._sink.apply("DELETED", self._transform(self._deleted(notice.object)))
        elif notice.kind in ("ADDED", "MODIFIED"):
            self._sink.apply(notice.kind, self._transform(notice.object))
        # Only now: an event counts as seen once the sink has it.
        self.resource_version = version
        self._failures = self._refusals = 0

    # What a compact watch leaves to us.

    def _held_at(self, namespace: str, name: str) -> Object:
        held = None if self._held is None else self._held(namespace, name)
        if held is None:
            raise self._lost(f"{namespace}/{name}".lstrip("/"))
        return held

    def _patched(self, sent: Object) -> Object:
        metadata = sent["metadata"]
        held = self._held_at(metadata.get("namespace", ""), metadata["name"])
        if held["metadata"]["resourceVersion"] != sent["from"]:
            raise self._lost(metadata["name"])
        made = apply_json_patch(held, sent["patch"])
        version = {"resourceVersion": metadata["resourceVersion"]}
        return {**made, "metadata": {**made["metadata"], **version}}

    def _deleted(self, sent: Object) -> Object:
        """Return the last state of what was deleted, as far as it is known."""
        metadata = sent["metadata"]
        held = None
        if self._held is not None:
            held = self._held(metadata.get("namespace", ""), metadata["name"])
        if held is None or held["metadata"].get("uid") != metadata.get("uid"):
            return sent
        return {**held, "metadata": {**held["metadata"], **metadata}}

    def _lost(self, name: str) -> Gone:
        """Return the error after which everything is read, whatever we believe to know."""
        self._known_version = self.resource_version = ""
        return Gone(f"a watch spoke of a state of {name} that is not held here")

    def _start_over(self) -> None:
        # What we have is complete up to here; where that helps, only the rest is reported.
        self._known_version = self.resource_version or self._known_version
        self.resource_version = ""
        self._refusals = 0

    def _refused(self, error: ApiError | TransportError) -> None:
        self._log.warning(
            "list or watch failed", rv=self.resource_version, attempt=self._failures, error=error
        )
        # A server that is starting or busy says nothing about the revision.
        refused = isinstance(error, ApiError) and not isinstance(error, _NOT_NOW)
        if refused and self.resource_version:
            self._refusals += 1
            if self._refusals >= _REFUSALS_BEFORE_RELIST:
                self._start_over()

    async def _wait_unless_first(self) -> None:
        """A first 410 is ordinary and answered at once; a row of them must not spin."""
        if self._failures:
            await self._clock.sleep(self._delay())
        else:
            self._failures = 1

    def _delay(self) -> float:
        self._failures += 1
        return _BACKOFF.seconds(self._failures, self._ids)


def _identity(obj: Object) -> tuple[str, ...]:
    metadata = obj["metadata"]
    return (metadata.get("uid", ""), metadata.get("namespace", ""), metadata["name"])
