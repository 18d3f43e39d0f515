"""Objects that servers keep: created, corrected, and left to whoever was faster."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from skerry.api.errors import AlreadyExists, Conflict, Forbidden
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.core_controllers import embedded_transport
from skerry.app.kept_objects import keep_up, put
from skerry.kit.clock import LoopClock
from skerry.runtime.client import Client
from tests.kit.server.harness import serving
from tests.kit.sim.loop import virtual

MAPS = GroupVersionResource("", "v1", "configmaps")
MADE: Object = {"metadata": {"name": "kept", "namespace": "default"}, "data": {"k": "v"}}


def corrected(live: Object | None) -> Object | None:
    if live is None:
        return MADE
    return None if live.get("data") == MADE["data"] else {**live, "data": MADE["data"]}


async def test_what_is_missing_is_created_and_what_is_wrong_corrected() -> None:
    async with serving() as server:
        client = Client(embedded_transport(server.api), clock=LoopClock())
        await put(client, MAPS, "kept", "default", corrected)
        made = await client.get(MAPS, "kept", "default")
        await put(client, MAPS, "kept", "default", corrected)
        assert await client.get(MAPS, "kept", "default") == made, "nothing was written"
        await client.update(MAPS, {**made, "data": {"k": "other"}})
        await put(client, MAPS, "kept", "default", corrected)
        found = await client.get(MAPS, "kept", "default")
        assert (found["data"], found["metadata"]["uid"]) == (MADE["data"], made["metadata"]["uid"])


async def test_who_was_faster_is_left_alone() -> None:
    async with serving() as server:
        client = Client(embedded_transport(server.api), clock=LoopClock())
        first = await client.create(MAPS, {**MADE, "data": {"theirs": "yes"}}, "default")

        def late(live: Object | None) -> Object | None:
            assert live is not None
            return {**live, "metadata": {**live["metadata"], "resourceVersion": "1"}}

        await put(client, MAPS, "kept", "default", late)
        assert await client.get(MAPS, "kept", "default") == first


@virtual
async def test_a_failure_is_met_the_next_time_and_a_bug_is_not_hidden() -> None:
    outcomes: list[Exception | None] = [Forbidden("no"), None, Conflict("x"), AlreadyExists("y")]
    looked: list[float] = []
    clock = LoopClock()

    async def ensure() -> None:
        looked.append(round(clock.monotonic() - start))
        error = outcomes.pop(0) if outcomes else ZeroDivisionError()
        if error is not None:
            raise error

    start = clock.monotonic()
    with pytest.raises(ZeroDivisionError):
        await keep_up("thing", ensure, clock, 10.0)
    assert looked == [10, 20, 30, 40, 50]


@virtual
async def test_it_ends_when_it_is_cancelled() -> None:
    async def ensure() -> None:
        task.cancel()

    task = asyncio.create_task(keep_up("thing", ensure, LoopClock(), 1.0))
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
