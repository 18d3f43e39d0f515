"""The promises of ``store.base``, one by one, on every backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SeededIds
from skerry.server.security.encryption import EncryptedStore, EncryptionKeys
from skerry.store import compaction
from skerry.store.base import (
    Compacted,
    Conflict,
    Event,
    Future,
    Store,
    StoreError,
    Unavailable,
    Write,
)
from skerry.store.compaction import CompactionPolicy, HistoryBytes
from tests.kit.store.backends import Backend


async def put(store: Store, key: str, value: bytes, expected: int | None = None) -> int:
    (revision,) = await store.commit([Write(key, value, expected)])
    return revision


async def delete(store: Store, key: str, expected: int | None = None) -> int:
    (revision,) = await store.commit([Write(key, None, expected)])
    return revision


async def take(watch: AsyncIterator[Sequence[Event]], count: int) -> list[Event]:
    events: list[Event] = []
    async with asyncio.timeout(60):
        while len(events) < count:
            events.extend(await anext(watch))
    return events


async def test_a_new_store_is_empty_at_a_positive_revision(store: Store) -> None:
    assert await store.revision() >= 1
    assert await store.compacted() == 0
    assert await store.get("/a") is None
    page = await store.range("")
    assert (list(page.entries), page.more) == ([], False)
    assert await store.count("") == 0
    assert store.identity


async def test_a_written_value_is_read_back_with_its_revision(store: Store) -> None:
    before = await store.revision()
    revision = await put(store, "/a", b"1")
    assert revision > before
    entry = await store.get("/a")
    assert entry is not None
    assert (entry.key, entry.value, entry.revision) == ("/a", b"1", revision)
    assert await store.revision() >= revision


async def test_an_empty_value_is_a_value(store: Store) -> None:
    await put(store, "/a", b"")
    entry = await store.get("/a")
    assert entry is not None
    assert entry.value == b""
    (event,) = await store.history("", after=entry.revision - 1)
    assert event.value == b""


async def test_create_conflicts_when_the_key_exists(store: Store) -> None:
    revision = await put(store, "/a", b"1", expected=0)
    with pytest.raises(Conflict) as caught:
        await put(store, "/a", b"2", expected=0)
    conflict = caught.value
    assert (conflict.index, conflict.key, conflict.expected, conflict.actual) == (
        0,
        "/a",
        0,
        revision,
    )


async def test_update_needs_the_revision_of_the_last_write(store: Store) -> None:
    first = await put(store, "/a", b"1")
    second = await put(store, "/a", b"2", expected=first)
    with pytest.raises(Conflict):
        await put(store, "/a", b"3", expected=first)
    await put(store, "/a", b"3", expected=second)


async def test_update_of_a_missing_key_conflicts_with_revision_zero(store: Store) -> None:
    with pytest.raises(Conflict) as caught:
        await put(store, "/a", b"1", expected=7)
    assert caught.value.actual == 0


async def test_delete_checks_the_expected_revision(store: Store) -> None:
    first = await put(store, "/a", b"1")
    second = await put(store, "/a", b"2")
    with pytest.raises(Conflict):
        await delete(store, "/a", expected=first)
    assert await delete(store, "/a", expected=second) > second
    assert await store.get("/a") is None


async def test_unconditional_delete_of_a_missing_key_changes_nothing(store: Store) -> None:
    before = await store.revision()
    assert await delete(store, "/a") == 0
    assert await delete(store, "/a", expected=0) == 0
    assert await store.revision() == before
    assert await store.history("", after=before) == []


async def test_an_empty_commit_changes_nothing(store: Store) -> None:
    before = await store.revision()
    assert await store.commit([]) == []
    assert await store.revision() == before


async def test_a_key_twice_in_one_commit_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="more than once"):
        await store.commit([Write("/a", b"1"), Write("/a", b"2")])
    with pytest.raises(ValueError, match="empty"):
        await store.commit([Write("", b"1")])
    assert await store.count("") == 0


async def test_several_keys_are_written_with_revisions_of_their_own(store: Store) -> None:
    await put(store, "/gone", b"x")
    before = await store.revision()
    revisions = await store.commit(
        [
            Write("/c", b"3"),
            Write("/missing", None),
            Write("/gone", None),
            Write("/a", b"1", 0),
            Write("/also-missing", None),
            Write("/b", b"2"),
        ]
    )
    assert revisions[1] == revisions[4] == 0
    real = [revision for revision in revisions if revision]
    assert real == sorted(set(real))
    assert real[0] > before
    events = await store.history("", after=before)
    assert [(e.key, e.revision) for e in events] == [
        ("/c", revisions[0]),
        ("/gone", revisions[2]),
        ("/a", revisions[3]),
        ("/b", revisions[5]),
    ]


async def test_one_misfit_among_several_writes_undoes_all(store: Store) -> None:
    revision = await put(store, "/b", b"old")
    before = await store.revision()
    with pytest.raises(Conflict) as caught:
        await store.commit(
            [Write("/a", b"1", 0), Write("/b", b"2", revision + 1), Write("/c", None, 9)]
        )
    assert (caught.value.index, caught.value.key) == (1, "/b")
    assert await store.get("/a") is None
    assert await store.history("", after=before) == []


async def test_range_is_ordered_and_bounded_by_prefix(store: Store) -> None:
    keys = ["/a/1", "/a/10", "/a/2", "/a/é", "/b/1", "/a", "/a0", "/a/\U0010ffff", "/A/1"]
    for key in keys:
        await put(store, key, key.encode())
    page = await store.range("/a/")
    assert [e.key for e in page.entries] == ["/a/1", "/a/10", "/a/2", "/a/é", "/a/\U0010ffff"]
    assert [e.value for e in page.entries] == [e.key.encode() for e in page.entries]
    assert await store.count("/a/") == 5
    assert [e.key for e in (await store.range("")).entries] == sorted(keys)


async def test_pages_of_a_range_show_one_moment(store: Store) -> None:
    await store.commit([Write(f"/k/{n}", b"old") for n in range(7)])
    first = await store.range("/k/", limit=3)
    assert first.more
    assert [e.key for e in first.entries] == ["/k/0", "/k/1", "/k/2"]
    await store.commit([Write("/k/3", b"new"), Write("/k/4", None), Write("/k/45", b"new")])
    second = await store.range("/k/", after="/k/2", limit=3, revision=first.revision)
    assert [(e.key, e.value) for e in second.entries] == [(f"/k/{n}", b"old") for n in (3, 4, 5)]
    assert second.more
    assert second.revision == first.revision
    last = await store.range("/k/", after="/k/5", limit=3, revision=first.revision)
    assert [e.key for e in last.entries] == ["/k/6"]
    assert not last.more


async def test_sizes_are_the_lengths_of_what_a_range_returns(store: Store) -> None:
    sizes = [0, 1, 4095, 70_000, 3, 900_000, 12]
    for number, size in enumerate(sizes):
        await put(store, f"/k/{number}", b"x" * size)
    await put(store, "/j/1", b"before")
    await put(store, "/l/1", b"after")
    then = await store.revision()
    await store.commit([Write("/k/3", b"shrunk"), Write("/k/4", None), Write("/k/45", b"new")])

    async def read(limit: int, revision: int | None) -> dict[str, int]:
        found: dict[str, int] = {}
        after, more = "", True
        while more:
            page = await store.sizes("/k/", after=after, limit=limit, revision=revision)
            assert 0 < len(page.entries) <= limit
            found.update(page.entries)
            after, more = page.entries[-1][0], page.more
        assert list(found) == sorted(found)
        return found

    for limit in (1, 3, 7, 8, 5000):
        assert await read(limit, then) == {f"/k/{n}": size for n, size in enumerate(sizes)}
        now = {e.key: len(e.value) for e in (await store.range("/k/")).entries}
        assert await read(limit, None) == now
    assert list((await store.sizes("/none/", limit=5)).entries) == []
    await store.compact(await store.revision())
    with pytest.raises(Compacted):
        await store.sizes("/k/", limit=5, revision=then)


async def test_a_limit_that_takes_all_leaves_no_more(store: Store) -> None:
    await store.commit([Write(f"/k/{n}", b"") for n in range(3)])
    page = await store.range("/k/", limit=3)
    assert (len(page.entries), page.more, page.remaining) == (3, False, 0)


async def test_range_in_the_middle_of_a_commit_shows_half_of_it(store: Store) -> None:
    await store.commit([Write("/b", b"old"), Write("/c", b"old"), Write("/d", b"old")])
    revisions = await store.commit(
        [Write("/a", b"new"), Write("/b", b"new"), Write("/c", None), Write("/d", b"new")]
    )
    seen = []
    for revision in revisions:
        page = await store.range("", revision=revision)
        assert page.revision == revision
        seen.append(" ".join(f"{e.key}={e.value.decode()}" for e in page.entries))
    assert seen == [
        "/a=new /b=old /c=old /d=old",
        "/a=new /b=new /c=old /d=old",
        "/a=new /b=new /d=old",
        "/a=new /b=new /d=new",
    ]


async def test_history_reports_what_was_there_before(store: Store) -> None:
    start = await store.revision()
    one = await put(store, "/a", b"1")
    two = await put(store, "/a", b"2")
    three = await delete(store, "/a")
    four = await put(store, "/a", b"4")
    assert await store.history("", after=start) == [
        Event(one, "/a", b"1", None, 0),
        Event(two, "/a", b"2", b"1", one),
        Event(three, "/a", None, b"2", two),
        Event(four, "/a", b"4", None, 0),
    ]


async def test_history_is_limited_and_filtered(store: Store) -> None:
    start = await store.revision()
    for number in range(6):
        await put(store, f"/{number % 2}/{number}", b"")
    events = await store.history("/1/", after=start, limit=2)
    assert [e.key for e in events] == ["/1/1", "/1/3"]
    rest = await store.history("/1/", after=events[-1].revision, limit=2)
    assert [e.key for e in rest] == ["/1/5"]


async def test_keys_that_were_written_are_returned_without_values_or_not_at_all(
    store: Store,
) -> None:
    revisions = [(await store.commit([Write(f"/a/{number}", b"x")]))[0] for number in range(1200)]
    (deleted,) = await store.commit([Write("/a/7", None)])
    found = await store.written(after=revisions[2], upto=deleted - 1)
    if found is None:
        return
    wanted = [(f"/a/{number}", revision) for number, revision in enumerate(revisions)]
    assert list(found) == wanted[3:]
    last = await store.written(after=revisions[-1], upto=deleted)
    assert list(last or ()) == [("/a/7", deleted)]
    await store.compact(revisions[5])
    with pytest.raises(Compacted):
        await store.written(after=revisions[4], upto=deleted)


async def test_watch_goes_from_history_to_live_without_a_seam(store: Store) -> None:
    start = await store.revision()
    written = [await put(store, f"/a/{n}", b"") for n in range(5)]
    watch = store.watch("/a/", after=start)
    seen = [e.revision for e in await take(watch, 3)]
    for number in range(5):
        written.append(await put(store, f"/a/{number}", b"again"))
        await put(store, f"/b/{number}", b"not watched")
    seen += [e.revision for e in await take(watch, len(written) - len(seen))]
    assert seen == written


async def test_watch_can_be_resumed_after_every_single_event(store: Store) -> None:
    start = await store.revision()
    await store.commit([Write(f"/k/{n}", b"1") for n in range(4)])
    await store.commit([Write("/k/1", None), Write("/k/none", None), Write("/k/2", b"2")])
    await store.commit([Write("/k/2", None), Write("/k/0", None), Write("/j", b"x")])
    every = await store.history("/k/", after=start)
    assert len(every) == 8
    for index, event in enumerate(every[:-1]):
        resumed = await take(store.watch("/k/", after=event.revision), len(every) - index - 1)
        assert resumed == every[index + 1 :]


async def test_a_waiting_watcher_is_notified_of_its_prefix_only(store: Store) -> None:
    watch = store.watch("/mine/", after=await store.revision())
    waiting = asyncio.ensure_future(anext(watch))
    for number in range(50):
        await put(store, f"/theirs/{number}", b"")
    assert not waiting.done()
    revision = await put(store, "/mine/1", b"")
    async with asyncio.timeout(60):
        (event,) = await waiting
    assert event.revision == revision


async def test_an_event_is_readable_when_it_is_seen(store: Store) -> None:
    watch = store.watch("", after=await store.revision())
    await put(store, "/a", b"1")
    (event,) = await take(watch, 1)
    entry = await store.get("/a")
    assert entry is not None
    assert entry.revision >= event.revision


async def test_a_revision_that_has_not_happened_is_in_the_future(store: Store) -> None:
    beyond = await store.revision() + 1_000_000
    with pytest.raises(Future):
        await store.range("", revision=beyond)
    with pytest.raises(Future):
        await store.history("", after=beyond)
    with pytest.raises(Future):
        await anext(store.watch("", after=beyond))
    with pytest.raises(Future):
        await store.compact(beyond)


async def test_compaction_forgets_the_past_and_keeps_the_present(store: Store) -> None:
    early = await put(store, "/a", b"1")
    await put(store, "/gone", b"1")
    await delete(store, "/gone")
    middle = await put(store, "/a", b"2")
    late = await put(store, "/a", b"3")
    await store.compact(middle)
    assert await store.compacted() == middle
    for read in (
        store.range("", revision=early),
        store.history("", after=early),
        anext(store.watch("", after=middle - 1)),
    ):
        with pytest.raises(Compacted) as caught:
            await read
        assert caught.value.oldest == middle
    then = await store.range("", revision=middle)
    assert [(e.key, e.value, e.revision) for e in then.entries] == [("/a", b"2", middle)]
    assert await take(store.watch("", after=middle), 1) == [Event(late, "/a", b"3", b"2", middle)]


async def test_compacting_inside_a_commit_keeps_its_other_half(store: Store) -> None:
    await store.commit([Write("/a", b"1"), Write("/b", b"1"), Write("/c", b"1")])
    revisions = await store.commit([Write("/a", b"2"), Write("/b", None), Write("/c", b"2")])
    await store.compact(revisions[0])
    page = await store.range("", revision=revisions[0])
    assert [(e.key, e.value) for e in page.entries] == [("/a", b"2"), ("/b", b"1"), ("/c", b"1")]
    events = await take(store.watch("", after=revisions[0]), 2)
    assert [(e.key, e.previous) for e in events] == [("/b", b"1"), ("/c", b"1")]


async def test_compacting_everything_keeps_the_revision(store: Store) -> None:
    await put(store, "/a", b"1")
    last = await delete(store, "/a")
    newest = await store.revision()
    await store.compact(newest)
    await store.compact(last)
    assert await store.revision() == newest
    assert await store.compacted() == newest
    assert await put(store, "/a", b"2") > newest


async def test_every_commit_raises_the_revision_by_the_stride(store: Store) -> None:
    first = await put(store, "/a", b"1")
    for _ in range(4):
        last = await put(store, "/a", b"2")
    assert last - first == 4 * store.revision_stride
    encrypted = EncryptedStore(store, EncryptionKeys(SeededIds(1), {}))
    assert encrypted.revision_stride == store.revision_stride


async def test_history_is_bounded_by_bytes(store: Store) -> None:
    history = HistoryBytes(64 << 10)
    start = await store.revision()
    watch = store.watch("", after=start)
    async with asyncio.TaskGroup() as tasks:
        policy = CompactionPolicy(max_bytes=64 << 10)
        compacting = tasks.create_task(compaction.run(store, policy, SystemClock(), history))
        written = []
        for number in range(60):
            written.append(await put(store, f"/{number % 3}", b"x" * 4096))
            for event in await take(watch, 1):
                history.add(event)
        async with asyncio.timeout(60):
            while await store.compacted() < history.excess:
                await asyncio.sleep(0.001)
        compacting.cancel()
    kept = [revision for revision in written if revision > await store.compacted()]
    assert 14 <= len(kept) <= 17
    with pytest.raises(Compacted):
        await store.history("", after=start)
    assert await store.count("") == 3


async def test_concurrent_commits_all_happen_once(store: Store) -> None:
    start = await store.revision()
    results = await asyncio.gather(*(put(store, f"/{n}", b"", expected=0) for n in range(300)))
    assert len(set(results)) == 300
    events = await take(store.watch("", after=start), 300)
    assert sorted(e.revision for e in events) == sorted(results)
    assert {e.key: e.revision for e in events} == {f"/{n}": r for n, r in enumerate(results)}


async def test_of_concurrent_creates_of_one_key_exactly_one_wins(store: Store) -> None:
    results = await asyncio.gather(
        *(put(store, f"/{n % 3}", str(n).encode(), expected=0) for n in range(60)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, int) for result in results) == 3
    assert all(isinstance(result, int | Conflict) for result in results)


async def test_a_conflict_leaves_the_commits_beside_it_alone(store: Store) -> None:
    await put(store, "/taken", b"")
    results = await asyncio.gather(
        *(put(store, "/taken" if n % 5 == 0 else f"/{n}", b"", expected=0) for n in range(50)),
        return_exceptions=True,
    )
    assert [isinstance(result, Conflict) for result in results] == [n % 5 == 0 for n in range(50)]


async def test_concurrent_increments_lose_nothing(store: Store) -> None:
    await put(store, "/n", b"0")

    async def increment() -> None:
        while True:
            entry = await store.get("/n")
            assert entry is not None
            try:
                await put(store, "/n", str(int(entry.value) + 1).encode(), entry.revision)
            except Conflict:
                continue
            return

    await asyncio.gather(*(increment() for _ in range(12)))
    entry = await store.get("/n")
    assert entry is not None
    assert entry.value == b"12"


async def test_a_cancelled_waiter_costs_nobody_else_an_answer(store: Store) -> None:
    tasks = [asyncio.ensure_future(put(store, f"/{n}", b"")) for n in range(40)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for index, result in enumerate(results):
        if index % 3 == 0:
            continue
        entry = await store.get(f"/{index}")
        assert entry is not None
        assert entry.revision == result
    assert await put(store, "/after", b"") > 0


async def test_a_cancelled_watcher_leaves_others_watching(store: Store) -> None:
    start = await store.revision()
    first, second = store.watch("", after=start), store.watch("", after=start)
    waiting = asyncio.ensure_future(anext(first))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    revision = await put(store, "/a", b"")
    assert [e.revision for e in await take(second, 1)] == [revision]


async def test_a_closed_store_says_so(backend: Backend) -> None:
    store = await backend.open()
    watch = store.watch("", after=await store.revision())
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0.01)
    await store.close()
    answers = (store.get("/a"), put(store, "/a", b""), store.range(""), store.check_writable())
    for attempt in (waiting, anext(watch), *answers):
        with pytest.raises(Unavailable, match="closed"):
            await attempt
    await store.close()


async def test_a_large_range_comes_whole_while_writes_go_on(store: Store) -> None:
    for start in range(0, 6000, 120):
        await store.commit([Write(f"/big/{n:05}", b"v") for n in range(start, start + 120)])

    async def disturb() -> None:
        for number in range(0, 6000, 600):
            await store.commit(
                [Write(f"/big/{number:05}", b"new"), Write(f"/big/{number + 7:05}", None)]
            )

    page, _ = await asyncio.gather(store.range("/big/"), disturb())
    again = await store.range("/big/", revision=page.revision)
    assert [*page.entries] == [*again.entries]
    assert await store.count("/big/") == 5990


async def test_data_identity_and_revision_survive_reopening(durable_backend: Backend) -> None:
    settings = durable_backend.fresh()
    store = await durable_backend.open(settings)
    first = await put(store, "/a", b"1")
    second = await put(store, "/a", b"2")
    await put(store, "/b", b"1")
    last = await delete(store, "/b")
    await store.compact(last)
    identity = store.identity
    await store.close()
    store = await durable_backend.open(settings)
    try:
        entry = await store.get("/a")
        assert entry is not None
        assert (entry.value, entry.revision) == (b"2", second)
        assert store.identity == identity
        assert await store.compacted() == last
        assert await store.revision() >= last
        with pytest.raises(Compacted):
            await store.range("", revision=first)
        assert await put(store, "/c", b"") > last
    finally:
        await store.close()


async def test_adopting_a_new_history_jumps_and_compacts_the_past(store: Store) -> None:
    old = await put(store, "/a", b"1")
    far = old + 10**13
    await store.adopt("another", far)  # type: ignore[attr-defined]
    assert store.identity == "another"
    assert await store.revision() >= far
    assert await store.compacted() >= far
    for read in (store.range("", revision=old), anext(store.watch("", after=old))):
        with pytest.raises(Compacted):
            await read
    assert await put(store, "/b", b"") > far


def test_every_refusal_is_a_store_error() -> None:
    assert all(issubclass(c, StoreError) for c in (Conflict, Compacted, Future, Unavailable))
