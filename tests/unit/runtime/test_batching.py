"""Quiet writes travel together; whoever sends one cannot tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import orjson
import pytest

from skerry.api.errors import AlreadyExists, Conflict, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.runtime.batching import BatchingTransport
from skerry.runtime.client import Client, DeleteOptions
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.facts import ServerFacts
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from skerry.runtime.wrapping import PacedTransport, WrappedTransport
from tests.kit.answering import AnsweringTransport
from tests.kit.server.harness import serving
from tests.kit.sim.engine import request
from tests.kit.sim.loop import virtual

MAPS = GroupVersionResource("", "v1", "configmaps")


class Noting(WrappedTransport):
    """Notes the requests that pass; loses answers on demand."""

    def __init__(self, inner: EmbeddedTransport) -> None:
        super().__init__(inner)
        self.passed: list[str] = []
        self.losing = False

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.passed.append(f"{method} {path}")
        await asyncio.sleep(0.01)
        answer = await super().request(method, path, query, headers, body)
        if self.losing:
            raise TransportError("lost")
        return answer


@asynccontextmanager
async def batching(gather_seconds: float = 0.02) -> AsyncIterator[tuple[Client, Noting]]:
    async with serving() as server:
        noting = Noting(EmbeddedTransport(server.api.engine.handle, request))
        clock, facts = LoopClock(), ServerFacts()
        transport = BatchingTransport(noting, clock, facts, gather_seconds=gather_seconds)
        client = Client(transport, clock=clock, facts=facts)
        for number in range(3):
            await client.create(MAPS, {"metadata": {"name": f"map-{number}"}}, "default")
        await client.extensions()
        noting.passed.clear()
        yield client, noting


async def patched(client: Client, name: str, value: str, *, quiet: bool = True) -> object:
    return await client.patch(MAPS, name, {"data": {"k": value}}, "default", quiet=quiet)


@virtual
async def test_writes_of_one_moment_are_one_request_and_each_gets_its_own_answer() -> None:
    async with batching() as (client, noting):
        names = ("map-0", "map-1", "nobody", "map-2")
        answers = await asyncio.gather(
            *(patched(client, name, "1") for name in names), return_exceptions=True
        )
        assert noting.passed == ["POST /extensions/v1/batch"]
        assert [type(answer) for answer in answers] == [dict, dict, NotFound, dict]
        for name in ("map-0", "map-1", "map-2"):
            assert (await client.get(MAPS, name, "default"))["data"] == {"k": "1"}


@virtual
async def test_writes_of_every_kind_travel_together_and_each_has_its_answer() -> None:
    async with batching() as (client, noting):
        answers = await asyncio.gather(
            patched(client, "map-0", "1"),
            client.create(MAPS, {"metadata": {"name": "map-3"}}, "default", quiet=True),
            client.create(MAPS, {"metadata": {"name": "map-1"}}, "default", quiet=True),
            client.delete(MAPS, "map-2", "default", DeleteOptions(uid="other"), quiet=True),
            return_exceptions=True,
        )
        assert noting.passed == ["POST /extensions/v1/batch"]
        assert [type(answer) for answer in answers] == [dict, dict, AlreadyExists, Conflict]
        await client.get(MAPS, "map-3", "default")


@virtual
async def test_where_nobody_waits_for_company_what_comes_meanwhile_goes_together() -> None:
    async with batching(gather_seconds=0) as (client, noting):
        await asyncio.gather(*(patched(client, f"map-{number}", "1") for number in range(3)))
        first = "PATCH /api/v1/namespaces/default/configmaps/map-0"
        assert noting.passed == [first, "POST /extensions/v1/batch"]


@virtual
async def test_a_write_whose_answer_is_wanted_goes_alone() -> None:
    async with batching() as (client, noting):
        answer = await patched(client, "map-0", "1", quiet=False)
        assert isinstance(answer, dict)
        assert answer["data"] == {"k": "1"}
        assert noting.passed == ["PATCH /api/v1/namespaces/default/configmaps/map-0"]


@virtual
async def test_a_write_without_company_goes_as_it_is_and_brings_no_body_back() -> None:
    async with batching() as (client, noting):
        assert await patched(client, "map-0", "1") == {}
        assert noting.passed == ["PATCH /api/v1/namespaces/default/configmaps/map-0"]
        with pytest.raises(NotFound, match='configmaps "nobody" not found'):
            await patched(client, "nobody", "1")


class Clusters(AnsweringTransport):
    """A server of clusters that takes batches, and notes which came for which."""

    def __init__(self) -> None:
        self.passed: list[tuple[str, int]] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        parts = orjson.loads(body).get("requests")
        self.passed.append((path, len(parts or [body])))
        if parts is None:
            return Answer(200, {}, b"")
        assert all(part["path"].startswith("/api/v1/namespaces/default/") for part in parts)
        return Answer(200, {}, orjson.dumps({"answers": [{"code": 200} for _ in parts]}))


@virtual
async def test_writes_to_several_clusters_travel_with_those_to_the_same() -> None:
    clusters, clock = Clusters(), LoopClock()
    facts = ServerFacts(extensions={"batch": "/extensions/v1/batch"})
    client = Client(BatchingTransport(clusters, clock, facts), clock=clock, facts=facts)
    places = ("a", "b", "root:c", "a", "b", "a")
    for _ in range(2):
        clusters.passed.clear()
        await asyncio.gather(
            *(patched(client.for_cluster(place), f"map-{n}", "1") for n, place in enumerate(places))
        )
        assert sorted(clusters.passed) == [
            ("/clusters/a/extensions/v1/batch", 3),
            ("/clusters/b/extensions/v1/batch", 2),
            ("/clusters/root:c/api/v1/namespaces/default/configmaps/map-2", 1),
        ]


class Refusing(Clusters):
    """One of its clusters, ``gone``, answers as prepared and has nothing of what is written."""

    def __init__(self, batch: int, *, question: int = 404, at_root: int = 404) -> None:
        super().__init__()
        self._codes = {"/extensions/v1/batch": batch, "/extensions": question}
        self._at_root = at_root
        self.offers: Object = {"extensions": [{"name": "batch", "path": "/extensions/v1/batch"}]}

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        await asyncio.sleep(0.01)
        _, gone, rest = path.partition("/clusters/gone")
        code = self._codes.get(rest, 404) if gone else 200
        if path == "/clusters/root/extensions":
            code = self._at_root
        if code == 200 and not path.endswith("/extensions"):
            return await super().request(method, path, query, headers, body)
        self.passed.append((path, 1))
        text = orjson.dumps(self.offers) if code == 200 else f"no {rest}".encode()
        return Answer(code, {}, text)


def refusing(server: Refusing) -> tuple[Client, ServerFacts]:
    clock, facts = LoopClock(), ServerFacts(extensions={"batch": "/extensions/v1/batch"})
    return Client(BatchingTransport(server, clock, facts), clock=clock, facts=facts), facts


async def written(client: Client, *places: str) -> list[object]:
    writes = (patched(client.for_cluster(place), f"map-{n}", "1") for n, place in enumerate(places))
    return await asyncio.gather(*writes, return_exceptions=True)


REFUSALS = pytest.mark.parametrize(
    "server",
    [
        pytest.param(Refusing(404, question=200), id="the cluster offers it"),
        pytest.param(Refusing(404, at_root=200), id="others offer it"),
        pytest.param(Refusing(404, at_root=403), id="nobody says"),
        pytest.param(Refusing(404, question=500), id="no answer"),
        pytest.param(Refusing(403), id="not for this cluster"),
    ],
)


@REFUSALS
@virtual
async def test_a_cluster_that_takes_no_batch_keeps_nobody_else_from_them(server: Refusing) -> None:
    client, facts = refusing(server)
    server.passed.clear()
    answers = await written(client, "gone", "b", "gone", "b")
    assert [type(answer) for answer in answers] == [NotFound, dict, NotFound, dict]
    assert "map-0" in str(answers[0]), "each part has an answer of its own"
    assert "map-2" in str(answers[2])
    assert facts.extensions == {"batch": "/extensions/v1/batch"}
    server.passed.clear()
    await written(client, "b", "b")
    assert server.passed == [("/clusters/b/extensions/v1/batch", 2)]


@pytest.mark.parametrize(
    ("server", "left"), [(Refusing(404), None), (Refusing(405), None)], ids=["404", "405"]
)
@virtual
async def test_a_server_that_no_longer_takes_batches_carries_all_out_one_by_one(
    server: Refusing, left: object
) -> None:
    client, facts = refusing(server)
    server.passed.clear()
    answers = await written(client, "gone", "gone")
    assert [type(answer) for answer in answers] == [NotFound, NotFound]
    assert facts.extensions is left
    await written(client, "b", "b")
    assert [path.rpartition("/")[2] for path, _ in server.passed[-2:]] == ["map-0", "map-1"]


@virtual
async def test_another_version_of_the_server_is_believed() -> None:
    server = Refusing(404, question=200)
    server.offers = {"extensions": [{"name": "ca-bundle", "path": "/x"}]}
    client, facts = refusing(server)
    await written(client, "gone", "gone")
    assert facts.extensions == {"ca-bundle": "/x"}


@virtual
async def test_what_waits_while_batches_are_given_up_goes_as_it_is() -> None:
    server = Refusing(405)
    client, facts = refusing(server)
    waiting = asyncio.create_task(written(client, "b", "b"))
    await asyncio.sleep(0.001)
    facts.extensions = None
    assert [type(answer) for answer in await waiting] == [dict, dict]
    assert [count for _, count in server.passed] == [1, 1]


@virtual
async def test_nothing_is_kept_of_a_cluster_once_its_writes_are_answered_or_given_up() -> None:
    async with batching() as (client, noting):
        lines = cast(BatchingTransport, client.transport)._lines
        await asyncio.gather(patched(client, "map-0", "1"), patched(client, "map-1", "1"))
        assert not lines, "after success"
        noting.losing = True
        writes = (patched(client, f"map-{number}", "1") for number in range(2))
        await asyncio.gather(*writes, return_exceptions=True)
        assert not lines, "after failure"
        noting.losing = False
        for moment in (0.0, 0.005, 0.025):  # before its turn, gathering, and under way
            tasks = [asyncio.create_task(patched(client, f"map-{n}", "2")) for n in range(3)]
            await asyncio.sleep(moment)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert not lines, f"given up after {moment} s"


@virtual
async def test_a_line_outlives_whoever_opened_it_and_was_given_up() -> None:
    async with batching() as (client, _):
        lines = cast(BatchingTransport, client.transport)._lines
        first = asyncio.create_task(patched(client, "map-0", "1"))
        second = asyncio.create_task(patched(client, "map-1", "1"))
        await asyncio.sleep(0.005)
        first.cancel()
        await asyncio.wait([first])
        assert list(lines) == [""]
        await second
        assert not lines


@virtual
async def test_writes_through_a_view_go_alone() -> None:
    clusters, clock = Clusters(), LoopClock()
    facts = ServerFacts(extensions={"batch": "/extensions/v1/batch"})
    view = Client(BatchingTransport(clusters, clock, facts), clock=clock, facts=facts).at(
        "/services/apiexport/root/export", "a"
    )
    await asyncio.gather(*(patched(view, f"map-{number}", "1") for number in range(2)))
    assert [count for _, count in clusters.passed] == [1, 1]


@virtual
async def test_a_server_that_takes_no_batches_gets_none() -> None:
    async with batching() as (client, noting):
        client.facts.extensions = {}
        await asyncio.gather(patched(client, "map-0", "1"), patched(client, "map-1", "1"))
        assert len(noting.passed) == 2


@virtual
async def test_a_lost_answer_is_one_for_everybody_who_sent_something() -> None:
    async with batching() as (client, noting):
        noting.losing = True
        writes = (patched(client, f"map-{number}", "1") for number in range(3))
        answers = await asyncio.gather(*writes, return_exceptions=True)
        assert all(isinstance(answer, TransportError) for answer in answers)
        noting.losing = False
        await patched(client, "map-0", "2")


@virtual
async def test_whoever_is_given_up_leaves_the_others_without_an_answer_not_waiting() -> None:
    async with batching() as (client, _):
        first = asyncio.create_task(patched(client, "map-0", "1"))
        second = asyncio.create_task(patched(client, "map-1", "1"))
        await asyncio.sleep(0.025)  # the first is sending for both
        first.cancel()
        with pytest.raises(TransportError):
            await second
        third = asyncio.create_task(patched(client, "map-1", "3"))
        fourth = asyncio.create_task(patched(client, "map-2", "4"))
        await asyncio.sleep(0.005)
        third.cancel()
        await fourth
        assert (await client.get(MAPS, "map-2", "default"))["data"] == {"k": "4"}


@virtual
async def test_while_one_batch_is_under_way_the_next_one_gathers() -> None:
    async with batching() as (client, noting):

        async def later(number: int) -> None:
            await asyncio.sleep(0.025)
            await patched(client, f"map-{number}", "2")

        await asyncio.gather(patched(client, "map-0", "1"), later(1), later(2))
        assert len(noting.passed) == 2


@virtual
async def test_a_paced_transport_spreads_what_goes_beyond_the_burst() -> None:
    async with serving() as server:
        clock = LoopClock()
        inner = EmbeddedTransport(server.api.engine.handle, request)
        paced = PacedTransport(inner, clock, qps=2.0, burst=3)
        began = clock.monotonic()
        for _ in range(7):
            await paced.request("GET", "/version")
        assert clock.monotonic() - began == pytest.approx(2.0)
