"""Follow one resource type: everything there is, then every change, for ever.

The theory. A list gives the state at a revision; a watch from that revision gives every later
change in order. As long as the watch can be resumed from the last revision seen, nothing is
listed again. When the server has forgotten that revision (410), the state is read afresh and the
sink works out what changed, so its readers see no gap: only the differences.

Reads are consistent ones (no ``resourceVersion``): a relist never shows a past the sink has
already left. Where the server offers streaming lists (``sendInitialEvents``) state and changes
come in one watch; otherwise the list is paged.

Failures wait a jittered, doubling time. A server that keeps refusing a resumed watch is asked for
the state again after a few attempts: that also covers servers restored to an older revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from skerry.api.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    NotAcceptable,
    NotFound,
    Unauthorized,
)
from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.resource import Object
from skerry.runtime.backoff import Backoff
from skerry.runtime.client import (
    EVERYTHING,
    PAGE_SIZE,
    Client,
    EventKind,
    Selection,
    WatchEvent,
)
from skerry.runtime.metrics import RuntimeMetrics
from skerry.runtime.transport import TransportError

# Between five and ten minutes, as client-go: long enough to be cheap, spread over the clients.
_WATCH_SECONDS = 300
# A watch that outlives its own time limit by this much is dead without saying so.
_OVERTIME_SECONDS = 30
# A watch that ends sooner, and brought nothing, counts as a failure: do not spin.
_SHORT_WATCH_SECONDS = 1.0
_REFUSALS_BEFORE_RELIST = 3
# The first minor version of Kubernetes that knows the parameters of a streaming list at all.
_STREAMING_SINCE_MINOR = 27
_INITIAL_END = "k8s.io/initial-events-end"

# client-go's reflector waits 0.8 to 30 s; the jitter spreads a fleet over twice the time.
BACKOFF = Backoff(shortest_seconds=0.8, longest_seconds=30.0, jitter=1.0)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """What is told the state and its changes, in whatever form it asked for."""

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
    ) -> None:
        self._client = client
        self._clock: Clock = client.clock
        self._gvr = gvr
        self._sink = sink
        self._ids = ids
        self._selection = selection
        self._transform = transform
        self._failures = 0
        self._refusals = 0
        self._page_size = PAGE_SIZE
        self.resource_version = ""
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
            except (ApiError, TransportError) as error:
                self._refused(error)
                await self._wait()

    async def _step(self) -> None:
        """Read the state if it must be read, then follow it until the watch ends."""
        if self.resource_version:
            await self._follow()
        elif await self._streaming_offered():
            try:
                await self._follow(initial=True)
            except (BadRequest, Invalid, NotAcceptable, InternalError) as error:
                # The last is how Kubernetes says that its storage cannot keep the promise. A
                # paged list asks less of a server that has some other trouble, too.
                if self.resource_version:
                    raise  # the list had come through; it is the watch that failed
                self._log.debug("no streaming lists here", error=error.message)
                self._client.facts.streaming_lists = False
        else:
            await self._list()

    async def _streaming_offered(self) -> bool:
        facts = self._client.facts
        if facts.streaming_lists is None:
            try:
                version = await self._client.version()
            except (Forbidden, NotFound, Unauthorized):
                version = {}  # not for us to know; a paged list always works
            minor = "".join(filter(str.isdigit, version.get("minor", "")))
            facts.streaming_lists = int(minor or 0) >= _STREAMING_SINCE_MINOR
        return facts.streaming_lists

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

    async def _follow(self, *, initial: bool = False) -> None:
        self._watches.inc()
        seconds = int(_WATCH_SECONDS * (1 + self._ids.fraction()))
        began, before = self._clock.monotonic(), self.resource_version
        try:
            async with (
                asyncio.timeout(seconds + _OVERTIME_SECONDS),
                self._client.watch(
                    self._gvr,
                    self._selection,
                    resource_version=self.resource_version,
                    timeout_seconds=seconds,
                    initial_events=initial,
                ) as events,
            ):
                if initial:
                    await self._fill(events)
                async for event in events:
                    self._take(event)
        except TimeoutError as error:
            raise TransportError("the watch went silent") from error
        lasted = self._clock.monotonic() - began
        if lasted < _SHORT_WATCH_SECONDS and self.resource_version == before:
            raise TransportError("the watch ended at once and brought nothing")

    async def _fill(self, events: AsyncIterator[WatchEvent]) -> None:
        """Read the state a streaming list begins with, and hand it over in one piece."""
        found: dict[tuple[str, ...], T] = {}
        async for event in events:
            metadata = event.object["metadata"]
            if event.kind == "BOOKMARK":
                if _INITIAL_END not in (metadata.get("annotations") or {}):
                    self._client.facts.streaming_lists = False  # the server ignored the request
                    raise TransportError("a bookmark that does not end a streaming list")
                await self._sink.replace(list(found.values()))
                self.resource_version = metadata["resourceVersion"]
                self._failures = self._refusals = 0
                return
            # One object may change while it streams; the uid tells it from a namesake elsewhere.
            key = (metadata.get("uid", ""), metadata.get("namespace", ""), metadata["name"])
            if event.kind == "DELETED":
                found.pop(key, None)
            else:
                found[key] = self._transform(event.object)
        raise TransportError("the streaming list broke off before its end")

    def _take(self, event: WatchEvent) -> None:
        version = event.object["metadata"]["resourceVersion"]
        if event.kind != "BOOKMARK":
            self._sink.apply(event.kind, self._transform(event.object))
        # Only now: an event counts as seen once the sink has it.
        self.resource_version = version
        self._failures = self._refusals = 0

    def _start_over(self) -> None:
        self.resource_version = ""
        self._refusals = 0

    def _refused(self, error: ApiError | TransportError) -> None:
        self._log.warning(
            "list or watch failed", rv=self.resource_version, attempt=self._failures, error=error
        )
        if isinstance(error, ApiError) and self.resource_version:
            self._refusals += 1
            if self._refusals >= _REFUSALS_BEFORE_RELIST:
                self._start_over()

    async def _wait_unless_first(self) -> None:
        """A first 410 is ordinary and answered at once; a row of them must not spin."""
        if self._failures:
            await self._wait()
        else:
            self._failures = 1

    async def _wait(self) -> None:
        self._failures += 1
        await self._clock.sleep(BACKOFF.seconds(self._failures, self._ids))
