"""watch: every change once and in order, from wherever one asks."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.server.http.message import Stream
from skerry.store.base import Page
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import MemorySender, Server, serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.sim.loop import run_virtual, virtual

MAPS = f"{CORE}/configmaps"


async def changed(server: Server, name: str, **data: str) -> str:
    made = await server.patch(f"{MAPS}/{name}", {"data": data})
    assert made.status == 200
    return str(made.body["metadata"]["resourceVersion"])


async def created(server: Server, name: str, labels: dict[str, str] | None = None) -> str:
    made = await server.create(MAPS, config_map(name, labels))
    assert made.status == 201, made.body
    return str(made.body["metadata"]["resourceVersion"])


async def seen(sender: MemorySender, count: int) -> list[tuple[str, str]]:
    events = [await sender.lines.get() for _ in range(count)]
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


async def collected(server: Server, path: str) -> list[dict[str, Any]]:
    """Everything a watch tells until its time is up."""
    answer = await server.answer("GET", path)
    assert isinstance(answer, Stream), answer
    sender = MemorySender()
    await answer.run(sender)
    return [sender.lines.get_nowait() for _ in range(sender.lines.qsize())]


@virtual
async def test_without_a_revision_the_state_comes_first() -> None:
    async with serving() as server:
        await created(server, "a")
        await created(server, "b")
        for query in ("watch=true", "watch=1&resourceVersion=0"):
            async with server.watch(f"{MAPS}?{query}") as sender:
                assert await seen(sender, 2) == [("ADDED", "a"), ("ADDED", "b")]
                await changed(server, "a", query=query)
                assert await seen(sender, 1) == [("MODIFIED", "a")]


class Paged(MemoryStore):
    """Notes how many rows each read returned, and how many lines were sent before it."""

    def __init__(self) -> None:
        super().__init__("one")
        self.sender = MemorySender()
        self.reads: list[tuple[int, int]] = []

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        page = await super().range(prefix, after=after, limit=limit, revision=revision)
        self.reads.append((len(page.entries), self.sender.lines.qsize()))
        return page


@virtual
async def test_a_large_state_is_sent_as_it_is_read() -> None:
    store = Paged()
    async with serving(store) as server:
        for number in range(1100):
            await created(server, f"m{number:04}")
        store.reads.clear()
        path = f"{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
        answer = await server.answer(
            "GET", f"{path}&resourceVersionMatch=NotOlderThan&timeoutSeconds=5"
        )
        assert isinstance(answer, Stream), answer
        await answer.run(store.sender)
    assert store.reads == [(500, 0), (500, 500), (100, 1000)]
    assert store.sender.lines.qsize() >= 1101


@virtual
async def test_changes_come_in_order_with_their_revisions() -> None:
    async with serving() as server:
        start = await created(server, "a")
        async with server.watch(f"{MAPS}?watch=1&resourceVersion={start}") as sender:
            await changed(server, "a", k="1")
            await created(server, "b")
            await server.delete(f"{MAPS}/a")
            events = [await sender.lines.get() for _ in range(3)]
        kinds = [(e["type"], e["object"]["metadata"]["name"]) for e in events]
        assert kinds == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
        revisions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
        assert revisions == sorted(set(revisions))
        assert events[-1]["object"]["data"] == {"k": "1"}, "a deletion shows the last state"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["create", "change", "delete"]), min_size=1, max_size=12))
def test_a_watch_may_resume_after_every_event_without_gap_or_repetition(actions: list[str]) -> None:
    async def story() -> None:
        async with serving() as server:
            start = await created(server, "zero")
            alive = ["zero"]
            for number, action in enumerate(actions):
                if action == "create" or not alive:
                    alive.append(f"c{number}")
                    await created(server, alive[-1])
                elif action == "change":
                    await changed(server, alive[0], n=str(number))
                else:
                    await server.delete(f"{MAPS}/{alive.pop(0)}")
            path = f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion="
            everything = await collected(server, path + start)
            assert len(everything) == len(actions)
            for index, event in enumerate(everything):
                after = event["object"]["metadata"]["resourceVersion"]
                assert await collected(server, path + after) == everything[index + 1 :]
            # A server that began later remembers none of it, and reads the store's history.
            async with serving(server.api.store, seed=2) as later:
                assert await collected(later, path + start) == everything

    run_virtual(story())


@virtual
async def test_what_is_written_while_the_past_is_read_is_reported_once() -> None:
    # The second server remembers nothing, so its watch begins in the store's history.
    async with (
        serving() as server,
        serving(server.api.store, seed=2) as later,
        later.watch(f"{MAPS}?watch=1&resourceVersion=1") as sender,
    ):
        await created(later, "a")
        await created(later, "b")
        await server.sleep(1)
        assert await seen(sender, sender.lines.qsize()) == [("ADDED", "a"), ("ADDED", "b")]


@virtual
async def test_objects_enter_and_leave_a_selection() -> None:
    async with serving() as server:
        start = await created(server, "a", {"x": "1"})
        query = f"watch=1&labelSelector=x%3D1&resourceVersion={start}"
        async with server.watch(f"{MAPS}?{query}") as sender:
            await server.patch(f"{MAPS}/a", {"metadata": {"labels": {"x": "2"}}})
            await changed(server, "a", unseen="1")
            await server.patch(f"{MAPS}/a", {"metadata": {"labels": {"x": "1"}}})
            await created(server, "other", {"x": "9"})
            await changed(server, "a", k="v")
            await server.delete(f"{MAPS}/a")
            assert await seen(sender, 4) == [
                ("DELETED", "a"),
                ("ADDED", "a"),
                ("MODIFIED", "a"),
                ("DELETED", "a"),
            ]


@virtual
async def test_one_object_can_be_watched_by_name_path_and_old_prefix() -> None:
    async with serving() as server:
        start = await created(server, "a")
        for path in (
            f"{MAPS}?watch=1&fieldSelector=metadata.name%3Da&resourceVersion={start}",
            f"/api/v1/watch/namespaces/default/configmaps/a?resourceVersion={start}",
        ):
            async with server.watch(path) as sender:
                await created(server, f"b{abs(hash(path))}")
                await changed(server, "a", path=path)
                last = [event["object"]["data"] for event in [await sender.lines.get()]]
            assert last[0].get("path")


@virtual
async def test_the_path_of_one_object_shows_it_whatever_is_asked() -> None:
    async with serving() as server:
        await created(server, "a")
        assert (await server.get(f"{MAPS}/a?watch=1")).body["kind"] == "ConfigMap"


@virtual
async def test_a_watch_ends_when_its_time_is_up_with_a_bookmark_if_asked() -> None:
    async with serving() as server:
        start = await created(server, "a")
        query = f"watch=1&timeoutSeconds=10&resourceVersion={start}"
        began = asyncio.get_running_loop().time()
        assert await collected(server, f"{MAPS}?{query}") == []
        assert 10 <= asyncio.get_running_loop().time() - began < 11
        await server.create(f"{CORE}/secrets", {"metadata": {"name": "elsewhere"}})
        (mark,) = await collected(server, f"{MAPS}?{query}&allowWatchBookmarks=true")
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "ConfigMap"
        assert int(mark["object"]["metadata"]["resourceVersion"]) > int(start)


@virtual
async def test_a_long_watch_gets_a_bookmark_a_minute() -> None:
    async with serving() as server:
        path = f"{MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=300&resourceVersion=1"
        marks = await collected(server, path)
        assert {mark["type"] for mark in marks} == {"BOOKMARK"}
        assert 4 <= len(marks) <= 6


@virtual
async def test_without_a_time_a_watch_lasts_half_an_hour_to_an_hour() -> None:
    async with serving() as server:
        began = asyncio.get_running_loop().time()
        await collected(server, f"{MAPS}?watch=1")
        assert 1800 <= asyncio.get_running_loop().time() - began <= 3600


@virtual
async def test_initial_events_end_with_a_marked_bookmark() -> None:
    async with serving() as server:
        await created(server, "a")
        await created(server, "b")
        query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=1"
        query += "&resourceVersionMatch=NotOlderThan"
        first, second, mark, *_ = await collected(server, f"{MAPS}?{query}")
        assert [first["type"], second["type"], mark["type"]] == ["ADDED", "ADDED", "BOOKMARK"]
        metadata = mark["object"]["metadata"]
        blueprint = metadata["annotations"].pop("kubernetes.io/initial-events-list-blueprint")
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        empty = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []}
        assert json.loads(base64.b64decode(blueprint)) == empty, "clients make their list of it"
        assert int(metadata["resourceVersion"]) >= int(
            second["object"]["metadata"]["resourceVersion"]
        )
        none = await collected(server, f"{MAPS}?{query.replace('=true&allow', '=false&allow')}")
        assert [event["type"] for event in none] == ["BOOKMARK"]


@virtual
async def test_options_that_mean_nothing_for_a_watch_are_refused() -> None:
    async with serving() as server:
        for query in (
            "resourceVersionMatch=NotOlderThan",
            "sendInitialEvents=true&allowWatchBookmarks=true",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "resourceVersion=yesterday",
            "sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true",
        ):
            refused = await server.get(f"{MAPS}?watch=1&{query}")
            assert refused.status == 422, (query, refused.body)
            assert refused.body["reason"] == "Invalid"


@virtual
async def test_a_forgotten_past_is_reported_as_an_error_event() -> None:
    async with serving() as server:
        start = await created(server, "a")
        # Far enough that the server's own memory of recent events does not reach back.
        await created(server, "b")
        store = server.api.store
        async with serving(store) as later:
            await store.compact(await store.revision())
            (event,) = await collected(later, f"{MAPS}?watch=1&resourceVersion={start}")
        assert event["type"] == "ERROR"
        assert event["object"]["kind"] == "Status"
        assert event["object"]["code"] == 410
        assert event["object"]["reason"] == "Expired"
        assert event["object"]["message"].startswith(f"too old resource version: {start} (")


@virtual
async def test_what_happens_up_to_a_revision_of_the_future_is_not_reported() -> None:
    async with serving() as server:
        start = int(await created(server, "a"))
        async with server.watch(f"{MAPS}?watch=1&resourceVersion={start + 1}") as sender:
            await changed(server, "a", shown="no")
            await changed(server, "a", shown="yes")
            event = await sender.lines.get()
        assert event["object"]["data"] == {"shown": "yes"}


@virtual
async def test_a_watcher_that_takes_nothing_is_ended_not_buffered() -> None:
    class Stuck(MemorySender):
        """A peer whose connection is full."""

        def write(self, chunk: bytes) -> None:
            self.queued_bytes += len(chunk)

    async with serving() as server:
        start = await created(server, "a")
        answer = await server.answer("GET", f"{MAPS}?watch=1&resourceVersion={start}")
        assert isinstance(answer, Stream)
        stuck = Stuck()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(_ran(answer, stuck))
            for number in range(40):
                await changed(server, "a", big=str(number) * 300_000)
            await asyncio.wait_for(running, 5)
        assert stuck.queued_bytes < 32 << 20


async def _ran(stream: Stream, sender: MemorySender) -> None:
    await stream.run(sender)


@virtual
async def test_a_watch_of_a_kind_everywhere_sees_every_namespace() -> None:
    async with serving() as server:
        await server.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
        start = await created(server, "here")
        async with server.watch(f"/api/v1/configmaps?watch=1&resourceVersion={start}") as sender:
            await server.create("/api/v1/namespaces/other/configmaps", config_map("there"))
            await changed(server, "here", k="v")
            assert await seen(sender, 2) == [("ADDED", "there"), ("MODIFIED", "here")]


@virtual
async def test_only_the_first_table_of_a_watch_names_its_columns() -> None:
    async with serving() as server:
        await created(server, "a")
        answer = await server.answer(
            "GET",
            f"{MAPS}?watch=1&timeoutSeconds=1",
            headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
        )
        assert isinstance(answer, Stream)
        sender = MemorySender()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_ran(answer, sender))
            first = await sender.lines.get()
            await changed(server, "a", k="v")
            second = await sender.lines.get()
        assert [c["name"] for c in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:2] == ["a", 1]


@virtual
async def test_metadata_only_watches_carry_no_more() -> None:
    async with serving() as server:
        await created(server, "a")
        answer = await server.answer(
            "GET",
            f"{MAPS}?watch=1&timeoutSeconds=1",
            headers={"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
        )
        assert isinstance(answer, Stream)
        sender = MemorySender()
        await answer.run(sender)
        event = sender.lines.get_nowait()["object"]
        assert event["kind"] == "PartialObjectMetadata"
        assert event.keys() == {"kind", "apiVersion", "metadata"}
