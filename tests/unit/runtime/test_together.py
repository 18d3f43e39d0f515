"""What several executors have to write happens together, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from skerry.api.errors import AlreadyExists, ApiError, NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import LoopClock
from skerry.logic.machinery.plan import Action, Create, Target, Update
from skerry.runtime.atomic import AtomicWriter
from skerry.runtime.client import Client
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.execute import Executor, Outcome
from skerry.runtime.facts import ServerFacts
from skerry.runtime.together import Refused, Step, execute_together
from skerry.runtime.transport import Answer, TransportError
from skerry.runtime.wrapping import WrappedTransport
from tests.kit.server.harness import serving
from tests.kit.sim.engine import request
from tests.kit.sim.loop import virtual

MAPS = GroupVersionResource("", "v1", "configmaps")


class Noting:
    """An overlay that notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def begin(self, action: Action) -> None:
        self.heard.append("begin")

    def done(self, outcome: Outcome) -> None:
        self.heard.append(outcome.result)

    def failed(self, action: Action, error: BaseException) -> None:
        self.heard.append(str(error.code) if isinstance(error, ApiError) else "unknown")


class Losing(WrappedTransport):
    """Loses the answers to batches."""

    async def request(self, method: str, path: str, *rest: object) -> Answer:
        answer = await super().request(method, path, *rest)  # type: ignore[arg-type]
        if "batch" in path:
            raise TransportError("lost")
        return answer


@asynccontextmanager
async def connected(*, losing: bool = False) -> AsyncIterator[Client]:
    async with serving() as server:
        plain = EmbeddedTransport(server.api.engine.handle, request)
        clock = LoopClock()
        yield Client(Losing(plain) if losing else plain, clock=clock, facts=ServerFacts())


def created(name: str) -> Create:
    return Create(Target(MAPS, name, "default"), {"metadata": {"name": name}}, "New")


async def together(
    client: Client, overlay: Noting, actions: Sequence[Create | Update]
) -> list[Outcome] | Refused:
    executor = Executor(client, "test", overlay=overlay)
    return await execute_together(
        AtomicWriter(client), "", [Step(executor, each) for each in actions]
    )


@virtual
async def test_all_is_written_and_each_executor_knows() -> None:
    async with connected() as client:
        old = await client.create(MAPS, {"metadata": {"name": "old"}}, "default")
        overlay = Noting()
        same = Update(Target(MAPS, "old", "default"), old, "Same")
        outcomes = await together(client, overlay, [created("a"), same])
        assert not isinstance(outcomes, Refused)
        assert [each.result for each in outcomes] == ["created", "unchanged"]
        assert overlay.heard == ["begin", "begin", "created", "unchanged"]
        assert outcomes[0].object is not None
        assert outcomes[0].object["metadata"]["name"] == "a"


@virtual
async def test_one_that_is_refused_is_named_and_nothing_was_written() -> None:
    async with connected() as client:
        await client.create(MAPS, {"metadata": {"name": "b"}}, "default")
        overlay = Noting()
        found = await together(client, overlay, [created("a"), created("b")])
        assert isinstance(found, Refused)
        assert found.step == 1
        assert isinstance(found.error, AlreadyExists)
        assert overlay.heard == ["begin", "begin", "424", "409"]
        with pytest.raises(NotFound):
            await client.get(MAPS, "a", "default")


@virtual
async def test_a_server_that_does_not_take_them_together_hears_nothing() -> None:
    async with connected() as client:
        client.facts.extensions = {}
        overlay = Noting()
        assert await together(client, overlay, [created("a")]) == Refused()
        assert overlay.heard == []
        client.facts.extensions = {"atomic-batch": "/extensions/v9/nothing"}
        assert await together(client, overlay, [created("a")]) == Refused()
        assert overlay.heard == ["begin", "424"]


@virtual
async def test_nobody_knows_what_came_of_a_lost_answer() -> None:
    async with connected(losing=True) as client:
        overlay = Noting()
        with pytest.raises(TransportError):
            await together(client, overlay, [created("a"), created("b")])
        assert overlay.heard == ["begin", "begin", "unknown", "unknown"]
