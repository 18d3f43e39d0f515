"""What a server is asked once, and what an ordinary one answers."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from skerry.api.objects import Object
from skerry.runtime.facts import ServerFacts


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
