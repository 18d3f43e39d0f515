"""A batch: each request as if it had come alone, all in one."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from skerry.api.objects import Object
from skerry.kit.clock import SystemClock
from skerry.server.batch import Batches
from skerry.server.catalogue import TypeSet
from skerry.server.extensions import Visit
from skerry.server.http.message import Answer, Request, Response, Stream
from tests.kit.server.harness import ADMIN, MemorySender, Server, serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.server.refusing import Except
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"
BATCH = "/extensions/v1/batch"
MERGE = "application/merge-patch+json"


def patch(name: str, value: str, **more: Any) -> Object:
    body = {"data": {"k": value}}
    return {
        "method": "PATCH",
        "path": f"{MAPS}/{name}",
        "contentType": MERGE,
        "body": body,
        **more,
    }


async def sent(server: Server, *requests: Object) -> list[Object]:
    answer = await server.answer("POST", BATCH, {"requests": list(requests)})
    assert isinstance(answer, Stream), answer
    sender = MemorySender()
    await answer.run(sender)
    answers: list[Object] = sender.lines.get_nowait()["answers"]
    return answers


@virtual
async def test_answers_come_in_order_and_one_failure_is_nobody_elses() -> None:
    async with serving() as server:
        for name in "ac":
            await server.create(MAPS, config_map(name))
        answers = await sent(server, patch("a", "1"), patch("b", "2"), patch("c", "3", quiet=True))
        assert [answer["code"] for answer in answers] == [200, 404, 204]
        assert answers[0]["body"]["data"] == {"k": "1"}
        assert answers[1]["body"]["message"] == 'configmaps "b" not found'
        assert "body" not in answers[2]
        assert (await server.get(f"{MAPS}/c")).body["data"] == {"k": "3"}


@virtual
async def test_each_part_is_authorized_for_itself() -> None:
    async with serving(authorizer=Except("create secrets")) as server:
        await server.create(MAPS, config_map("a"))
        secret = {"method": "POST", "path": f"{CORE}/secrets", "body": {"metadata": {"name": "s"}}}
        answers = await sent(server, secret, patch("a", "1"))
        assert [answer["code"] for answer in answers] == [403, 200]


@virtual
async def test_names_may_be_quoted_as_in_any_url() -> None:
    async with serving() as server:
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        await server.create(path, {"metadata": {"name": "system:x"}, "rules": []})
        body = {"metadata": {"labels": {"a": "b"}}}
        part = {"method": "PATCH", "path": f"{path}/system%3Ax", "contentType": MERGE, "body": body}
        assert [answer["code"] for answer in await sent(server, part)] == [200]


@virtual
async def test_only_writes_of_resources_are_taken() -> None:
    async with serving() as server:
        wrong = (
            {"method": "GET", "path": MAPS},
            {"method": "POST", "path": BATCH, "body": {"requests": []}},
            {"method": "POST", "path": "/clusters/root/api/v1/namespaces"},
            {"path": MAPS},
        )
        for part in wrong:
            answer = await server.answer("POST", BATCH, {"requests": [part]})
            assert isinstance(answer, Response)
            assert answer.status == 400, part
        many = {"requests": [patch("a", "1")] * 201}
        refused = await server.answer("POST", BATCH, many)
        assert isinstance(refused, Response)
        body = refused.body if isinstance(refused.body, bytes) else b"".join(refused.body)
        assert "at most 200" in orjson.loads(body)["message"]


@virtual
async def test_a_write_that_prefers_no_answer_gets_none_unless_it_fails() -> None:
    async with serving() as server:
        minimal = {"prefer": "return=minimal"}
        made = await server.create(MAPS, config_map("a"), headers=minimal)
        assert (made.status, made.raw) == (204, b"")
        assert ("Preference-Applied", "return=minimal") in made.headers
        refused = await server.create(MAPS, config_map("a"), headers=minimal)
        assert (refused.status, refused.body["reason"]) == (409, "AlreadyExists")
        read = await server.get(f"{MAPS}/a", headers=minimal)
        assert read.body["metadata"]["name"] == "a"


@virtual
async def test_only_the_type_that_a_page_cannot_send_unasked_is_taken() -> None:
    async with serving() as server:
        await server.create(MAPS, config_map("a"))
        for kind in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain;application/json",
            "application/jsonp",
            "",
        ):
            body = {"requests": [patch("a", "1")]}
            for path in (BATCH, "/extensions/v1/watch"):
                answer = await server.answer("POST", path, body, content_type=kind)
                assert isinstance(answer, Response), kind
                assert answer.status == 415, kind
        body = {"requests": [patch("a", "1")]}
        taken = await server.answer(
            "POST", BATCH, body, content_type="Application/JSON; charset=utf-8"
        )
        assert isinstance(taken, Stream)


class Counting:
    """Answers at once, and counts how many do so before anybody else has a turn."""

    def __init__(self) -> None:
        self.since_turn = 0
        self.at_once = 0

    async def handle(self, _: Request) -> Answer:
        self.since_turn += 1
        self.at_once = max(self.at_once, self.since_turn)
        return Response(204)


async def test_a_large_batch_lets_others_have_turns() -> None:
    counting = Counting()
    body = orjson.dumps({"requests": [patch("a", str(n)) for n in range(200)]})
    visit = Visit(Request("POST", BATCH, body=body), "local", ADMIN, TypeSet(()))
    answer = await Batches(counting.handle, SystemClock()).handle(visit)
    assert isinstance(answer, Stream)
    assert answer.watches == 0
    running = asyncio.ensure_future(answer.run(MemorySender()))
    while not running.done():
        counting.since_turn = 0
        await asyncio.sleep(0)
    assert 0 < counting.at_once <= 16


async def test_each_part_of_a_batch_is_charged_and_takes_a_seat() -> None:
    seen: list[tuple[str, float]] = []

    async def handle(request: Request) -> Answer:
        assert request.peer.user is not None
        seen.append((request.peer.user.name, request.step))
        return Response(204)

    body = orjson.dumps({"requests": [patch("a", "1"), patch("b", "2"), patch("c", "3")]})
    visit = Visit(Request("POST", BATCH, body=body), "local", ADMIN, TypeSet(()))
    answer = await Batches(handle, SystemClock()).handle(visit)
    assert isinstance(answer, Stream)
    await answer.run(MemorySender())
    assert [name for name, _ in seen] == ["admin"] * 3
    assert all(step > 0 for _, step in seen)
