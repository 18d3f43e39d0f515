"""Several watches in one stream: each as it would be alone, all from one revision."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from skerry.api.errors import Forbidden
from skerry.api.objects import Object
from skerry.logic.machinery.patch.json_patch import apply_json_patch
from skerry.server.http.message import Response, Stream
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import MemorySender, Server, serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.server.refusing import Except
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
SECRETS = f"{CORE}/secrets"
WATCH = "/extensions/v1/watch"
MAPS_WATCH: Object = {"id": "maps", "version": "v1", "resource": "configmaps"}
SECRETS_WATCH: Object = {"id": "secrets", "version": "v1", "resource": "secrets"}


async def ran(answer: Stream, sender: MemorySender) -> None:
    await answer.run(sender)


@contextlib.asynccontextmanager
async def streaming(server: Server, *watches: Object, **terms: Any) -> AsyncIterator[MemorySender]:
    answer = await server.answer("POST", WATCH, {"watches": list(watches), **terms})
    assert isinstance(answer, Stream), answer
    sender = MemorySender()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ran(answer, sender))
        try:
            yield sender
        finally:
            running.cancel()


async def received(sender: MemorySender, count: int) -> list[tuple[str, str, str]]:
    events = [await sender.lines.get() for _ in range(count)]
    return [
        (e.get("watch", ""), e["type"], e["object"].get("metadata", {}).get("name", ""))
        for e in events
    ]


async def bookmark(sender: MemorySender) -> Object:
    """Read on to the line that says that all have caught up."""
    while True:
        event: Object = await sender.lines.get()
        if "watch" not in event:
            assert event["type"] == "BOOKMARK", event
            return event


async def until_caught_up(sender: MemorySender) -> str:
    """Read on to the line that says so; return its revision."""
    return str((await bookmark(sender))["object"]["metadata"]["resourceVersion"])


@virtual
async def test_states_come_first_each_with_its_end_then_one_revision_for_all() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("a"))
        await server.create(SECRETS, {"metadata": {"name": "s"}})
        maps = {**MAPS_WATCH, "namespace": "default"}
        async with streaming(server, maps, SECRETS_WATCH) as sender:
            assert await received(sender, 5) == [
                ("maps", "ADDED", "a"),
                ("maps", "BOOKMARK", ""),
                ("secrets", "ADDED", "s"),
                ("secrets", "BOOKMARK", ""),
                ("", "BOOKMARK", ""),
            ]


@virtual
async def test_changes_of_all_watches_come_in_the_order_they_happened() -> None:
    async with (
        serving() as server,
        streaming(server, MAPS_WATCH, SECRETS_WATCH) as sender,
    ):
        await until_caught_up(sender)
        await server.create(SECRETS, {"metadata": {"name": "one"}})
        await server.create(MAPS, config_map("two"))
        await server.delete(f"{SECRETS}/one")
        assert await received(sender, 3) == [
            ("secrets", "ADDED", "one"),
            ("maps", "ADDED", "two"),
            ("secrets", "DELETED", "one"),
        ]


@virtual
async def test_all_watches_resume_from_one_revision_and_a_new_one_begins_with_its_state() -> None:
    async with serving() as server:
        async with streaming(server, MAPS_WATCH) as sender:
            revision = await until_caught_up(sender)
        await server.create(SECRETS, {"metadata": {"name": "s"}})
        await server.create(MAPS, config_map("missed"))
        added = {**SECRETS_WATCH, "initial": True}
        async with streaming(server, MAPS_WATCH, added, resourceVersion=revision) as sender:
            assert await received(sender, 4) == [
                ("maps", "ADDED", "missed"),
                ("secrets", "ADDED", "s"),
                ("secrets", "BOOKMARK", ""),
                ("", "BOOKMARK", ""),
            ]


@virtual
async def test_a_compact_watch_reports_differences_to_what_was_reported_before() -> None:
    async with serving() as server:
        await server.create(MAPS, {**config_map("a"), "data": {"large": "x" * 2000}})
        async with streaming(server, {**MAPS_WATCH, "compact": True}) as sender:
            event = await sender.lines.get()
            while event["object"]["metadata"]["name"] != "a":
                event = await sender.lines.get()
            held = event["object"]
            assert "managedFields" not in held["metadata"]
            await until_caught_up(sender)
            await server.patch(f"{MAPS}/a", {"metadata": {"annotations": {"k": "v"}}})
            event = await sender.lines.get()
            patched = event["object"]
            assert event["type"] == "PATCHED"
            assert len(str(event)) < 400
            assert patched["from"] == held["metadata"]["resourceVersion"]
            made = apply_json_patch(held, patched["patch"])
            made["metadata"]["resourceVersion"] = patched["metadata"]["resourceVersion"]
            live = (await server.get(f"{MAPS}/a")).body
            del live["metadata"]["managedFields"]
            assert made == live
            await server.delete(f"{MAPS}/a")
            event = await sender.lines.get()
            assert event["type"] == "DELETED"
            assert event["object"]["metadata"]["uid"] == live["metadata"]["uid"]
            assert "data" not in event["object"]


@virtual
async def test_a_forgotten_revision_ends_one_watch_and_what_is_known_is_reported_by_name() -> None:
    store = MemoryStore("one")
    async with serving(store) as server:
        await server.create(MAPS, config_map("kept"))
        await server.create(MAPS, config_map("changed"))
        async with streaming(server, {**MAPS_WATCH, "namespace": "default"}) as sender:
            revision = await until_caught_up(sender)
        await server.patch(f"{MAPS}/changed", {"data": {"k": "v"}})
        await store.compact(await store.revision())
        await server.api.dispatcher.start()  # as after a restart
        mine = {**MAPS_WATCH, "namespace": "default"}
        old = {**mine, "resourceVersion": revision}
        async with streaming(server, old, SECRETS_WATCH) as sender:
            gone = await sender.lines.get()
            assert (gone["watch"], gone["type"], gone["object"]["code"]) == ("maps", "ERROR", 410)
            assert (await received(sender, 1))[0][:2] == ("secrets", "BOOKMARK")
        known = {**mine, "initial": True, "knownResourceVersion": revision}
        async with streaming(server, known, store="one") as sender:
            assert await received(sender, 1) == [("maps", "ADDED", "changed")]
            unchanged = await sender.lines.get()
            assert unchanged["type"] == "UNCHANGED"
            assert unchanged["object"] == {"names": [["default", "kept"]]}
        async with streaming(server, known, store="another") as sender:
            assert await received(sender, 2) == [
                ("maps", "ADDED", "changed"),
                ("maps", "ADDED", "kept"),
            ]


@virtual
async def test_what_may_not_be_watched_or_does_not_exist_fails_alone() -> None:
    unknown = {"id": "widgets", "group": "example.org", "version": "v1", "resource": "widgets"}
    wrong = {**MAPS_WATCH, "id": "wrong", "fieldSelector": "spec.nothing=1"}
    async with (
        serving(authorizer=Except("watch secrets")) as server,
        streaming(server, SECRETS_WATCH, unknown, wrong, MAPS_WATCH) as sender,
    ):
        refused = [await sender.lines.get() for _ in range(3)]
        assert [(e["watch"], e["type"], e["object"]["code"]) for e in refused] == [
            ("secrets", "ERROR", 403),
            ("widgets", "ERROR", 404),
            ("wrong", "ERROR", 400),
        ]
        await until_caught_up(sender)
        await server.create(MAPS, config_map("a"))
        assert await received(sender, 1) == [("maps", "ADDED", "a")]


@virtual
async def test_a_right_taken_away_ends_that_watch_at_once_and_no_other() -> None:
    rights = Except()
    async with (
        serving(authorizer=rights) as server,
        streaming(server, SECRETS_WATCH, MAPS_WATCH) as sender,
    ):
        await until_caught_up(sender)
        rights.refused.add("watch secrets")
        server.api.engine.streams.recheck()
        error = await sender.lines.get()
        assert (error["watch"], error["type"]) == ("secrets", "ERROR")
        assert error["object"]["reason"] == Forbidden.reason
        await server.create(SECRETS, {"metadata": {"name": "hidden"}})
        await server.create(MAPS, config_map("seen"))
        assert await received(sender, 1) == [("maps", "ADDED", "seen")]


@virtual
async def test_a_right_taken_away_while_the_state_is_reported_ends_the_watch_too() -> None:
    class Slow(MemorySender):
        going_on = asyncio.Event()

        async def drain(self) -> None:
            await self.going_on.wait()

    rights = Except()
    async with serving(authorizer=rights) as server:
        await server.create(SECRETS, {"metadata": {"name": "s"}})
        answer = await server.answer("POST", WATCH, {"watches": [SECRETS_WATCH, MAPS_WATCH]})
        assert isinstance(answer, Stream)
        sender = Slow()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(ran(answer, sender))
            assert await received(sender, 1) == [("secrets", "ADDED", "s")]
            rights.refused.add("watch secrets")
            server.api.engine.streams.recheck()
            sender.going_on.set()
            assert await received(sender, 1) == [("secrets", "ERROR", "")]
            await until_caught_up(sender)
            await server.create(SECRETS, {"metadata": {"name": "hidden"}})
            await server.create(MAPS, config_map("seen"))
            assert await received(sender, 1) == [("maps", "ADDED", "seen")]
            running.cancel()


@virtual
async def test_how_far_it_has_read_is_reported_now_and_then_but_not_in_vain() -> None:
    async with serving() as server, streaming(server, SECRETS_WATCH, bookmarkSeconds=10) as sender:
        start = await until_caught_up(sender)
        await asyncio.sleep(35)
        assert sender.lines.empty()
        await server.create(MAPS, config_map("elsewhere"))
        await asyncio.sleep(35)
        assert sender.lines.qsize() == 1
        assert int(await until_caught_up(sender)) > int(start)


@virtual
async def test_many_readers_are_asked_to_come_back_one_after_the_other() -> None:
    async with serving() as server, contextlib.AsyncExitStack() as stack:
        few = await stack.enter_async_context(streaming(server, SECRETS_WATCH))
        assert "returnSeconds" not in (await bookmark(few))["object"]
        for _ in range(340):
            last = await stack.enter_async_context(streaming(server, SECRETS_WATCH))
            await bookmark(last)
        last = await stack.enter_async_context(streaming(server, SECRETS_WATCH))
        assert (await bookmark(last))["object"]["returnSeconds"] == pytest.approx(2.0)


@virtual
async def test_a_packed_stream_can_be_read_line_by_line_and_rests_when_idle() -> None:
    class Packed(MemorySender):
        packed = b""

        def write(self, chunk: bytes) -> None:
            self.packed += chunk

    def unpacked(packed: bytes) -> list[bytes]:
        text = b""
        while packed:
            member = zlib.decompressobj(wbits=31)
            text += member.decompress(packed)
            packed = member.unused_data
        return text.splitlines()

    def ended(packed: bytes) -> bool:
        member = zlib.decompressobj(wbits=31)
        member.decompress(packed)
        return member.eof and not member.unused_data

    async with serving() as server:
        terms = {"watches": [MAPS_WATCH], "bookmarkSeconds": 10}
        answer = await server.answer("POST", WATCH, terms, headers={"accept-encoding": "gzip"})
        assert isinstance(answer, Stream)
        assert ("Content-Encoding", "gzip") in tuple(answer.headers)
        sender = Packed()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(ran(answer, sender))
            await asyncio.sleep(1)
            began = len(unpacked(sender.packed))
            assert ended(sender.packed), "nothing is remembered of what was packed"
            for name in "abc":
                await server.create(MAPS, config_map(name))
                await asyncio.sleep(25)
            assert len(unpacked(sender.packed)) == began + 6, "three objects, three bookmarks"
            running.cancel()


@virtual
async def test_a_request_that_makes_no_sense_is_refused_as_a_whole() -> None:
    async with serving() as server:
        wrong: tuple[Any, ...] = (
            {"watches": []},
            {"watches": [MAPS_WATCH, MAPS_WATCH]},
            {"watches": [{"id": "x"}]},
            {"watches": [MAPS_WATCH], "resourceVersion": "new"},
            [],
        )
        for terms in wrong:
            answer = await server.answer("POST", WATCH, terms)
            assert isinstance(answer, Response)
            assert answer.status == 400, terms
        assert (await server.get(WATCH)).status == 405


@virtual
async def test_extensions_are_found_and_are_no_resources() -> None:
    async with serving() as server:
        found = (await server.get("/extensions")).body["extensions"]
        assert {each["name"]: each["path"] for each in found} == {
            "multiplexed-watch": WATCH,
            "batch": "/extensions/v1/batch",
            "atomic-batch": "/extensions/v1/atomic-batch",
        }
        assert "/extensions" in (await server.get("/")).body["paths"]
