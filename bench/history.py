"""Decision history: what records cost, and how soon they answer.

What recording costs is processor time of hub and scheduler together, with and without it: sites
join a placement of 500 one after another, so that every change rewrites a whole slice. Folding is
10,000 records over 10,000 slots.

    python -m bench history
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import orjson

from bench.edge_hub import Shares, connected, controlling, for_each
from bench.placement_hub import Bench
from bench.report import Row, table
from bench.servers import ours
from skerry.api.edge import EDGE_PLACEMENTS, HISTORY_RETENTION
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
_SITES, _JOINING, _TURNS = 400, 20, 8
_BARE, _KEPT = "bare", "kept"
_RETENTION = {_BARE: "0", _KEPT: "30d"}
_NOW = datetime(2026, 9, 1, tzinfo=UTC)


def run() -> list[Row]:
    """Return every row of the suite."""
    return [*run_pure(), *_slowdown()]


def run_pure() -> list[Row]:
    """Return rows of records alone."""
    source = random.Random(1)
    # UIDs are random, and most of what newcomers are packed into.
    uids = [str(UUID(int=source.getrandbits(128))) for _ in range(_SLOTS)]
    everybody = tuple(
        Standing(Destination("2x8q1m3", f"l{n}", f"t{n}", uid), n + 1, 1)
        for n, uid in enumerate(uids)
    )
    cause = (Cause("Rollout", "web", "2x8q1m3", user="bob"),)
    joined = Decision("Joined", everybody, Reason("Selected"), cause, to=1)
    records = _made([joined], None)
    wave = Decision("Revised", everybody[:500], Reason("WaveOpened", "early"), cause, 0, 1, 2)
    rows = [
        _sized("record of a wave of 500", _made([wave], None), 1024),
        _sized("records of 10,000 newcomers", records, 1_200_000),
    ]
    while len(records) < _RECORDS:
        first = source.randrange(_SLOTS)
        few = tuple(source.sample(everybody, 500))
        some = few if source.random() < 0.5 else everybody[first : first + 5000]
        number = len(records) % 10
        moved = Decision("Revised", some, Reason("WaveOpened"), cause, 0, number + 1, number + 2)
        records += _made([moved], records[-1])
    began = time.process_time()
    line = timeline(records)
    read = time.process_time()
    state = folded(line, len(records))
    spent = time.process_time() - read
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
    """Measure what records cost: of two placements one keeps them, and sites join in turns."""
    with ours("hub", ["--init"]) as hub, controlling(hub, "edge-scheduler") as scheduler:
        spent = asyncio.run(_joining(hub.kubeconfig, Shares(hub, scheduler)))
    # Each pair of turns was measured at about the same time: machines are not quiet.
    pairs = list(zip(spent[_BARE], spent[_KEPT], strict=True))
    slower = (statistics.median(kept / bare for bare, kept in pairs) - 1) * 100
    without, recorded = (statistics.median(spent[each]) / _JOINING * 1e3 for each in _RETENTION)
    note = f"{without:.2f} and {recorded:.2f} ms a change"
    name = f"processor time of one more of {_SITES}, with records"
    return [Row(_SUITE, name, slower, "% more", "< 10 %", slower < 10, note)]


async def _joining(kubeconfig: Path, shares: Shares) -> dict[str, list[float]]:
    """Return the processor seconds of hub and scheduler while sites join one after another."""
    spent: dict[str, list[float]] = {each: [] for each in _RETENTION}
    async with connected(kubeconfig) as client:
        bench = Bench(client, "root:inventory", "root:workload", shares)
        await bench.prepare()
        groups = list(_RETENTION)

        async def site(number: int) -> None:
            await bench.site(number, groups[number % 2])

        await for_each(2 * _SITES, site, 32)
        async with bench.following():
            for group, retention in _RETENTION.items():
                await bench.place(group, {"group": group}, _SITES)
                note = {"metadata": {"annotations": {HISTORY_RETENTION: retention}}}
                await client.at("", bench.workload).patch(EDGE_PLACEMENTS, group, note)
            await asyncio.sleep(3)
            joined = 0
            for turn in range(_TURNS):
                # Whoever comes second has the larger store: that must not be always the same.
                for group in groups if turn % 2 else reversed(groups):
                    spent[group].append(await _turn(bench, group, turn, 2 * _SITES + joined))
                    joined += _JOINING
    return spent


async def _turn(bench: Bench, group: str, turn: int, first: int) -> float:
    """Have some more sites join a placement; return the processor seconds it took."""
    bench.shares.begin()
    for number in range(_JOINING):
        done = bench.complete(group, _SITES + turn * _JOINING + number + 1)
        await bench.site(first + number, group)
        async with asyncio.timeout(60):
            await done
    # What follows from the last of them is part of it, and not of the next turn.
    await asyncio.sleep(1)
    served, scheduled, _ = bench.shares.spent()
    return served + scheduled


if __name__ == "__main__":
    print(table(run()))
