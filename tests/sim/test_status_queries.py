"""StatusQueries against the real hub engine, in virtual time."""

from __future__ import annotations

import asyncio

from tests.kit.chain.query_hub import REGION, Hub
from tests.kit.sim.loop import virtual

READY = {"name": "ready", "function": "Sum", "of": "status.?readyReplicas.orValue(0)"}


@virtual
async def test_a_query_counts_copies_by_a_label_and_follows_every_report() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.controlled("status-queries", "summarizer"):
        await hub.namespace("shop", go="yes")
        await hub.relabel("florin", region="north")
        await hub.place("p", "florin", "guilder")
        await hub.deploy("web", "florin", "guilder")
        await asyncio.sleep(3)
        await hub.ask("by-region", groupBy=[REGION], aggregates=[READY])
        await asyncio.sleep(3)
        assert await hub.complete("by-region") == ("True", "Read")
        assert await hub.rows("by-region") == [["none", 1], ["north", 1]]
        await hub.reports("florin", "web", 5)
        await asyncio.sleep(2)
        assert await hub.rows("by-region") == [["none", 1], ["north", 5]]
        await hub.relabel("guilder", region="north")
        await asyncio.sleep(2)
        assert await hub.rows("by-region") == [["north", 6]]
