"""What a server is asked once, and what an ordinary one answers."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound, ServiceUnavailable
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.facts import ServerFacts
from tests.kit.sim.loop import virtual


class Server:
    """Answers, or refuses; counts how often it is asked."""

    def __init__(self, answer: Object | ApiError) -> None:
        self.answer = answer
        self.asked = 0

    async def __call__(self) -> Object:
        self.asked += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer


async def test_many_who_ask_at_once_ask_the_server_once() -> None:
    facts, server = ServerFacts(), Server({"gitVersion": "v1.32.0"})
    found = await asyncio.gather(*(facts.known_version(server) for _ in range(5)))
    assert found == [{"gitVersion": "v1.32.0"}] * 5
    assert server.asked == 1


async def test_a_question_that_fails_has_failed_for_all_who_wait() -> None:
    facts, server = ServerFacts(), Server(ServiceUnavailable("not now"))
    asking = [facts.known_extensions(server) for _ in range(6)]
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in found] == [ServiceUnavailable] * 6
    assert server.asked == 1
    server.answer = {"extensions": []}
    assert await facts.known_extensions(server) == {}


async def test_a_question_whose_asker_leaves_is_asked_by_another() -> None:
    facts, server = ServerFacts(), Server({"gitVersion": "v1.32.0"})
    first = asyncio.create_task(facts.known_version(server))
    second = asyncio.create_task(facts.known_version(server))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == {"gitVersion": "v1.32.0"}
    assert server.asked == 2


@virtual
async def test_who_waits_for_a_server_waits_until_anybody_was_answered() -> None:
    facts, clock, loop = ServerFacts(), LoopClock(), asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.TaskGroup() as tasks:
        waiting = [
            tasks.create_task(facts.returned(clock, SeededIds(seed), 60)) for seed in range(5)
        ]
        await asyncio.sleep(10)
        assert not any(each.done() for each in waiting)
        facts.heard()
    assert 10 < loop.time() - began <= 11


@virtual
async def test_nobody_waits_longer_than_they_would_alone() -> None:
    facts, clock, loop = ServerFacts(), LoopClock(), asyncio.get_running_loop()
    facts.heard()
    began = loop.time()
    await facts.returned(clock, SeededIds(1), 60)
    assert loop.time() - began == pytest.approx(60)


async def test_extensions_are_known_by_name() -> None:
    answer = {"extensions": [{"name": "batch", "path": "/extensions/batch"}]}
    assert await ServerFacts().known_extensions(Server(answer)) == {"batch": "/extensions/batch"}


@pytest.mark.parametrize("error", [NotFound("no"), MethodNotAllowed("no")])
async def test_an_ordinary_server_has_none_and_is_not_asked_again(error: ApiError) -> None:
    facts, server = ServerFacts(), Server(error)
    assert await facts.known_extensions(server) == {}
    assert await facts.known_extensions(server) == {}
    assert server.asked == 1


async def test_who_is_refused_asks_again_later() -> None:
    facts, server = ServerFacts(), Server(Forbidden("not yet"))
    assert await facts.known_extensions(server) == {}
    server.answer = {"extensions": [{"name": "batch", "path": "/b"}]}
    assert await facts.known_extensions(server) == {"batch": "/b"}
