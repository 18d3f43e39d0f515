"""The one reader of the store's events, and the fan-out to everybody else.

Events arrive in revision order and in batches. Each batch goes first to *observers* (parts of
the server that must see a change before any client does: the catalogue of types, RBAC), then to
*subscriptions* found by key prefix, then the position moves on. A subscriber collects a batch's
frames and sends them in one write.

A short memory of recent events lets a watch that begins a little in the past start without
reading the store; an older one reads history until it meets that memory, so that going from past
to present leaves no gap and repeats nothing. Where nothing was written for longer than that, there
is no history to be read (``lately``).

A server that was stopped for so long that the store has forgotten what comes next starts over:
observers forget what they know and are shown everything anew, in one step, and watches end with
the news that they are too old, so that their clients list again.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from skerry.api.errors import TooManyRequests
from skerry.kit.log import Logger
from skerry.kit.steps import Steps, finished, in_turns
from skerry.server.change import Change
from skerry.server.watch.lately import Lately
from skerry.server.watch.shared_revisions import ALONE, Acknowledged
from skerry.store.base import Compacted, Event, Store, Unavailable

# Enough for any informer that lost its connection for a moment; beyond it the store remembers.
_REMEMBERED_EVENTS = 4096
_REMEMBERED_BYTES = 8 << 20
# What happened where is read of so many revisions before the start, minutes of a fleet's
# heartbeats, and of so many at a time.
_LOOK_BACK = 100_000
_LOOKED_AT = 4_096
# Fan-out to very many watchers lets others run in between: 100 writes take about a millisecond.
_WRITES_BETWEEN_YIELDS = 100
# So does offering changes to them, which takes some microseconds each.
_OFFERS_BETWEEN_YIELDS = 500
# So does showing large objects to observers, who read them.
_BYTES_BETWEEN_YIELDS = 128 << 10
# An event is here within milliseconds; whoever is further behind than this is stuck.
_BEHIND_SECONDS = 3.0

log = Logger("watch")


class Subscriber(Protocol):
    """What receives changes below a prefix, perhaps through a view."""

    prefix: str
    view: str

    def offer(self, change: Change) -> bool:
        """Take note of *change*; tell whether something is now waiting to be flushed."""

    def flush(self) -> None:
        """Send what was noted."""

    def expire(self, oldest: int) -> None:
        """End: changes were missed, and nothing before *oldest* is known any more."""


# Whoever has much to do for a change returns the steps of it, which are done in turns with
# everything else; the change goes on to others afterwards.
Observer = Callable[[Change], Steps[None] | None]
Reset = Callable[[], None]


class Dispatcher:
    """Hands every change to those who asked for it, in order."""

    def __init__(
        self,
        store: Store,
        remembered_events: int = _REMEMBERED_EVENTS,
        acknowledged: Acknowledged = ALONE,
    ) -> None:
        """*acknowledged* is what other processes on this machine share of the store."""
        self._store = store
        self._acknowledged = acknowledged
        self._remembered_events = remembered_events
        self._position = 0
        self._history: deque[Change] = deque()
        self._history_bytes = 0
        # The same by type and cluster, which is what nearly every watch is of. In lists: most are
        # short, and a deque is never small.
        self._history_of: dict[str, list[Change]] = {}
        # Everything above this revision, up to the position, is in memory.
        self._history_floor = 0
        # Where there were changes that are not in memory any more, or were before the start.
        self._lately = Lately()
        self._asked_back = asyncio.Event()
        self._subscribers: dict[str, dict[Subscriber, None]] = {}
        self._observers: dict[str, list[Observer]] = {}
        self._observers_of_all: list[Observer] = []
        self._resets: list[Reset] = []
        # By type prefix: below which prefix a deletion is awaited, and what to do then.
        self._awaited: dict[str, list[tuple[str, Callable[[], None]]]] = {}
        # Type prefixes anything happened below, since the start or since starting over.
        self.touched: set[str] = set()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._ticket = 0

    @property
    def position(self) -> int:
        """The revision up to which everything has been handed out."""
        return self._position

    def observe(self, prefix: str, observer: Observer, reset: Reset | None = None) -> None:
        """Call *observer* with each change below the type prefix *prefix*, before any client.

        A prefix without its closing slash means the type whichever export it comes from.
        Whoever remembers objects gives *reset*: it must forget them, and is shown all there are
        right after.
        """
        self._observers.setdefault(prefix, []).append(observer)
        if reset is not None:
            self._resets.append(reset)

    def observe_all(self, observer: Observer, reset: Reset) -> None:
        """Call *observer* with every change there is.

        When changes were missed it is not shown what there is, only *reset*: it has to read.
        """
        self._observers_of_all.append(observer)
        self._resets.append(reset)

    def observe_once(self, prefix: str, below: str, action: Callable[[], None]) -> None:
        """Call *action* at the next deletion below *below*, a part of the type prefix *prefix*."""
        self._awaited.setdefault(prefix, []).append((below, action))

    async def start(self) -> None:
        """Take up position at the store's present; call before ``run``."""
        self._position = revision = await self._store.revision()
        self._remember_from(revision)

    async def run(self) -> None:
        """Dispatch for ever."""
        while True:
            try:
                async for batch in self._store.watch(after=self._position):
                    await self._dispatch([Change(event) for event in batch])
            except Compacted as error:
                log.warning("changes were missed; starting over", error=error)
                await self._start_over()
            else:
                return

    async def look_back(self) -> None:
        """Learn what happened where before the start, once the first watch comes that asks.

        Beside ``run``; without it the store is asked for each of them.
        """
        await self._asked_back.wait()
        began, last = self._lately.since, dict[str, int]()
        try:
            since = max(await self._store.compacted(), began - _LOOK_BACK)
            for after in range(since, began, _LOOKED_AT):
                upto = min(after + _LOOKED_AT, began)
                written = await self._store.written(after=after, upto=upto)
                if written is None:
                    return
                last.update((_place(key), revision) for key, revision in written)
        except (Compacted, Unavailable) as error:
            log.debug("the store is asked for each watch", error=error)
            return
        if self._lately.since == began:
            self._lately.extend(since, last)

    async def _start_over(self) -> None:
        """Show observers everything there is, as of one moment."""
        revision = await self._store.revision()
        present = {
            prefix: (await self._store.range(prefix, revision=revision)).entries
            for prefix in self._observers
        }
        # From here on nothing else runs until it is done: nobody sees a half of it.
        for reset in self._resets:
            reset()
        for prefix, entries in present.items():
            for entry in entries:
                if prefix[-1] != "/" and _prefixes(entry.key)[1][-1] != prefix:
                    continue  # the name of another type begins with the name of this one
                change = Change(Event(entry.revision, entry.key, entry.value, None, 0))
                for observer in tuple(self._observers[prefix]):
                    steps = observer(change)
                    if steps is not None:
                        finished(steps)
        awaited, self._awaited = self._awaited, {}
        for waiting in awaited.values():
            for _, action in waiting:
                action()
        # A new set, so that whoever drew conclusions from the old one can tell.
        self.touched = set()
        self._remember_from(revision)
        self._advance(revision)
        for subscriber in [s for group in self._subscribers.values() for s in group]:
            subscriber.expire(revision)

    async def _dispatch(self, changes: Sequence[Change]) -> None:
        waiting: dict[Subscriber, None] = {}
        offered = size = 0
        for change in changes:
            type_prefix, prefixes = _prefixes(change.event.key)
            self.touched.add(type_prefix)
            for observer in (
                *self._observers.get(type_prefix, ()),
                *self._observers.get(prefixes[-1], ()),
            ):
                steps = observer(change)
                if steps is not None:
                    await in_turns(steps)
            for observer in self._observers_of_all:
                observer(change)
            if change.event.value is None and type_prefix in self._awaited:
                self._deleted(type_prefix, change.event.key)
            # In one turn with the offer: whoever subscribes is shown it by the one or the other.
            size += self._remember(change)
            offered += self._offer(change, prefixes, waiting)
            if offered >= _OFFERS_BETWEEN_YIELDS or size >= _BYTES_BETWEEN_YIELDS:
                # Whoever subscribes now is shown what was offered so far from memory.
                offered = size = 0
                await asyncio.sleep(0)
        self._advance(changes[-1].event.revision)
        for index, subscriber in enumerate(waiting, start=1):
            subscriber.flush()
            if index % _WRITES_BETWEEN_YIELDS == 0:
                await asyncio.sleep(0)

    def _offer(
        self, change: Change, prefixes: Iterable[str], waiting: dict[Subscriber, None]
    ) -> int:
        """Offer a change to whom it may concern; return how many that are."""
        offered = 0
        for prefix in prefixes:
            group = self._subscribers.get(prefix)
            if group is None:
                continue
            offered += len(group)
            for subscriber in group:
                if subscriber.offer(change):
                    waiting[subscriber] = None
        change.shed()
        return offered

    def _deleted(self, prefix: str, key: str) -> None:
        """Do what awaited the deletion of *key*."""
        waiting = self._awaited.pop(prefix)
        later = [each for each in waiting if not key.startswith(each[0])]
        if later:
            self._awaited[prefix] = later
        for below, action in waiting:
            if key.startswith(below):
                action()

    def _remember(self, change: Change) -> int:
        """Keep a change in memory; return its size."""
        size = _size(change.event)
        self._history.append(change)
        self._history_of.setdefault(_place(change.event.key), []).append(change)
        self._history_bytes += size
        max_events = self._remembered_events
        while len(self._history) > max_events or self._history_bytes > _REMEMBERED_BYTES:
            oldest = self._history.popleft()
            self._history_bytes -= _size(oldest.event)
            place = _place(oldest.event.key)
            there = self._history_of[place]
            del there[0]
            if not there:
                del self._history_of[place]
            self._history_floor = oldest.event.revision
            self._lately.note(place, self._history_floor)
        return size

    def _remember_from(self, revision: int) -> None:
        """Forget every change; those above *revision* are to come."""
        self._history.clear()
        self._history_of.clear()
        self._history_bytes, self._history_floor = 0, revision
        self._lately.begin(revision)

    def _advance(self, revision: int) -> None:
        self._position = revision
        while self._waiting and self._waiting[0][0] <= revision:
            _, _, waiter = heapq.heappop(self._waiting)
            if not waiter.done():
                waiter.set_result(None)

    async def reached(self, revision: int) -> None:
        """Return once every change up to *revision* has been observed here."""
        if revision <= self._position:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._ticket += 1
        heapq.heappush(self._waiting, (revision, self._ticket, waiter))
        await waiter

    async def acknowledge(self, revision: int) -> None:
        """Return once *revision* may be answered for: this server has observed it, and every other
        process of its group will have before it handles its next request."""
        await self.reached(revision)
        self._acknowledged.note(revision)

    async def catch_up(self) -> None:
        """Return once all is observed here that any process of the group has answered for."""
        newest = self._acknowledged.newest()
        if newest <= self._position:
            return
        try:
            async with asyncio.timeout(_BEHIND_SECONDS):
                await self.reached(newest)
        except TimeoutError:
            raise TooManyRequests(
                "this process of the server is behind the others; try again"
            ) from None

    async def subscribe(self, subscriber: Subscriber, after: int) -> None:
        """Offer *subscriber* everything above *after*, past and to come, then keep it posted.

        Raises ``Compacted`` when that past is no longer kept; nothing was subscribed then.
        """
        place = _place(subscriber.prefix)
        while after < self._history_floor:
            if place:
                if self._lately.is_silent(place, after):
                    break
                self._asked_back.set()
            # The store may be ahead of what was handed out: what lies beyond will come from
            # here like everything new, and must not be reported twice.
            present = self._position
            events = await self._store.history(subscriber.prefix, after=after)
            past = [event for event in events if event.revision <= present]
            for event in past:
                subscriber.offer(Change(event))
            subscriber.flush()
            # With nothing left out the history may go on; else all up to the present was reported.
            after = past[-1].revision if past and len(past) == len(events) else present
        self._replay(subscriber, after)
        self._subscribers.setdefault(subscriber.prefix, {})[subscriber] = None

    def _replay(self, subscriber: Subscriber, after: int) -> None:
        missed: list[Change] = []
        place = _place(subscriber.prefix)
        memory: Sequence[Change] = self._history_of.get(place, ()) if place else self._history
        # From the end: most who subscribe have seen all but the last, or the very last.
        for change in reversed(memory):
            if change.event.revision <= after:
                break
            if change.event.key.startswith(subscriber.prefix):
                missed.append(change)
        for change in reversed(missed):
            subscriber.offer(change)
            change.shed()
        subscriber.flush()

    def expire(self, view: str) -> None:
        """End every watch through *view*: what it shows has changed, though no object did."""
        for group in list(self._subscribers.values()):
            for subscriber in [s for s in group if s.view == view]:
                subscriber.expire(self._position)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop offering anything to *subscriber*; harmless when it never was subscribed."""
        group = self._subscribers.get(subscriber.prefix)
        if group is not None:
            group.pop(subscriber, None)
            if not group:
                del self._subscribers[subscriber.prefix]


def _size(event: Event) -> int:
    return len(event.value or b"") + len(event.previous or b"") + len(event.key)


def _place(key: str) -> str:
    """Return the prefix of all objects of a type in a cluster that *key*, or a prefix, lies within;
    empty where it is wider than that."""
    parts = key.split("/", 4)
    return f"/{parts[1]}/{parts[2]}/{parts[3]}/" if len(parts) == 5 else ""


def _prefixes(key: str) -> tuple[str, Sequence[str]]:
    """Return the type prefix of *key*, and every prefix a subscription may have.

    The last of these is the type without the identity of its export.
    """
    parts = key.split("/", 5)
    everywhere = f"/{parts[1]}/{parts[2]}/"
    if len(parts) < 5:
        return everywhere, (everywhere, everywhere[:-1])
    cluster = f"{everywhere}{parts[3]}/"
    namespace = f"{cluster}{parts[4]}/"
    # Whatever export it comes from: the type without its identity.
    any_identity = f"/{parts[1]}/{parts[2].partition(':')[0]}"
    return everywhere, (everywhere, cluster, namespace, key, any_identity)
