"""An atomic batch: all of its requests are carried out, or none is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.store.base import Unavailable, Write
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import Server, serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.server.refusing import Except
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
BATCH = "/extensions/v1/atomic-batch"


def created(name: str, **more: Any) -> Object:
    return {"method": "POST", "path": MAPS, "body": config_map(name), **more}


def updated(obj: Object, value: str, **more: Any) -> Object:
    path = f"{MAPS}/{obj['metadata']['name']}"
    return {"method": "PUT", "path": path, "body": {**obj, "data": {"k": value}}, **more}


async def sent(server: Server, *requests: Object) -> list[Object]:
    reply = await server.create(BATCH, {"requests": list(requests)})
    assert reply.status == 200, reply
    answers: list[Object] = reply.body["answers"]
    return answers


async def names(server: Server) -> list[str]:
    found = (await server.get(MAPS)).body["items"]
    return [each["metadata"]["name"] for each in found if each["metadata"]["name"] in "abc"]


@virtual
async def test_what_is_written_together_follows_each_other_in_the_order_of_requests() -> None:
    async with serving() as server:
        old = (await server.create(MAPS, config_map("a"))).body
        metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        answers = await sent(
            server, created("c", quiet=True), updated(old, "1", accept=metadata), created("b")
        )
        assert [each["code"] for each in answers] == [204, 200, 201]
        assert "body" not in answers[0]
        assert answers[1]["body"]["kind"] == "PartialObjectMetadata"
        found = {n: (await server.get(f"{MAPS}/{n}")).body for n in "cab"}
        versions = [int(each["metadata"]["resourceVersion"]) for each in found.values()]
        assert versions == [versions[0], versions[0] + 1, versions[0] + 2]
        assert found["a"]["data"] == {"k": "1"}


@virtual
async def test_one_that_is_refused_takes_the_others_with_it() -> None:
    async with serving() as server:
        bad = {**created("b"), "body": {"metadata": {"name": "B!"}}}
        answers = await sent(server, created("a"), bad, created("c"))
        assert [each["code"] for each in answers] == [424, 422, 424]
        assert await names(server) == []


@virtual
async def test_one_whose_object_has_changed_gets_a_conflict_and_the_others_are_not_written() -> (
    None
):
    async with serving() as server:
        old = (await server.create(MAPS, config_map("a"))).body
        await server.put(f"{MAPS}/a", {**old, "data": {"k": "newer"}})
        answers = await sent(server, created("b"), updated(old, "mine"))
        assert [each["code"] for each in answers] == [424, 409]
        assert answers[1]["body"]["reason"] == "Conflict"
        answers = await sent(server, created("a"), created("b"))
        assert [each["body"]["reason"] for each in answers] == ["AlreadyExists", "FailedDependency"]
        assert await names(server) == ["a"]


class Contested(MemoryStore):
    """A store in which somebody else may be quicker."""

    contested = False

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        if self.contested:
            self.contested = False
            entry = await self.get(writes[-1].key)
            assert entry is not None
            await super().commit([Write(entry.key, entry.value)])
        return await super().commit(writes)


@virtual
async def test_a_conflict_at_the_last_moment_is_that_of_the_request_it_concerns() -> None:
    store = Contested("s")
    async with serving(store) as server:
        old = (await server.create(MAPS, config_map("a"))).body
        store.contested = True
        answers = await sent(server, created("b"), updated(old, "mine"))
        assert [each["code"] for each in answers] == [424, 409]
        assert await names(server) == ["a"]


@virtual
async def test_two_that_write_the_same_object_are_not_written_together() -> None:
    async with serving() as server:
        old = (await server.create(MAPS, config_map("a"))).body
        answers = await sent(server, updated(old, "1"), updated(old, "2"))
        assert [each["code"] for each in answers] == [424, 424]
        assert (await server.get(f"{MAPS}/a")).body["metadata"] == old["metadata"]


@virtual
async def test_one_that_changes_nothing_stops_nobody() -> None:
    async with serving() as server:
        old = (await server.create(MAPS, config_map("a", k="1"))).body
        answers = await sent(server, updated(old, "1"), created("b"))
        assert [each["code"] for each in answers] == [200, 201]
        answers = await sent(server, updated(old, "1"))
        assert [each["code"] for each in answers] == [200]


@virtual
async def test_each_part_is_authorized_for_itself() -> None:
    async with serving(authorizer=Except("create secrets")) as server:
        secret = {"method": "POST", "path": f"{CORE}/secrets", "body": {"metadata": {"name": "s"}}}
        answers = await sent(server, created("a"), secret)
        assert [each["code"] for each in answers] == [424, 403]
        assert await names(server) == []


class Full(MemoryStore):
    """A store that takes nothing any more."""

    full = False

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        if self.full:
            raise Unavailable("the disk is full")
        return await super().commit(writes)


@virtual
async def test_a_store_that_fails_fails_all_of_them() -> None:
    store = Full("s")
    async with serving(store) as server:
        store.full = True
        answers = await sent(server, created("a"), created("b"))
        assert [each["code"] for each in answers] == [503, 503]
        store.full = False
        assert await names(server) == []


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([], "without requests"),
        ([created("a")] * 33, "want at most 32"),
        ([{"method": "DELETE", "path": f"{MAPS}/a"}], "want one that changes something"),
        ([{"method": "POST", "path": "/version"}], "want a resource of this cluster"),
        ([{"method": "POST", "path": f"{CORE}/pods/p/eviction"}], "want an object or its status"),
        ([{"method": "PUT", "path": "/apis/g.io/v1/ks/k/scale"}], "want an object or its status"),
    ],
)
@virtual
async def test_what_is_no_atomic_batch_is_refused(requests: list[Object], message: str) -> None:
    async with serving() as server:
        reply = await server.create(BATCH, {"requests": requests})
        assert reply.status == 400
        assert message in reply.body["message"]
