"""Watches that share a stream: their readers cannot tell, whatever the line does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client, Selection, WriteOptions
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.informer import Informer, InformerFactory
from skerry.runtime.multiplex import MultiplexedWatches
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    AnswerStream,
    ConnectTimeout,
    Transport,
    TransportError,
)
from skerry.runtime.wrapping import WrappedTransport
from skerry.store.memory import MemoryStore
from tests.kit.chain.syncer_world import Switch
from tests.kit.server.harness import Server, serving
from tests.kit.sim.engine import request
from tests.kit.sim.faults import FaultyTransport, Rates
from tests.kit.sim.loop import run_virtual, virtual

MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
SHOP = Selection(namespace="default")


class Noting(WrappedTransport):
    """Notes what streams were asked for."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.asked: list[dict[str, Any]] = []
        self.watches: list[str] = []

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        if method == "POST":
            self.asked.append(orjson.loads(body))
        else:
            self.watches.append(path)
        async with super().stream(method, path, query, headers, body) as answer:
            yield answer


class Ordinary(WrappedTransport):
    """A server that has never heard of extensions."""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path.startswith("/extensions"):
            return Answer(404, {}, orjson.dumps(NotFound.path().status()))
        return await super().request(method, path, query, headers, body)


@dataclass
class Seen:
    """What an informer reported, checked for gaps as it comes."""

    informer: Informer
    versions: dict[str, str] = field(default_factory=dict)
    notified: int = 0

    def __post_init__(self) -> None:
        self.informer.add_handler(self._happened)

    def _happened(self, old: Object | None, new: Object | None) -> None:
        self.notified += 1
        name = (new or old or {})["metadata"]["name"]
        if old is None:
            assert name not in self.versions
        elif new is not None:
            assert old["metadata"]["resourceVersion"] == self.versions[name]
        if new is None:
            del self.versions[name]
        else:
            self.versions[name] = new["metadata"]["resourceVersion"]


@dataclass
class Shared:
    """A server, a line to it, and informers that share a stream."""

    server: Server
    store: MemoryStore
    line: Switch
    noting: Noting
    client: Client
    factory: InformerFactory
    watches: MultiplexedWatches

    def seen(self, gvr: GroupVersionResource, *, compact: bool = True) -> Seen:
        return Seen(self.factory.informer(gvr, SHOP, packed=True, compact=compact))

    async def put(self, gvr: GroupVersionResource, name: str, value: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap" if gvr == MAPS else "Secret",
            "metadata": {"name": name, "labels": {"value": value}},
            "data": {"k": "eHh4" * 99},
        }
        options = WriteOptions(field_manager="test")
        await self.client.patch(gvr, name, body, "default", kind="apply", options=options)

    async def agree(self, *all_seen: Seen) -> None:
        """Check that every informer holds exactly what the server has."""
        for seen in all_seen:
            items = (await self.client.list(seen.informer.gvr, SHOP)).items
            held = {obj["metadata"]["name"]: obj for obj in seen.informer.index.objects()}
            for item in items:
                item["metadata"].pop("managedFields", None)
            assert held == {item["metadata"]["name"]: item for item in items}
            assert seen.versions == {
                name: obj["metadata"]["resourceVersion"] for name, obj in held.items()
            }


@asynccontextmanager
async def shared(seed: int = 1, rates: Rates | None = None) -> AsyncIterator[Shared]:
    store, ids, clock = MemoryStore("one"), SeededIds(seed), LoopClock()
    async with serving(store) as server:
        direct = EmbeddedTransport(server.api.engine.handle, request)
        line = Switch(direct)
        noting = Noting(FaultyTransport(line, ids, rates or Rates(0, 0, 0, 0, 0)))
        far = Client(noting, clock=clock)
        watches = MultiplexedWatches(far, ids)
        factory = InformerFactory(far, ids=ids, source=watches)
        near = Client(direct, clock=clock, user_agent="test")
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watches.run()), tasks.create_task(factory.run())]
            yield Shared(server, store, line, noting, near, factory, watches)
            for task in running:
                task.cancel()


async def forget_history(world: Shared) -> None:
    """Have the server forget, as an hour and a restart would."""
    await world.store.compact(await world.store.revision())
    await world.server.api.dispatcher.start()


@virtual
async def test_informers_that_begin_together_share_one_stream() -> None:
    async with shared() as world:
        await world.put(MAPS, "a", "1")
        maps, secrets = world.seen(MAPS), world.seen(SECRETS, compact=False)
        await asyncio.sleep(1)
        await world.put(SECRETS, "s", "1")
        await world.put(MAPS, "a", "2")
        await world.client.delete(MAPS, "a", "default")
        await world.put(MAPS, "b", "1")
        await asyncio.sleep(1)
        await world.agree(maps)
        assert set(secrets.versions) == {"s"}
        assert len(world.noting.asked) == 1
        assert world.noting.watches == []


