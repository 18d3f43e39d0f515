"""Decision history: what records cost, and how soon they answer.

What recording costs is processor time of hub and scheduler together, with and without it: sites
join a placement of 500 one after another, so that every change rewrites a whole slice. Folding is
10,000 records over 10,000 slots.

    python -m bench history
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import UTC, datetime

import orjson

from bench.edge_hub import Shares, connected, controlling, for_each
from bench.placement_hub import Bench
from bench.report import Row, table
from bench.servers import ours
from skerry.api.objects import Object
from skerry.logic.fleet.history.fold import folded, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Cause,
    Decision,
    Head,
    Maker,
    Reason,
    Subject,
    digest,
    order_of,
    records_of,
)
from skerry.logic.fleet.placement.records import Destination

_SUITE = "history"
_SLOTS, _RECORDS = 10_000, 10_000
_SITES, _JOINING = 400, 100
_NOW = datetime(2026, 9, 1, tzinfo=UTC)


def run() -> list[Row]:
    """Return every row of the suite."""
    return [*run_pure(), *_slowdown()]


def run_pure() -> list[Row]:
    """Return rows of records alone."""
    everybody = tuple(
        Standing(Destination("2x8q1m3", f"l{n}", f"t{n}", f"6c9c1e0a-{n:012d}"), n + 1, 1)
        for n in range(_SLOTS)
    )
    cause = (Cause("Rollout", "web", "2x8q1m3", user="bob"),)
    joined = Decision("Joined", everybody, Reason("Selected"), cause, to=1)
    records = _made([joined], None)
    wave = Decision("Revised", everybody[:500], Reason("WaveOpened", "early"), cause, 0, 1, 2)
    rows = [
        _sized("record of a wave of 500", _made([wave], None), 1024),
        _sized("records of 10,000 newcomers", records, 1_200_000),
    ]
    source = random.Random(1)
    while len(records) < _RECORDS:
        first = source.randrange(_SLOTS)
        few = tuple(source.sample(everybody, 500))
        some = few if source.random() < 0.5 else everybody[first : first + 5000]
        number = len(records) % 10
        moved = Decision("Revised", some, Reason("WaveOpened"), cause, 0, number + 1, number + 2)
        records += _made([moved], records[-1])
    began = time.perf_counter()
    line = timeline(records)
    read = time.perf_counter()
    state = folded(line, len(records))
    spent = time.perf_counter() - read
    assert len(state.standings) == _SLOTS
    rows.append(Row(_SUITE, "10,000 records over 10,000 slots, read", (read - began) * 1e3, "ms"))
    name = "10,000 records over 10,000 slots, folded"
    rows.append(Row(_SUITE, name, spent * 1e3, "ms", "< 300 ms", spent < 0.3))
    return rows


def _made(decisions: list[Decision], last: Object | None) -> list[Object]:
    head = None
    if last is not None and (order := order_of(last["metadata"]["name"])) is not None:
        head = Head(order, digest(last))
    subject, maker = Subject("web", "6c9c1e0a"), Maker("edge-scheduler", "1")
    follows = 1 if head is None else head.order.revision + 1
    return records_of(decisions, subject, maker, follows=follows, head=head, now=_NOW)


def _sized(name: str, records: list[Object], limit: int) -> Row:
    size = sum(len(orjson.dumps(each)) for each in records)
    return Row(_SUITE, name, size, "bytes", f"< {limit:,}", size < limit)


def _slowdown() -> list[Row]:
    """Measure what records cost, in turns and the lesser of two each: machines are not quiet."""
    spent: dict[str, list[float]] = {"0": [], "30d": []}
    with ours("hub", ["--init"]) as hub:
        for turn, retention in enumerate(("0", "30d", "30d", "0")):
            flags = ("--history-retention", retention)
            with controlling(hub, "edge-scheduler", flags=flags) as scheduler:
                shares = Shares(hub, scheduler)
                spent[retention].append(asyncio.run(_joining(hub.kubeconfig, shares, turn)))
    without, recorded = min(spent["0"]), min(spent["30d"])
    slower = (recorded / without - 1) * 100
    note = f"{without / _JOINING * 1e3:.2f} and {recorded / _JOINING * 1e3:.2f} ms a change"
    name = f"processor time of one more of {_SITES}, with records"
    return [Row(_SUITE, name, slower, "% more", "< 10 %", slower < 10, note)]


async def _joining(kubeconfig: object, shares: Shares, turn: int) -> float:
    """Return the processor seconds of hub and scheduler while sites join one after another."""
    group = f"g{turn}"
    async with connected(kubeconfig) as client:  # type: ignore[arg-type]
        bench = Bench(client, f"root:inventory-{turn}", f"root:workload-{turn}", shares)
        await bench.prepare()

        async def site(number: int) -> None:
            await bench.site(number, group)

        await for_each(_SITES, site, 32)
        async with bench.following():
            await bench.place("web", {"group": group}, _SITES)
            await asyncio.sleep(3)
            shares.begin()
            for number in range(_JOINING):
                done = bench.complete("web", _SITES + number + 1)
                await bench.site(_SITES + number, group)
                async with asyncio.timeout(60):
                    await done
            served, scheduled, _ = shares.spent()
            return served + scheduled


if __name__ == "__main__":
    print(table(run()))
