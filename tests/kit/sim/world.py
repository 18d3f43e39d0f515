"""One simulated run: a server, a faulty way to it, and what runs beside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.faults import FaultyTransport, Rates
from tests.kit.sim.twin import Twin

# So many that a change that breaks things is seen; `make sim` looks for what is rare, and begins
# where an earlier run ended (SIM_FIRST).
_FIRST = int(os.environ.get("SKERRY_SIM_FIRST", "0"))
SEEDS = range(_FIRST, _FIRST + int(os.environ.get("SKERRY_SIM_SEEDS", "6")))


def seeds_of(cost: int, least: int = 1) -> range:
    """Return the seeds for runs that cost *cost* times what others do: *least* in any case.

    So that all simulations find rare failures at about the same expense: a thousand histories of
    the whole chain would take a night, in which the others could run a hundred thousand.
    """
    return range(_FIRST, _FIRST + max(least, len(SEEDS) // cost))


class World:
    """Everything of one seed. ``direct`` reaches the server without faults."""

    def __init__(self, seed: int, rates: Rates | None = None) -> None:
        self.clock = LoopClock()
        self.ids = SeededIds(seed)
        self.server = Twin(self.clock, SeededIds(seed + 1))
        self.faults = FaultyTransport(self.server, self.ids, rates)
        self.client = Client(self.faults, clock=self.clock)
        self.direct = Client(self.server, clock=self.clock)
        self.factory = InformerFactory(self.client, ids=self.ids, mutation_check=True)

    @asynccontextmanager
    async def running(self, *parts: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Run the informers and *parts* while inside; an error inside leaves as itself."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(self.factory.run())]
            started += [tasks.create_task(_coroutine(part)) for part in parts]
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in started:
                task.cancel()
        if failure is not None:
            raise failure
        self.factory.check_unchanged()

    async def settle(self, seconds: float = 600.0) -> None:
        """Let an idle world find its peace; virtual seconds are free."""
        self.faults.heal()
        await asyncio.sleep(seconds)

    def happens(self, rate: float) -> bool:
        return self.ids.fraction() < rate

    def chosen(self, count: int) -> int:
        return int(self.ids.fraction() * count)


def _coroutine(part: Callable[[], Awaitable[None]]) -> Coroutine[Any, Any, None]:
    async def call() -> None:
        await part()

    return call()


async def make(
    client: Client,
    gvr: GroupVersionResource,
    name: str,
    *owners: Object,
    place: str = "default",
    **fields: Any,
) -> Object:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": index % 2 == 0,
        }
        for index, owner in enumerate(owners)
    ]
    metadata: Object = {"name": name, **fields}
    if references:
        metadata["ownerReferences"] = references
    return await client.create(gvr, {"metadata": metadata}, place)
