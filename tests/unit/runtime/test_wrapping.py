"""A paced transport lets a burst through and then keeps its rate; streams are not counted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from skerry.kit.clock import LoopClock
from skerry.runtime.wrapping import PacedTransport, WrappedTransport
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin

VERSION = "/version"


async def seconds(transport: PacedTransport, requests: int) -> float:
    """Return how long that many requests take, asked one after the other."""
    began = asyncio.get_running_loop().time()
    for _ in range(requests):
        await transport.request("GET", VERSION)
    return asyncio.get_running_loop().time() - began


@virtual
async def test_a_burst_is_free_and_the_rest_keeps_the_rate() -> None:
    paced = PacedTransport(Twin(), LoopClock(), qps=10, burst=5)
    assert round(await seconds(paced, 5), 3) == 0
    assert round(await seconds(paced, 20), 3) == 2


@virtual
async def test_a_pause_fills_the_bucket_and_no_more() -> None:
    paced = PacedTransport(Twin(), LoopClock(), qps=10, burst=5)
    await seconds(paced, 25)
    await asyncio.sleep(3600)
    assert round(await seconds(paced, 5), 3) == 0
    assert round(await seconds(paced, 1), 3) == 0.1


@virtual
async def test_who_wraps_is_asked_before_and_sees_what_came() -> None:
    seen: list[str] = []

    class Noting(WrappedTransport):
        async def before(self) -> None:
            seen.append("before")

        def seen(self, headers: Mapping[str, str]) -> None:
            seen.append("seen")

    transport = Noting(Twin())
    answer = await transport.request("GET", VERSION)
    assert (answer.status, seen) == (200, ["before", "seen"])
    await transport.close()
