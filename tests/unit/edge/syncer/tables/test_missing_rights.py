"""What the edge forbids, and the moment it no longer does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson

from skerry.api.errors import ServiceUnavailable
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.missing_rights import MissingRights
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.sim.loop import virtual

SECRETS = GroupResource("", "secrets")


class Judge(AnsweringTransport):
    """An edge that answers access reviews, and notes what it was asked."""

    def __init__(self) -> None:
        self.allowed: set[tuple[str, str, str]] = set()
        self.asked: list[tuple[str, str, str]] = []
        self.away = False

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if self.away:
            return Answer(503, {}, orjson.dumps(ServiceUnavailable("away").status()))
        wanted = orjson.loads(body)["spec"]["resourceAttributes"]
        question = (wanted["verb"], wanted["resource"], wanted.get("namespace", ""))
        self.asked.append(question)
        status = {"allowed": question in self.allowed}
        return Answer(201, {}, orjson.dumps({"status": status}))


@virtual
async def test_what_becomes_allowed_is_reported_within_seconds_and_asked_about_no_more() -> None:
    judge, granted = Judge(), list[tuple[GroupResource, str]]()
    rights = MissingRights(Client(judge, clock=LoopClock()))
    rights.granted.connect(lambda *place: granted.append(place))
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(rights.run())
        await asyncio.sleep(60)
        assert judge.asked == [], "nothing is missing, nothing is asked"
        for number in range(100):
            rights.miss(ObjectRef("", "", "secrets", "shop", f"key-{number}"), "get")
        await asyncio.sleep(12)
        assert judge.asked == [("get", "secrets", "shop")] * 2, "one question for all of them"
        judge.away = True
        await asyncio.sleep(20)
        judge.away = False
        judge.allowed.add(("get", "secrets", "shop"))
        await asyncio.sleep(6)
        assert granted == [(SECRETS, "shop")]
        seen = len(judge.asked)
        await asyncio.sleep(60)
        assert len(judge.asked) == seen
        asking.cancel()


@virtual
async def test_many_missing_rights_cost_few_questions_and_come_back_together() -> None:
    judge, granted = Judge(), list[tuple[GroupResource, str]]()
    rights = MissingRights(Client(judge, clock=LoopClock()))
    rights.granted.connect(lambda *place: granted.append(place))
    places = [f"n{number}" for number in range(50)]
    for place in places:
        rights.miss(ObjectRef("", "", "secrets", place, "key"), "patch")
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(rights.run())
        await asyncio.sleep(5.5)
        assert len(judge.asked) == 4
        judge.allowed |= {("patch", "secrets", place) for place in places}
        await asyncio.sleep(5)
        assert sorted(place for _, place in granted) == sorted(places)
        asking.cancel()
