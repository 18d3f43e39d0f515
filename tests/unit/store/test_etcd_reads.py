"""Reads that share a round trip, and what each of them may be answered by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import grpc
import pytest

from skerry.kit.clock import LoopClock, SystemClock
from skerry.store import etcd_messages as messages
from skerry.store.base import Entry, StoreError, Unavailable
from skerry.store.etcd_cache import Question, ReadCache
from skerry.store.etcd_client import EtcdClient, EtcdOptions
from skerry.store.etcd_layout import Layout, Numbering, packed
from skerry.store.etcd_reads import SharedReads
from tests.kit.sim.loop import virtual
from tests.kit.store.tiny_etcd import Fault, TinyEtcd, tiny_etcd

LAYOUT = Layout("/t/")


class Gated(EtcdClient):
    """Holds answers back, after etcd has given them, until the gate is open."""

    def __init__(self, url: str) -> None:
        super().__init__(EtcdOptions((url,), timeout_seconds=5.0), SystemClock())
        self.open = asyncio.Event()
        self.open.set()
        self.held = asyncio.Event()

    async def inquire(self, request: bytes) -> messages.Transacted:
        answer = await super().inquire(request)
        self.held.set()
        await self.open.wait()
        return answer


class SteppedClock(SystemClock):
    """A clock that a test puts forward."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


@dataclass
class Bench:
    etcd: TinyEtcd
    client: Gated
    clock: SteppedClock
    reads: SharedReads

    def put(self, key: str, value: bytes) -> None:
        self.etcd.write([(LAYOUT.key(key), packed(value, 0, bytes(8)))])

    def questions(self) -> int:
        return self.etcd.calls.count("Txn")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with tiny_etcd() as etcd:
        client, clock = Gated(etcd.url), SteppedClock()
        cache = ReadCache(LAYOUT, Numbering(0), max_operations=4)
        bench = Bench(etcd, client, clock, SharedReads(client, cache, LAYOUT, clock))
        yield bench
        await bench.reads.stop()
        await client.close()


def value(entry: Entry | None) -> bytes | None:
    return entry.value if entry else None


async def test_a_read_alone_is_one_round_trip(bench: Bench) -> None:
    bench.put("/a", b"1")
    for number in range(1, 4):
        assert value(await bench.reads.get("/a")) == b"1"
        assert bench.questions() == number


async def test_reads_that_begin_together_share_a_question(bench: Bench) -> None:
    bench.put("/a", b"1")
    keys = ["/a", "/b", "/a", "/a"]
    found = await asyncio.gather(*map(bench.reads.get, keys))
    assert [value(entry) for entry in found] == [b"1", None, b"1", b"1"]
    assert bench.questions() == 1


async def test_a_read_is_not_answered_by_a_question_sent_before_it_began(bench: Bench) -> None:
    bench.put("/a", b"old")
    bench.client.open.clear()
    first = bench.reads.get("/a")
    await bench.client.held.wait()
    bench.put("/a", b"new")
    later = [bench.reads.get("/a") for _ in range(5)]
    bench.client.open.set()
    assert value(await first) == b"old"
    assert [value(await each) for each in later] == [b"new"] * 5
    assert bench.questions() == 2


async def test_more_reads_than_fit_go_one_question_after_another(bench: Bench) -> None:
    keys = [f"/{number}" for number in range(10)]
    for key in keys:
        bench.put(key, key.encode())
    found = await asyncio.gather(*map(bench.reads.get, keys))
    assert [value(entry) for entry in found] == [key.encode() for key in keys]
    assert bench.questions() == 3


async def test_a_question_that_hangs_holds_up_others_only_for_a_while(bench: Bench) -> None:
    bench.client.open.clear()
    hanging = bench.reads.get("/a")
    await bench.client.held.wait()
    waiting = bench.reads.get("/b")
    assert bench.questions() == 1
    bench.clock.ahead = 1.0
    bench.client.held.clear()
    third = bench.reads.get("/c")
    await bench.client.held.wait()
    assert bench.questions() == 2
    # However long both take, there is no third.
    bench.clock.ahead = 5.0
    fourth = bench.reads.get("/d")
    bench.client.open.set()
    await asyncio.gather(hanging, waiting, third, fourth)
    assert bench.questions() == 3


async def test_a_caller_that_goes_away_takes_nobody_with_it(bench: Bench) -> None:
    bench.put("/a", b"1")
    first, second = bench.reads.get("/a"), bench.reads.get("/a")
    first.cancel()
    assert value(await second) == b"1"


async def test_a_refusal_reaches_everybody_who_shared_the_question(bench: Bench) -> None:
    bench.etcd.spoil("Txn", Fault(grpc.StatusCode.PERMISSION_DENIED, "no"))
    found = await asyncio.gather(
        bench.reads.get("/a"), bench.reads.get("/b"), return_exceptions=True
    )
    assert [type(each) for each in found] == [StoreError, StoreError]
    assert await bench.reads.get("/a") is None


async def test_stopping_fails_what_was_sent_and_what_waits(bench: Bench) -> None:
    bench.client.open.clear()
    sent = bench.reads.get("/a")
    await bench.client.held.wait()
    waiting = bench.reads.get("/b")
    await bench.reads.stop()
    for each in (sent, waiting):
        with pytest.raises(Unavailable, match="closed"):
            await each


