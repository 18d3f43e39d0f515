"""Runs one history of one seed and prints what tells its steps from any others.

``python -m tests.kit.chain.replay KIND SEED [FILE]``: the number of requests, and a digest of all
of them with their virtual times; into *FILE* goes a line for each. A process of its own, because
the order of sets differs from process to process, and a run must not depend on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from skerry.kit import log
from tests.kit.chain import summarizer_history, translator_history
from tests.kit.chain.edge_scheduler_hub import Hub as SchedulerHub
from tests.kit.chain.edge_scheduler_hub import People
from tests.kit.chain.summarizer_hub import Hub as SummarizerHub
from tests.kit.chain.translator_hub import Hub as TranslatorHub
from tests.kit.sim.faults import FaultyTransport, Rates
from tests.kit.sim.loop import run_virtual


async def edge_scheduler(seed: int) -> FaultyTransport:
    """Placements, Locations and SyncTargets come and go under scheduler and mailbox controller."""
    hub = SchedulerHub(seed, Rates())
    people = People(hub)
    async with hub.running("imw1", "imw2", "a", "b"):
        for _ in range(2):
            async with hub.controlled("edge-scheduler", "mailbox"):
                for _ in range(40):
                    await people.act()
                    await asyncio.sleep(hub.ids.fraction() * 2)
                await asyncio.sleep(30)
    return hub.faults


async def translator(seed: int) -> FaultyTransport:
    hub = TranslatorHub(seed, Rates())
    async with hub.running(translator_history.EDGES, translator_history.OWNERS):
        history = translator_history.History(hub, seed)
        await history.begin()
        for _ in range(2):
            async with hub.translating():
                await history.happen(20)
                await asyncio.sleep(60)
    return hub.faults


async def summarizer(seed: int) -> FaultyTransport:
    hub = SummarizerHub(seed, Rates())
    async with hub.running(summarizer_history.EDGES):
        history = summarizer_history.History(hub)
        await history.begin()
        async with hub.summarizing():
            for _ in range(40):
                await history.step()
                await asyncio.sleep(hub.ids.fraction())
            await asyncio.sleep(30)
    return hub.faults


KINDS: dict[str, Callable[[int], Awaitable[FaultyTransport]]] = {
    "edge-scheduler": edge_scheduler,
    "translator": translator,
    "summarizer": summarizer,
}


def main(kind: str, seed: str, *file: str) -> None:
    log.configure(verbosity=-1)
    steps = run_virtual(_run(KINDS[kind], int(seed)))
    for name in file:
        Path(name).write_text("\n".join(steps))
    print(len(steps), hashlib.sha256("\n".join(steps).encode()).hexdigest())


async def _run(history: Callable[[int], Awaitable[FaultyTransport]], seed: int) -> list[str]:
    return (await history(seed)).steps


if __name__ == "__main__":
    main(*sys.argv[1:])
