"""Who comes alone passes, who comes meanwhile waits, and all of those are let in together."""

from __future__ import annotations

import asyncio

from skerry.server.bursts import Bursts
from tests.kit.sim.loop import virtual


class Crowd:
    """Those who came to a door, and when each was let in."""

    def __init__(self) -> None:
        self.bursts = Bursts()
        self.passed: list[tuple[str, float]] = []
        # How many still waited when each was let in.
        self.left: list[int] = []

    async def come(self, name: str) -> None:
        await self.bursts.join()
        self.passed.append((name, round(asyncio.get_running_loop().time(), 3)))
        self.left.append(self.bursts.waiting)


@virtual
async def test_one_that_comes_alone_does_not_wait() -> None:
    crowd = Crowd()
    await crowd.come("first")
    await asyncio.sleep(1.0)
    await crowd.come("second")
    assert crowd.passed == [("first", 0.0), ("second", 1.0)]


@virtual
async def test_those_who_come_meanwhile_are_let_in_at_the_same_time() -> None:
    crowd = Crowd()

    async def later(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await crowd.come(name)

    times = {"a": 0.0, "b": 0.01, "c": 0.05, "d": 0.09, "e": 0.12, "f": 0.45}
    await asyncio.gather(*(later(name, seconds) for name, seconds in times.items()))
    when = dict(crowd.passed)
    assert when["a"] == 0.0
    assert when["b"] == when["c"] == when["d"] == 0.1
    # The door is closed behind a burst, too, and open again once nobody came through.
    assert when["e"] == 0.2
    assert when["f"] == 0.45


@virtual
async def test_a_crowd_is_let_in_a_few_at_a_turn_of_the_loop() -> None:
    crowd = Crowd()
    await crowd.come("first")
    coming = [asyncio.create_task(crowd.come(str(number))) for number in range(40)]
    await asyncio.sleep(0)
    assert crowd.bursts.waiting == 40
    await asyncio.gather(*coming)
    assert crowd.left[1:] == [24] * 16 + [8] * 16 + [0] * 8


@virtual
async def test_whoever_gave_up_takes_nobodys_place() -> None:
    crowd = Crowd()
    await crowd.come("first")
    coming = [asyncio.create_task(crowd.come(str(number))) for number in range(3)]
    await asyncio.sleep(0)
    coming[1].cancel()
    await asyncio.gather(*coming, return_exceptions=True)
    assert [name for name, _ in crowd.passed] == ["first", "0", "2"]
