"""Rollouts with every controller real, faults on their way, and edges that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from random import Random
from typing import Any

import pytest

from skerry.api.edge import (
    DECISION_RECORDS,
    EDGE_PLACEMENTS,
    PLACEMENT_GUARDS,
    PLACEMENT_REVISIONS,
    STAGED_REMOVAL,
)
from skerry.api.errors import NotFound
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.logic.fleet.history.fold import timeline
from skerry.logic.fleet.history.text import Selection, row, selected
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_chain import CHAIN, ChainHub
from tests.kit.chain.rollout_hub import EDGE, INVENTORY, WORKLOAD
from tests.kit.chain.rollout_witness import assert_promises_kept
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

WAVES = [{"name": "canary", "selector": equal(ring="canary")}]
ALL = (*CHAIN, "history", "status-queries")
SLOWLY: dict[str, Any] = {"leaving": {"concurrency": 1}}
QUICK = {
    "settle": {"quiet": "2s", "longest": "10s"},
    "judge": {"minReady": "2s", "deadline": "2m"},
    "waves": WAVES,
}


@asynccontextmanager
async def chain(edges: int, seed: int = 1, **spec: Any) -> AsyncIterator[ChainHub]:
    """Run everything, with a first page everywhere."""
    hub = ChainHub(seed)
    async with hub.running("shop", "imw"), hub.synced(), hub.controlled(*CHAIN):
        await hub.fleet(edges)
        await hub.write("one")
        await hub.place(WORKLOAD, "web", equal(env="prod"), namespaceSelector=equal(goes="out"))
        await hub.roll_out(**{**QUICK, **spec})
        await hub.settle(30)
        assert await hub.phase() == "Completed"
        yield hub


def running(hub: ChainHub) -> dict[str, str]:
    return {edge: ran[-1] for edge, ran in hub.ran.items() if ran}


@virtual
async def test_a_good_page_goes_to_the_canary_first_and_then_everywhere() -> None:
    async with chain(4, judge={"minReady": "20s"}) as hub:
        assert running(hub) == dict.fromkeys(("e1", "e2", "e3", "e4"), "one")
        await hub.write("two")
        await hub.settle(10)
        assert running(hub) == {"e1": "two", "e2": "one", "e3": "one", "e4": "one"}
        await hub.settle(70)
        assert set(running(hub).values()) == {"two"}
        assert await hub.phase() == "Completed"


@virtual
async def test_a_bad_page_returns_and_nobody_beyond_the_canary_ever_ran_it() -> None:
    async with chain(4) as hub:
        hub.bad.add("broken")
        await hub.write("broken")
        await hub.settle(60)
        assert await hub.phase() == "RolledBack"
        assert set(running(hub).values()) == {"one"}
        assert {edge for edge, ran in hub.ran.items() if "broken" in ran} == {"e1"}
        revisions = (await hub.shop.list(PLACEMENT_REVISIONS)).items
        verdicts = {each["spec"]["number"]: each["status"]["verdict"] for each in revisions}
        assert verdicts == {1: "Good", 2: "Bad"}
        await hub.write("one")
        await hub.settle(40)
        assert await hub.phase() == "Completed"
        await hub.write("three")
        await hub.settle(60)
        assert set(running(hub).values()) == {"three"}


@virtual
async def test_the_history_of_the_canary_has_a_bad_page_in_five_lines() -> None:
    async with chain(4) as hub:
        hub.bad.add("broken")
        await hub.write("broken")
        await hub.settle(60)
        await hub.locate("root:imw", "e1", {"env": "dr", "ring": "canary"}, equal(n="e1"))
        await hub.settle(30)
        line = timeline((await hub.shop.list(DECISION_RECORDS)).items)
        assert line.broken == {}
        now = line.records[-1].time.astimezone(UTC)
        rows = [row(each, now)[1:] for each in selected(line, Selection(location="e1"))]
        rows_of = [(change, revisions) for change, _, revisions, _, _ in rows]
        assert rows_of[-6:] == [
            ("Delivered", "1"),
            ("Judged Good", "1"),
            ("Revised", "1→2"),
            ("Judged Bad", "2"),
            ("Revised", "2→1"),
            ("Left", "1→\N{EN DASH}"),
        ]
        why = {change: text for change, _, _, text, _ in rows}
        assert why["Left"] == "locationSelectors[0]: env must be prod"
        assert why["Revised"].startswith("rollback: ")
        assert "configmaps s/page" in why["Judged Bad"]
        assert why["Delivered"].startswith("applied in ")


@virtual
async def test_edges_that_are_offline_throughout_neither_delay_nor_fail_it() -> None:
    async with chain(4, offline={"after": "30s"}) as hub:
        hub.offline |= {"e3", "e4"}
        await hub.settle(120)
        await hub.write("two")
        await hub.settle(60)
        assert await hub.phase() == "Completed"
        assert running(hub) == {"e1": "two", "e2": "two", "e3": "one", "e4": "one"}
        hub.offline.clear()
        await hub.settle(60)
        assert set(running(hub).values()) == {"two"}


@virtual
async def test_a_placement_that_asks_for_it_is_taken_away_wave_by_wave() -> None:
    async with chain(4, judge={"minReady": "20s"}, offline={"after": "30s"}) as hub:
        notes = {"metadata": {"annotations": {STAGED_REMOVAL: "true"}}}
        await hub.shop.patch(EDGE_PLACEMENTS, "web", notes)
        await hub.settle(2)
        hub.offline.add("e4")
        await hub.settle(120)
        await hub.shop.delete(EDGE_PLACEMENTS, "web")
        await hub.settle(10)
        assert await hub.holding() == {"e2", "e3", "e4"}
        # Who comes now is not let in.
        await hub.edge(5)
        await hub.settle(70)
        assert await hub.holding() == set()
        with pytest.raises(NotFound):
            await hub.shop.get(EDGE_PLACEMENTS, "web")
        assert (await hub.conditions())["Valid"] == ("False", "NoPlacement")


@virtual
async def test_a_removal_in_waves_that_nobody_asks_for_any_more_is_done_at_once() -> None:
    async with chain(3) as hub:
        await hub.edit(judge={"minReady": "10m"})
        notes = {"metadata": {"annotations": {STAGED_REMOVAL: "true"}}}
        await hub.shop.patch(EDGE_PLACEMENTS, "web", notes)
        await hub.settle(2)
        await hub.shop.delete(EDGE_PLACEMENTS, "web")
        await hub.settle(60)
        assert await hub.holding() == {"e2", "e3"}
        await hub.shop.patch(
            EDGE_PLACEMENTS, "web", {"metadata": {"annotations": {STAGED_REMOVAL: None}}}
        )
        await hub.settle(10)
        assert await hub.holding() == set()


@virtual
async def test_who_leaves_does_so_at_its_pace_with_every_controller_real() -> None:
    async with chain(5, **SLOWLY) as hub:
        seen: list[int] = []
        for number in range(2, 6):
            await hub.locate(INVENTORY, f"e{number}", {"env": "dev"}, equal(edge=f"e{number}"))
        for _ in range(60):
            await hub.settle(0.5)
            seen.append(len(await hub.holding()))
        assert seen[-1] == 1
        # Each goes when the mailbox of the one before is empty.
        assert {1, 2, 3, 4} <= set(seen)
        assert len(await hub.entries()) == 1


# Where the page is delivered, and what it says there: the canary must have another than the first.
ASKED: dict[str, Any] = {
    "from": {"resources": ["configmaps"]},
    "filter": "report.delivered",
    "select": [
        {"name": "where", "value": "location.name"},
        {"name": "text", "value": "obj.data.text"},
    ],
}
CHECK = {"query": "pages", "holds": "rows.exists(r, r.where == 'e1' && r.text != 'one')"}


@pytest.mark.parametrize("killed", ALL)
@virtual
async def test_whoever_is_killed_again_and_again_changes_no_verdict(killed: str) -> None:
    """One controller alone dies at any moment, and begins anew; the others go on."""
    random = Random(killed)
    hub = ChainHub()
    hub.bad.add("broken")
    others = [name for name in ALL if name != killed]
    async with hub.running("shop", "imw"), hub.synced(), hub.controlled(*others):

        async def die(times: int) -> None:
            for _ in range(times):
                async with hub.controlled(killed):
                    await hub.settle(random.uniform(0.5, 6))

        await hub.fleet(4)
        await hub.write("one")
        await hub.place(WORKLOAD, "web", equal(env="prod"), namespaceSelector=equal(goes="out"))
        await hub.roll_out(**QUICK)
        await hub.ask("pages", ASKED)
        for page in ("two", "broken"):
            await die(3)
            async with hub.controlled(killed):
                await hub.settle(30)
            await hub.edit(judge={"checks": [CHECK]})
            await hub.write(page)
        await die(8)
        async with hub.controlled(killed):
            await hub.settle(60)
        assert await hub.phase() == "RolledBack"
        assert set(running(hub).values()) == {"two"}
        assert {edge for edge, ran in hub.ran.items() if "broken" in ran} == {"e1"}
        await assert_promises_kept(hub.store)
        found = (await hub.shop.list(PLACEMENT_REVISIONS)).items
        verdicts = {each["spec"]["number"]: each["status"]["verdict"] for each in found}
        assert verdicts == {1: "Good", 2: "Good", 3: "Bad"}


@virtual
async def test_a_wave_waits_until_the_query_that_its_check_names_says_so() -> None:
    async with chain(3) as hub, hub.controlled("status-queries"):
        await hub.ask("pages", ASKED)
        await hub.edit(judge={"checks": [{**CHECK, "holds": "rows.all(r, r.text != 'two')"}]})
        await hub.write("two")
        await hub.settle(60)
        assert running(hub) == {"e1": "two", "e2": "one", "e3": "one"}
        assert (await hub.conditions())["Stalled"] == ("True", "CheckFailed")
        await hub.edit(judge={"checks": [CHECK]})
        await hub.settle(60)
        assert set(running(hub).values()) == {"two"}


MIN_READY, SOAK = 2, 5


class Days:
    """What happens to a fleet: edits, edges that come, go and fall silent, and clocks that jump."""

    def __init__(self, hub: ChainHub, seed: int) -> None:
        self.hub, self.random = hub, Random(seed)

    async def happen(self, number: int) -> None:
        hub, random = self.hub, self.random
        match random.randint(0, 7):
            case 0 | 1:
                await hub.write("broken")
            case 2 | 3:
                await hub.write(f"page {number}")
            case 4:
                hub.offline ^= {random.choice(["e2", "e3", "e4"])}
            case 5:
                await hub.fleet(5)
            case 6:
                await hub.locate(INVENTORY, "e4", {"env": "dev"}, equal(edge="e4"))
            case _:
                hub.clock.ahead_seconds += random.choice([-30, 600])
                # Without a Rollout of its own it holds nothing, and is sent what the other holds.
                canary = equal(ring="canary")
                await hub.place(WORKLOAD, "also", canary, namespaceSelector=equal(goes="out"))


async def assert_in_waves(hub: ChainHub) -> None:
    """Check that nobody ran what the canary had not run long enough before."""
    assert {edge for edge, ran in hub.ran.items() if "broken" in ran} <= {"e1"}
    adopted = await hub.adopted()
    for (_, text), at in hub.began.items():
        first = hub.began["e1", text]
        # Those that are new wait until the canary is judged: what is there first does not soak.
        soak = 0 if text == adopted else SOAK
        assert at == first or at - first >= MIN_READY + soak, f"{text} was there too early"


# Every controller is real, for an hour of virtual time.
@pytest.mark.parametrize("seed", seeds_of(10))
@virtual
async def test_whatever_happens_bad_pages_stay_with_the_canary_and_good_ones_arrive(
    seed: int,
) -> None:
    hub = ChainHub(seed, Rates(0.02, 0.02, 0.01, 0.01, 0.01))
    hub.bad.add("broken")
    days = Days(hub, seed)
    random = days.random
    spec = {**QUICK, "waves": [{**WAVES[0], "soak": f"{SOAK}s"}], "offline": {"after": "60s"}}
    async with hub.running("shop", "imw"), hub.synced():
        await hub.fleet(4)
        await hub.write("one")
        await hub.place(WORKLOAD, "web", equal(env="prod"), namespaceSelector=equal(goes="out"))
        await hub.roll_out(**spec, pace={"concurrency": 2, "maxUnavailable": 3})
        for step in range(4):
            # Whoever ran is killed here, whatever it was about, and begins anew.
            async with hub.controlled(*CHAIN):
                await asyncio.sleep(random.choice([7, 25, 60]))
                await days.happen(step)
                await asyncio.sleep(random.uniform(0, random.choice([1, 3, 20])))
        hub.offline = {random.choice(["e2", "e3", "nobody"])}
        async with hub.controlled(*CHAIN):
            await hub.fleet(4)
            await hub.write("last")
            await hub.settle(400)
            assert await hub.phase() == "Completed", await hub.rollout()
            assert {text for edge, text in running(hub).items() if edge not in hub.offline} == {
                "last"
            }
            hub.offline.clear()
            await hub.settle(120)
        assert set(running(hub).values()) == {"last"}
        await assert_in_waves(hub)
        await assert_promises_kept(hub.store)


@virtual
async def test_what_a_guard_holds_delays_no_content_no_return_and_nobody_else() -> None:
    async with chain(4) as hub:
        budget = {"of": "DestinationsRemoved", "max": 0}
        guard = {"apiVersion": EDGE, "kind": "PlacementGuard", "metadata": {"name": "own"}}
        await hub.shop.create(PLACEMENT_GUARDS, {**guard, "spec": {"budgets": [budget]}})
        await hub.settle(2)
        for number in (3, 4):
            await hub.locate(INVENTORY, f"e{number}", {"env": "dev"}, equal(edge=f"e{number}"))
        await hub.write("two")
        await hub.settle(60)
        placement = await hub.shop.get(EDGE_PLACEMENTS, "web")
        assert placement["status"]["removals"]["held"]["removed"] == 2
        assert running(hub) == dict.fromkeys(("e1", "e2", "e3", "e4"), "two")
        hub.bad.add("broken")
        await hub.write("broken")
        await hub.settle(60)
        assert await hub.phase() == "RolledBack"
        assert set(running(hub).values()) == {"two"}
        await hub.edge(5)
        await hub.remove(INVENTORY, SYNC_TARGETS, "e4")
        await hub.settle(60)
        assert set(await hub.revisions()) == {"e1", "e2", "e3", "e5"}
        assert running(hub)["e5"] == "two"