# In virtual time, where etcd is a list of delays.


class Slow:
    """Answers each question after a delay of its own, with nothing; or fails as it is bidden."""

    def __init__(self, *delays: float | Exception) -> None:
        self._delays = list(delays)
        self.asked_at: list[float] = []

    async def inquire(self, request: bytes) -> messages.Transacted:
        self.asked_at.append(asyncio.get_running_loop().time())
        delay = self._delays.pop(0) if self._delays else 0.001
        if isinstance(delay, Exception):
            raise delay
        await asyncio.sleep(delay)
        # A range for each key that was asked for; these caches know none.
        return messages.Transacted(1, True, [messages.Ranged([], False, 0, 1)])


class Spoilt(ReadCache):
    """Cannot ask for some keys, because of a bug."""

    def __init__(self, bad: str) -> None:
        super().__init__(LAYOUT, Numbering(0), max_operations=1)
        self._bad = bad

    def question(self, keys: Iterable[str]) -> Question:
        if self._bad in (kept := list(keys)):
            raise ValueError("a bug")
        return super().question(kept)


def slow_reads(client: Slow, cache: ReadCache | None = None) -> SharedReads:
    one_each = cache or ReadCache(LAYOUT, Numbering(0), max_operations=1)
    return SharedReads(client, one_each, LAYOUT, LoopClock())


async def failed(read: asyncio.Future[Entry | None]) -> bool:
    """Tell whether a read fails; one that hangs is a deadlock here."""
    try:
        await read
    except StoreError:
        return True
    return False


@virtual
async def test_two_reads_are_enough_to_get_past_a_question_that_hangs() -> None:
    client = Slow(10.0)
    reads = slow_reads(client)
    loop = asyncio.get_running_loop()
    hanging = reads.get("/a")
    await asyncio.sleep(0.1)
    assert await reads.get("/b") is None
    assert loop.time() < 0.3
    assert client.asked_at == [0.0, pytest.approx(0.25)]
    assert await hanging is None
    await reads.stop()


@virtual
async def test_a_third_read_waits_for_one_of_two_questions_that_hang() -> None:
    client = Slow(10.0, 5.0)
    reads = slow_reads(client)
    found = [reads.get(key) for key in ("/a", "/b", "/c")]
    await asyncio.gather(*found)
    assert client.asked_at == [0.0, pytest.approx(0.25), pytest.approx(5.25)]
    await reads.stop()


@virtual
async def test_answers_that_come_in_time_are_never_asked_for_twice() -> None:
    client = Slow(*[0.2] * 20)
    reads = slow_reads(client)
    await asyncio.gather(*(reads.get(f"/{number}") for number in range(20)))
    assert client.asked_at == [pytest.approx(0.2 * number) for number in range(20)]
    await reads.stop()


@virtual
async def test_nothing_goes_on_after_a_stop_and_whoever_comes_then_is_refused() -> None:
    client = Slow(10.0)
    reads = slow_reads(client)
    found = [reads.get("/a"), reads.get("/b")]
    await asyncio.sleep(0.1)
    await reads.stop()
    found.append(reads.get("/c"))
    assert [await failed(each) for each in found] == [True] * 3
    await asyncio.sleep(60)
    assert client.asked_at == [0.0]


@virtual
@pytest.mark.parametrize("times", [1, 5])
async def test_a_key_that_has_no_bytes_is_the_trouble_of_its_reader_alone(times: int) -> None:
    client = Slow(0.3, 0.3)
    reads = slow_reads(client)
    good = [reads.get("/a")]
    for _ in range(times):
        with pytest.raises(UnicodeEncodeError):
            reads.get("/core/pods/a/b/\ud800")
        good.append(reads.get("/b"))
        await asyncio.sleep(0.5)
    assert await asyncio.gather(*good) == [None] * len(good)
    await reads.stop()


@virtual
@pytest.mark.parametrize("times", [1, 5])
async def test_a_question_that_cannot_be_made_fails_those_who_wait_and_no_later_ones(
    times: int,
) -> None:
    client = Slow()
    reads = slow_reads(client, Spoilt("/bad"))
    for _ in range(times):
        assert [await failed(reads.get(key)) for key in ("/bad", "/a")] == [True, False]
        together = [reads.get("/bad"), reads.get("/a")]
        assert [await failed(each) for each in together] == [True, True]
    assert await reads.get("/a") is None
    await reads.stop()


@virtual
@pytest.mark.parametrize("where", ["asking", "understanding"])
async def test_a_question_that_fails_as_none_should_lets_the_next_one_go(where: str) -> None:
    """Nobody comes after those who waited meanwhile."""

    class Short(Slow):
        async def inquire(self, request: bytes) -> messages.Transacted:
            answer = await super().inquire(request)
            lacks = where == "understanding" and len(self.asked_at) == 1
            return answer._replace(ranges=[]) if lacks else answer

    client = Short(*([ValueError("a bug")] if where == "asking" else []))
    reads = slow_reads(client)
    found = [reads.get(key) for key in ("/a", "/b", "/c")]
    assert [await failed(each) for each in found] == [True, False, False]
    await reads.stop()