@virtual
async def test_a_broken_line_resumes_all_from_one_revision_and_reports_only_what_changed() -> None:
    async with shared() as world:
        for name in "abc":
            await world.put(MAPS, name, "1")
        maps, secrets = world.seen(MAPS), world.seen(SECRETS)
        await asyncio.sleep(1)
        notified = maps.notified
        await world.put(SECRETS, "s", "1")
        await asyncio.sleep(1)
        world.line.sever()
        await world.put(MAPS, "b", "2")
        await asyncio.sleep(60)
        world.line.restore()
        await asyncio.sleep(60)
        await world.agree(maps, secrets)
        assert maps.notified == notified + 1
        asked = world.noting.asked[-1]
        assert asked["resourceVersion"]
        assert all("resourceVersion" not in each for each in asked["watches"]), "one for all"
        assert not any(each.get("initial") for each in asked["watches"])


@virtual
async def test_a_silent_watch_knows_how_far_the_stream_has_read() -> None:
    async with shared() as world:
        maps, secrets = world.seen(MAPS), world.seen(SECRETS)
        await asyncio.sleep(1)
        await world.put(MAPS, "a", "1")
        await asyncio.sleep(0.1)
        assert maps.versions["a"] == secrets.informer.resource_version


@virtual
async def test_a_kind_that_is_added_reads_nothing_else_again() -> None:
    async with shared() as world:
        await world.put(MAPS, "a", "1")
        maps = world.seen(MAPS)
        await asyncio.sleep(1)
        notified = maps.notified
        await world.put(SECRETS, "s", "1")
        secrets = world.seen(SECRETS)
        await asyncio.sleep(1)
        await world.put(MAPS, "b", "1")
        await asyncio.sleep(1)
        await world.agree(maps, secrets)
        assert maps.notified == notified + 1
        first, added = world.noting.asked[-1]["watches"]
        assert "initial" not in first
        assert added["initial"] is True


@virtual
async def test_after_forgotten_history_only_what_changed_is_read_again() -> None:
    async with shared() as world:
        for name in "abcd":
            await world.put(MAPS, name, "1")
        maps = world.seen(MAPS)
        await asyncio.sleep(1)
        notified = maps.notified
        world.line.sever()
        await world.put(MAPS, "b", "2")
        await world.client.delete(MAPS, "c", "default")
        await forget_history(world)
        world.line.restore()
        await asyncio.sleep(60)
        await world.agree(maps)
        assert maps.notified == notified + 2
        assert world.noting.asked[-1]["watches"][0]["knownResourceVersion"]


@virtual
async def test_what_one_watch_is_refused_is_no_matter_of_the_others() -> None:
    async with shared() as world:
        unknown = GroupVersionResource("example.org", "v1", "widgets")
        maps = world.seen(MAPS)
        lost = world.factory.informer(unknown)
        await asyncio.sleep(5)
        await world.put(MAPS, "a", "1")
        await asyncio.sleep(1)
        await world.agree(maps)
        assert not lost.synced.is_set()


@virtual
async def test_a_patch_of_what_is_not_held_is_answered_by_reading_everything() -> None:
    async with shared() as world:
        await world.put(MAPS, "a", "1")
        maps = world.seen(MAPS)
        await asyncio.sleep(1)
        held = maps.informer.index
        key = next(iter(held))
        stale = held.get(key)
        assert stale is not None
        held.put(key, {**stale, "metadata": {**stale["metadata"], "resourceVersion": "1"}})
        maps.versions["a"] = "1"
        await world.put(MAPS, "a", "2")
        await asyncio.sleep(5)
        await world.agree(maps)


class Ending(WrappedTransport):
    """A line to a server of many readers, which ends once, politely or not.

    Where it is *crowded* the next connection after that is not completed in time.
    """

    def __init__(self, inner: Transport, *, politely: bool, crowded: bool = False) -> None:
        super().__init__(inner)
        self.opened: list[float] = []
        self._politely = politely
        self._crowded = crowded

    async def read(self, seed: int) -> None:
        """Follow a type over this line until cancelled."""
        ids, client = SeededIds(seed), Client(self, clock=LoopClock())
        watches = MultiplexedWatches(client, ids)
        factory = InformerFactory(client, ids=ids, source=watches)
        factory.informer(MAPS, SHOP)
        await asyncio.gather(watches.run(), factory.run())

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        self.opened.append(asyncio.get_running_loop().time())
        if self._crowded and len(self.opened) == 2:
            raise ConnectTimeout("cannot connect: timed out")
        async with super().stream(method, path, query, headers, body) as answer:
            yield Spreading(answer, ends=len(self.opened) == 1, politely=self._politely)


