"""Contents are read when rows wait for them, and again while they still do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson
import pytest

from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.contents import ContentReader
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.revision.manifest import content_digest
from skerry.logic.fleet.translation.sources import Record, record_of, wide
from skerry.logic.fleet.translation.workspaces import Scope, content_scope
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from tests.kit.answering import AnsweringTransport
from tests.kit.chain.translator_world import cluster_object
from tests.kit.sim.loop import virtual

ITEM = ObjectRef("", "", "configmaps", "n", "x")
SOURCE = record_of(wide("", "v1", "configmaps"), cluster_object("one", "x", "n", data={"k": "v"}))
NAME = content_digest(ITEM, SOURCE.digest)
SCOPE = content_scope("one", ITEM, NAME)


class Hub(AnsweringTransport):
    """Has the content from the *there*-th time on that it is asked."""

    def __init__(self, there: int, failures: int = 0) -> None:
        self.there = there
        self.failures = failures
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.asked.append(path)
        if len(self.asked) <= self.failures:
            raise TransportError("no answer")
        if len(self.asked) < self.there:
            return Answer(404, {}, b'{"kind":"Status","code":404,"reason":"NotFound"}')
        found = {"metadata": {"name": NAME}, "content": SOURCE.copy()}
        return Answer(200, {}, orjson.dumps(found))


async def _taken(hub: Hub, seconds: float, *, awaited: bool = True) -> list[Record | None]:
    found: list[Record | None] = []

    def take(scope: Scope, record: Record | None) -> None:
        assert scope == SCOPE
        found.append(record)

    reader = ContentReader(Client(hub, clock=LoopClock()), take, lambda _: awaited)
    running = asyncio.create_task(reader.run())
    reader.read(SCOPE)
    await asyncio.sleep(0)
    reader.read(SCOPE)
    await asyncio.sleep(seconds)
    running.cancel()
    return found


@virtual
async def test_a_content_is_read_once_and_checked() -> None:
    hub = Hub(1)
    [record] = await _taken(hub, 1)
    assert record is not None
    assert record.digest == SOURCE.digest
    assert hub.asked == [f"/clusters/one/apis/edge.kcp.io/v1alpha1/revisioncontents/{NAME}"]


@virtual
async def test_one_that_is_missing_is_looked_for_while_rows_wait_for_it() -> None:
    assert [each is None for each in await _taken(Hub(3), 100)] == [True, True, False]
    assert await _taken(Hub(3), 100, awaited=False) == [None]


@virtual
async def test_no_answer_is_no_absence() -> None:
    [record] = await _taken(Hub(1, failures=2), 10)
    assert record is not None


@virtual
@pytest.mark.parametrize("awaited", [True, False])
@pytest.mark.parametrize("seconds", [0, 0.5])
async def test_who_leads_again_reads_what_rows_have_waited_for_all_the_while(
    seconds: float, awaited: bool
) -> None:
    """Whether the read was under way or to be tried again when its reader was stopped."""
    hub, found = Hub(1, failures=1), []
    reader = ContentReader(
        Client(hub, clock=LoopClock()), lambda _, record: found.append(record), lambda _: awaited
    )
    reader.read(SCOPE)
    running = asyncio.create_task(reader.run())
    await asyncio.sleep(seconds)
    running.cancel()
    await asyncio.sleep(5)
    reader.read(SCOPE)
    assert not found
    running = asyncio.create_task(reader.run())
    await asyncio.sleep(5)
    running.cancel()
    assert len(found) == awaited
