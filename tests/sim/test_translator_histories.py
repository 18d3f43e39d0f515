"""From any history, with faults and restarts, mailboxes end up as the reference says."""

from __future__ import annotations

import asyncio

import pytest

from skerry.kit import log
from tests.kit.chain.translator_history import EDGES, OWNERS, History
from tests.kit.chain.translator_hub import Hub
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import run_virtual
from tests.kit.sim.world import SEEDS

# A history is some hundred requests; a tenth of the seeds keeps the whole suite quick.
HISTORIES = SEEDS[: max(1, len(SEEDS) // 10)] if len(SEEDS) < 1000 else SEEDS


async def _run(seed: int, *, faulty: bool) -> None:
    hub = Hub(seed, Rates() if faulty else Rates(0, 0, 0, 0, 0))
    async with hub.running(EDGES, OWNERS):
        history = History(hub, seed)
        await history.begin()
        for _ in range(3):
            async with hub.translating():
                await history.happen(25)
            await history.happen(5)
        async with hub.translating():
            await history.happen(10)
            await history.tidy()
            await hub.settle(600)
            await hub.assert_as_expected(*EDGES)
        before = await hub.store.revision()
        async with hub.translating() as translator:
            await asyncio.sleep(100)
            assert await hub.store.revision() == before, "a second pass wrote something"
            assert translator.tables.dirty.waiting == 0


@pytest.mark.parametrize("faulty", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("seed", HISTORIES)
def test_mailboxes_end_up_as_the_reference_says_and_stay_so(seed: int, faulty: bool) -> None:
    log.configure(verbosity=-1)
    run_virtual(_run(seed, faulty=faulty))