class Spreading:
    """A stream that asks its readers to spread over 40 seconds, and may end after five."""

    def __init__(self, inner: AnswerStream, *, ends: bool, politely: bool) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner, self._ends, self._politely = inner, ends, politely

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with suppress(TimeoutError):
            async with asyncio.timeout(5 if self._ends else None):
                async for chunk in self._inner:
                    for line in chunk.splitlines():
                        said = orjson.loads(line)
                        if "watch" not in said:
                            said["object"]["returnSeconds"] = 40
                        yield orjson.dumps(said) + b"\n"
        if not self._politely:
            raise TransportError("killed")


@virtual
@pytest.mark.parametrize("politely", [True, False])
async def test_readers_of_a_server_that_ends_come_back_one_after_the_other(politely: bool) -> None:
    async with serving(MemoryStore("one")) as server, asyncio.TaskGroup() as tasks:
        direct = EmbeddedTransport(server.api.engine.handle, request)
        lines = [Ending(direct, politely=politely) for _ in range(40)]
        running = [tasks.create_task(line.read(seed)) for seed, line in enumerate(lines)]
        await asyncio.sleep(60)
        waited = sorted(line.opened[1] - line.opened[0] - 5 for line in lines)
        assert waited[-1] < 41
        assert [sum(at <= each < at + 10 for each in waited) > 3 for at in (0, 10, 20, 30)] == [
            True
        ] * 4
        for task in running:
            task.cancel()


@virtual
async def test_who_had_a_turn_and_was_not_served_takes_the_next_one_soon() -> None:
    async with serving(MemoryStore("one")) as server, asyncio.TaskGroup() as tasks:
        direct = EmbeddedTransport(server.api.engine.handle, request)
        lines = [Ending(direct, politely=False, crowded=True) for _ in range(30)]
        running = [tasks.create_task(line.read(seed)) for seed, line in enumerate(lines)]
        await asyncio.sleep(90)
        first = [line.opened[1] - line.opened[0] for line in lines]
        again = [line.opened[2] - line.opened[1] for line in lines]
        assert max(first) > 30, "the first turn is anywhere in forty seconds"
        assert max(again) < 16
        assert max(again) > 8, "they are spread nevertheless"
        assert sum(each > 14 for each in again) < 10, "and do not meet at the end of that time"
        for task in running:
            task.cancel()


@virtual
async def test_a_server_without_extensions_is_watched_in_the_ordinary_way() -> None:
    async with serving() as server:
        direct = EmbeddedTransport(server.api.engine.handle, request)
        noting = Noting(Ordinary(direct))
        client, ids = Client(noting, clock=LoopClock()), SeededIds(1)
        watches = MultiplexedWatches(client, ids)
        factory = InformerFactory(client, ids=ids, source=watches)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watches.run()), tasks.create_task(factory.run())]
            maps = Seen(factory.informer(MAPS, SHOP, packed=True, compact=True))
            await asyncio.sleep(1)
            near = Client(direct, clock=LoopClock())
            await near.create(MAPS, {"metadata": {"name": "a"}}, "default")
            await asyncio.sleep(1)
            assert set(maps.versions) == {"a"}
            assert noting.asked == []
            assert noting.watches
            for task in running:
                task.cancel()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "cut", "forget", "wait", "join"]),
        st.sampled_from([MAPS, SECRETS]),
        st.sampled_from("abc"),
    ),
    max_size=20,
)


async def step(world: Shared, number: int, what: str, gvr: GroupVersionResource, name: str) -> None:
    if what == "put":
        await world.put(gvr, name, str(number))
    elif what == "delete":
        with suppress(NotFound):
            await world.client.delete(gvr, name, "default")
    elif what == "cut":
        world.line.sever()
        await asyncio.sleep(number % 3)
        world.line.restore()
    elif what == "forget":
        await forget_history(world)
    elif what == "wait":
        await asyncio.sleep(1.5 * (number % 4))


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1000), faulty=st.booleans())
def test_whatever_happens_informers_end_up_with_what_the_server_has(
    steps: list[tuple[str, GroupVersionResource, str]], seed: int, faulty: bool
) -> None:
    async def story() -> None:
        rates = Rates() if faulty else Rates(0, 0, 0, 0, 0)
        async with shared(seed, rates) as world:
            all_seen = [world.seen(MAPS), world.seen(SECRETS)]
            for number, (what, gvr, name) in enumerate(steps):
                if what == "join" and len(all_seen) == 2:
                    all_seen.append(world.seen(ACCOUNTS))
                await step(world, number, what, gvr, name)
            inner = world.noting._inner
            assert isinstance(inner, FaultyTransport)
            inner.heal()
            await asyncio.sleep(300)
            await world.agree(*all_seen)

    run_virtual(story())
