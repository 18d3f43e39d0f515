"""Reads of single keys that share a round trip to etcd.

In Python a call of gRPC costs several times what the rest of a GET does, whatever is in it. So
reads that wait together travel together, as etcd's own do to its leader. A read never uses a
question that was sent before the read began: that one's answer may be older than a write that was
acknowledged in between. It waits for the next, which is sent when the one under way was answered.
However many wait, one question is under way; a read alone is sent at once and is one round trip.

A question that hangs, at a member that vanished without a word, does not hold up the others for
long: after a while a second one is under way beside it.

A question that cannot be made or understood costs those that are in it, and nobody after them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from skerry.kit.clock import Clock
from skerry.store.base import Entry, StoreError, Unavailable
from skerry.store.etcd_cache import Outcome, Question, ReadCache
from skerry.store.etcd_layout import Layout
from skerry.store.etcd_messages import Transacted

_MAX_UNDER_WAY = 2
# Many times what an answer takes, and less than a change of leader.
_PATIENCE_SECONDS = 0.25


class Inquirer(Protocol):
    """What can ask etcd."""

    async def inquire(self, request: bytes) -> Transacted:
        """Send a transaction that only reads."""


class SharedReads:
    """Answers ``get`` from etcd, with as few questions as possible."""

    def __init__(self, client: Inquirer, cache: ReadCache, layout: Layout, clock: Clock) -> None:
        self._client = client
        self._cache = cache
        self._layout = layout
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Future[Entry | None]]] = {}
        # When each question under way was begun.
        self._begun: dict[int, float] = {}
        self._numbers = count()
        self._tasks: set[asyncio.Task[None]] = set()
        # Set while reads may wait for a question that hangs.
        self._patience: asyncio.TimerHandle | None = None
        self._stopped = False

    def get(self, key: str) -> asyncio.Future[Entry | None]:
        """Read *key* as it is at a moment after this call."""
        # A key that has no bytes fails here, and not the question of everybody who waits.
        self._layout.key(key)
        waiter: asyncio.Future[Entry | None] = asyncio.get_running_loop().create_future()
        if self._stopped:
            _answer([waiter], _closed())
            return waiter
        self._waiting.setdefault(key, []).append(waiter)
        self._start_if_free()
        return waiter

    async def stop(self) -> None:
        """Fail every read that waits, and those that were sent."""
        self._stopped = True
        if self._patience is not None:
            self._patience.cancel()
        _fail(self._waiting, _closed())
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_if_free(self) -> None:
        begun = self._begun
        if len(begun) >= _MAX_UNDER_WAY:
            return
        now = self._clock.monotonic()
        if begun:
            left = max(begun.values()) + _PATIENCE_SECONDS - now
            if left > 0:
                self._look_again_in(left)
                return
        number = next(self._numbers)
        begun[number] = now
        # A task of its own: whoever reads first may be cancelled, and others wait as well. It
        # begins with the next turn of the loop, so the other reads of this turn join.
        task = asyncio.get_running_loop().create_task(self._round_trip(number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _look_again_in(self, seconds: float) -> None:
        """See later whether the question under way hangs; one timer is enough for all who wait."""
        if self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        self._patience = None
        if self._waiting:
            self._start_if_free()

    async def _round_trip(self, number: int) -> None:
        # Until the question is made, it is everybody's.
        waiters = self._waiting
        try:
            question = self._cache.question(waiters)
            waiters = {key: self._waiting.pop(key) for key in question.keys}
            outcomes = await self._asked(question)
            for key, waiting in waiters.items():
                _answer(waiting, outcomes[key])
        except BaseException as error:
            # The store is being closed, or there is a bug; nobody must wait for ever.
            closed = isinstance(error, asyncio.CancelledError)
            _fail(waiters, _closed() if closed else Unavailable(f"a read of etcd failed: {error}"))
            raise
        finally:
            del self._begun[number]
            if self._waiting:
                self._start_if_free()

    async def _asked(self, question: Question) -> dict[str, Outcome]:
        if not question.keys:
            return {}
        try:
            outcomes = question.outcomes(await self._client.inquire(question.request))
        except StoreError as error:
            return dict.fromkeys(question.keys, error)
        self._cache.learn(outcomes)
        return outcomes


def _closed() -> Unavailable:
    return Unavailable("the store is closed")


def _fail(waiters: dict[str, list[asyncio.Future[Entry | None]]], error: StoreError) -> None:
    """Fail all *waiters*, and forget them."""
    for each in waiters.values():
        _answer(each, error)
    waiters.clear()


def _answer(waiters: Sequence[asyncio.Future[Entry | None]], found: Outcome) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if isinstance(found, StoreError):
            waiter.set_exception(found)
        else:
            waiter.set_result(found)
