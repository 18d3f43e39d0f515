"""Reads that share a round trip, and what each of them may be answered by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc
import pytest

from skerry.kit.clock import SystemClock
from skerry.store import etcd_messages as messages
from skerry.store.base import Entry, StoreError, Unavailable
from skerry.store.etcd_cache import ReadCache
from skerry.store.etcd_client import EtcdClient, EtcdOptions
from skerry.store.etcd_layout import Layout, Numbering, packed
from skerry.store.etcd_reads import SharedReads
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
        bench = Bench(etcd, client, clock, SharedReads(client, cache, clock))
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
