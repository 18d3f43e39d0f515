"""Commits that travel together, each judged by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import pytest

from skerry.kit.ids import SeededIds
from skerry.store.base import Conflict, Overloaded, StoreError, Unavailable, Write
from skerry.store.etcd_client import EtcdClient, OutcomeUnknown
from skerry.store.etcd_commit import CONCURRENT, MAX_WAITING_BYTES, Committer
from skerry.store.etcd_layout import FACTOR, Layout, Numbering, unpacked
from tests.kit.store.tiny_etcd import Fault, TinyEtcd, client_of, tiny_etcd

LAYOUT = Layout("/test/")
LOST = Fault(grpc.StatusCode.UNAVAILABLE, "connection reset", done=True)


@dataclass
class Bench:
    etcd: TinyEtcd
    client: EtcdClient
    committer: Committer

    async def commit(self, *writes: Write) -> list[int]:
        return await self.committer.submit(writes)

    def value(self, key: str) -> bytes | None:
        stored = self.etcd.keys.get(LAYOUT.key(key))
        return unpacked(stored.value)[2] if stored else None

    def transactions(self) -> int:
        return self.etcd.calls.count("Txn")


@asynccontextmanager
async def running(committer: Committer, tasks: int = 1) -> AsyncIterator[None]:
    running = [asyncio.create_task(committer.run()) for _ in range(tasks)]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@pytest.fixture
async def idle() -> AsyncIterator[Bench]:
    """A committer whose task has not begun."""
    async with tiny_etcd() as etcd, client_of(etcd.url) as client:
        ids = SeededIds(1)
        committer = Committer(client, LAYOUT, lambda: Numbering(0), ids, max_operations=8)
        yield Bench(etcd, client, committer)


@pytest.fixture
async def bench(idle: Bench) -> AsyncIterator[Bench]:
    async with running(idle.committer):
        yield idle


async def outcomes(*waiting: Awaitable[list[int]]) -> list[list[int] | BaseException]:
    return await asyncio.gather(*waiting, return_exceptions=True)


async def test_commits_of_one_turn_of_the_loop_share_a_transaction(bench: Bench) -> None:
    await outcomes(*(bench.commit(Write(f"/{name}", b"1", 0)) for name in "abcd"))
    assert bench.transactions() == 1
    assert [bench.value(f"/{name}") for name in "abcd"] == [b"1"] * 4


async def test_the_events_of_a_transaction_are_numbered_in_the_order_of_the_commits(
    bench: Bench,
) -> None:
    first, second = await asyncio.gather(
        bench.commit(Write("/a", b"1"), Write("/b", b"2")), bench.commit(Write("/c", b"3"))
    )
    start = bench.etcd.revision * FACTOR
    assert (first, second) == ([start, start + 1], [start + 2])


async def test_only_whose_expectation_fails_has_a_conflict(bench: Bench) -> None:
    (had,) = await bench.commit(Write("/a", b"1", 0))
    wrong, right = await outcomes(
        bench.commit(Write("/b", b"2"), Write("/a", b"2", 0)), bench.commit(Write("/c", b"3", 0))
    )
    assert isinstance(wrong, Conflict)
    assert (wrong.index, wrong.key, wrong.expected, wrong.actual) == (1, "/a", 0, had)
    assert isinstance(right, list)
    assert (bench.value("/a"), bench.value("/b"), bench.value("/c")) == (b"1", None, b"3")


async def test_a_key_that_has_no_bytes_is_the_trouble_of_its_writer_alone(bench: Bench) -> None:
    wrong, right = await outcomes(
        bench.commit(Write("/b", b"2"), Write("/\ud800", b"2")), bench.commit(Write("/c", b"3"))
    )
    assert isinstance(wrong, UnicodeEncodeError)
    assert isinstance(right, list)
    assert isinstance((await outcomes(bench.commit(Write("/c", b"4"))))[0], list)
    assert (bench.value("/b"), bench.value("/c")) == (None, b"4")
    await bench.committer.finish()


async def test_a_revision_of_another_store_fits_nothing(bench: Bench) -> None:
    await bench.commit(Write("/a", b"1"))
    with pytest.raises(Conflict):
        await bench.commit(Write("/a", b"2", 5))
    assert bench.value("/a") == b"1"


async def test_commits_to_one_key_happen_one_after_the_other_in_order(bench: Bench) -> None:
    done = await asyncio.gather(
        *(bench.commit(Write("/a", str(n).encode())) for n in range(3)),
        bench.commit(Write("/b", b"x")),
    )
    revisions = [revision for (revision,) in done[:3]]
    assert revisions == sorted(set(revisions))
    assert bench.value("/a") == b"2"
    assert bench.transactions() == 3


async def test_a_commit_that_waits_for_a_key_is_not_overtaken(bench: Bench) -> None:
    # The second waits for the first's key, so the third, of the second's other key, waits too.
    await asyncio.gather(
        bench.commit(Write("/a", b"1")),
        bench.commit(Write("/a", b"2"), Write("/b", b"2")),
        bench.commit(Write("/b", b"3")),
    )
    assert (bench.value("/a"), bench.value("/b")) == (b"2", b"3")
    assert bench.transactions() == 3


async def test_a_transaction_never_has_more_operations_than_etcd_takes(bench: Bench) -> None:
    # Eight, of which one is the record of the newest revision.
    await asyncio.gather(
        *(bench.commit(Write(f"/{n}", b"1"), Write(f"/{n}x", b"1")) for n in "abcd")
    )
    by_revision = [event.revision for event in bench.etcd.log]
    assert max(by_revision.count(revision) for revision in by_revision) == 7
    with pytest.raises(StoreError, match=r"8 keys in one commit; this etcd takes 7 \(raise"):
        bench.committer.submit([Write(f"/{n}", b"1") for n in range(8)])


# -- deletes ---------------------------------------------------------------------------------------


async def test_a_delete_of_what_is_not_there_changes_nothing_and_shifts_nobody(
    bench: Bench,
) -> None:
    nothing, something = await asyncio.gather(
        bench.commit(Write("/none", None)), bench.commit(Write("/a", b"1"))
    )
    assert nothing == [0]
    assert something == [bench.etcd.revision * FACTOR]
    stored = bench.etcd.keys[LAYOUT.key("/a")]
    assert unpacked(stored.value)[0] == 0


async def test_a_commit_goes_on_without_the_delete_that_finds_nothing(bench: Bench) -> None:
    revisions = await bench.commit(Write("/none", None), Write("/a", b"1"))
    assert revisions == [0, bench.etcd.revision * FACTOR]


async def test_a_delete_that_must_find_nothing_is_a_condition_only(bench: Bench) -> None:
    assert await bench.commit(Write("/a", None, 0)) == [0]
    assert not bench.etcd.log
    await bench.commit(Write("/a", b"1"))
    with pytest.raises(Conflict):
        await bench.commit(Write("/a", None, 0))


async def test_a_delete_of_what_is_there_is_an_event(bench: Bench) -> None:
    (had,) = await bench.commit(Write("/a", b"1"))
    (gone,) = await bench.commit(Write("/a", None, had))
    assert gone > had
    assert bench.value("/a") is None


# -- answers that do not come ----------------------------------------------------------------------


async def test_a_lost_answer_is_found_by_the_mark_of_the_transaction(bench: Bench) -> None:
    bench.etcd.spoil("Txn", LOST)
    revisions = await bench.commit(Write("/a", b"1", 0), Write("/b", b"2", 0))
    assert revisions == [bench.etcd.revision * FACTOR, bench.etcd.revision * FACTOR + 1]


async def test_a_write_like_ours_by_somebody_else_is_not_taken_for_ours(bench: Bench) -> None:
    await bench.commit(Write("/a", b"1"))
    bench.etcd.spoil("Txn", LOST._replace(done=False))
    with pytest.raises(OutcomeUnknown):
        await bench.commit(Write("/a", b"1"))


async def test_a_lost_delete_leaves_no_trace_and_is_called_unknown(bench: Bench) -> None:
    await bench.commit(Write("/a", b"1"))
    bench.etcd.spoil("Txn", LOST)
    with pytest.raises(OutcomeUnknown):
        await bench.commit(Write("/a", None))
    # The next one is served.
    assert await bench.commit(Write("/b", b"1"))


# -- the queue -------------------------------------------------------------------------------------


async def test_whoever_no_longer_waits_does_not_undo_the_commit(idle: Bench) -> None:
    given_up = idle.committer.submit([Write("/a", b"1")])
    given_up.cancel()
    async with running(idle.committer, CONCURRENT):
        await idle.committer.finish()
    assert idle.value("/a") == b"1"


async def test_an_overload_in_bytes_is_said_to_who_comes_too_late_and_ends_with_the_answers(
    idle: Bench,
) -> None:
    half = bytes(MAX_WAITING_BYTES // 2)
    waiting = [idle.committer.submit([Write(f"/{n}", half)]) for n in range(2)]
    with pytest.raises(Overloaded, match="too many writes are waiting; this one was not written"):
        idle.committer.submit([Write("/late", b"")])
    idle.committer.abandon()
    assert all(isinstance(each, Unavailable) for each in await outcomes(*waiting))
    async with running(idle.committer):
        assert await idle.commit(Write("/again", b""))


async def test_finishing_waits_for_every_answer(bench: Bench) -> None:
    waiting = [bench.committer.submit([Write("/a", str(n).encode())]) for n in range(3)]
    await bench.committer.finish()
    assert all(each.done() for each in waiting)
    await asyncio.gather(*waiting)


async def test_what_was_never_sent_is_known_not_to_be_written(idle: Bench) -> None:
    waiting = idle.committer.submit([Write("/a", b"1")])
    idle.committer.abandon()
    with pytest.raises(Unavailable, match="closed; this was not written"):
        await waiting
    assert idle.etcd.calls == []
    await idle.committer.finish()


async def test_a_commit_under_way_when_the_store_stops_is_unknown(idle: Bench) -> None:
    waiting = idle.committer.submit([Write("/a", b"1")])
    async with running(idle.committer):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(OutcomeUnknown, match="stopped while a write was under way"):
        await waiting
