"""The real edge scheduler rolls out on a real hub; translator and judge are played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from skerry.api.edge import (
    ABORT,
    ACCEPT,
    EDGE_PLACEMENTS,
    PLACEMENT_GUARDS,
    PLACEMENT_REVISIONS,
    PROMOTE,
    ROLLOUT_APPROVALS,
    ROLLOUTS,
    UNDO,
)
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.kinds import GroupVersionResource
from skerry.controllers.edge_scheduler.rollout_plan import wishes_of
from skerry.logic.fleet.rollout.state import Wishes
from tests.kit.chain.building import equal
from tests.kit.chain.rollout_hub import INVENTORY, WORKLOAD, RolloutHub
from tests.kit.sim.loop import virtual

CANARY = [{"name": "canary", "selector": equal(ring="canary")}]


def departing(number: int) -> dict[str, Any]:
    """Return the spec of a Rollout that lets so many go at once."""
    return {"leaving": {"concurrency": number}}


@asynccontextmanager
async def rolling(edges: int = 4, **spec: Any) -> AsyncIterator[RolloutHub]:
    """Run a hub whose placement has its first revision everywhere."""
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        await hub.fleet(edges)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.settle(2)
        await hub.roll_out(waves=CANARY, **spec)
        await hub.settle(2)
        await hub.cut(1)
        await hub.settle(2)
        await hub.judge()
        yield hub


@virtual
async def test_destinations_that_were_there_are_pinned_to_the_first_revision() -> None:
    async with rolling() as hub:
        assert await hub.revisions() == {"e1": 1, "e2": 1, "e3": 1, "e4": 1}
        assert sorted(each["slot"] for each in await hub.entries()) == [1, 2, 3, 4]
        assert await hub.phase() == "Completed"
        revision = await hub.shop.get(PLACEMENT_REVISIONS, "web-1")
        assert revision["status"]["verdict"] == "Good"
        assert (await hub.conditions())["Ready"] == ("True", "Completed")


@virtual
async def test_the_canary_gets_it_first_and_the_others_when_it_is_good() -> None:
    async with rolling() as hub:
        await hub.cut(2)
        await hub.settle(2)
        assert await hub.revisions() == {"e1": 2, "e2": 1, "e3": 1, "e4": 1}
        status = (await hub.rollout())["status"]
        assert (status["phase"], status["wave"]["name"]) == ("Progressing", "canary")
        assert status["counts"]["target"] == 1
        assert (await hub.conditions())["Ready"][0] == "False"
        await hub.judge()
        assert await hub.revisions() == {"e1": 2, "e2": 2, "e3": 2, "e4": 2}
        await hub.judge()
        assert await hub.phase() == "Completed"
        assert (await hub.rollout())["status"]["stable"] == 2


@virtual
async def test_a_bad_canary_brings_everything_back_and_stalls() -> None:
    async with rolling() as hub:
        await hub.cut(2)
        await hub.settle(2)
        await hub.judge(bad={"e1"})
        assert await hub.revisions() == {"e1": 1, "e2": 1, "e3": 1, "e4": 1}
        assert await hub.phase() == "RollingBack"
        await hub.judge()
        assert await hub.phase() == "RolledBack"
        assert (await hub.shop.get(PLACEMENT_REVISIONS, "web-2"))["status"]["verdict"] == "Bad"
        assert (await hub.conditions())["Stalled"][0] == "True"
        patch = {"status": {"verdict": "Candidate"}}
        await hub.shop.patch(PLACEMENT_REVISIONS, "web-2", patch, subresource="status")
        await hub.settle(2)
        assert (await hub.revisions())["e1"] == 2


@virtual
async def test_a_bad_revision_is_not_given_again_while_its_verdict_is_on_its_way() -> None:
    async with rolling() as hub:
        await hub.cut(2)
        await hub.settle(2)
        with hub.faults.behind("placementrevisions"):
            await hub.judge(bad={"e1"})
            await hub.judge()
            assert await hub.phase() == "RolledBack"
            assert (await hub.revisions())["e1"] == 1
        await hub.settle(2)
        assert await hub.phase() == "RolledBack"


@virtual
async def test_who_leads_next_asks_for_a_verdict_that_has_not_reached_it() -> None:
    hub = RolloutHub()
    name = "edge-scheduler"
    first, second = hub.standing_by(name), hub.standing_by(name)
    async with hub.running("shop", "imw"), first as one, second as other:
        leads = one()
        await hub.fleet(2)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.roll_out(waves=CANARY)
        await hub.cut(1)
        await hub.settle(2)
        await hub.judge()
        await hub.cut(2)
        await hub.settle(2)
        with hub.faults.behind("placementrevisions"):
            await hub.judge(bad={"e1"})
            await hub.judge()
            leads.cancel()
            other()
            await hub.settle(2)
            assert await hub.phase() == "RolledBack"
            assert (await hub.revisions())["e1"] == 1


@virtual
async def test_an_attempt_whose_answer_was_lost_is_not_counted_twice() -> None:
    async with rolling() as hub:
        with hub.faults.behind("rollouts"):
            hub.faults.lose_answer("rollouts/web/status")
            await hub.cut(2)
            await hub.settle(0.001)
            assert (await hub.rollout())["status"]["target"] == 2
            await hub.cut(3)
            await hub.settle(2)
            status = (await hub.rollout())["status"]
            assert (status["attempt"], status["target"]) == (3, 3)


@virtual
async def test_a_soak_ends_by_itself_and_survives_a_restart() -> None:
    waves = [{"name": "canary", "selector": equal(ring="canary"), "soak": "10m"}]
    hub = RolloutHub()
    async with hub.running("shop", "imw"):
        async with hub.controlled("edge-scheduler"):
            await hub.fleet(2)
            await hub.place(WORKLOAD, "web", equal(env="prod"))
            await hub.roll_out(waves=waves)
            await hub.cut(1)
            await hub.settle(2)
            await hub.judge()
            await hub.cut(2)
            await hub.settle(2)
            await hub.judge()
            assert await hub.phase() == "Soaking"
            await hub.settle(200)
        before = (await hub.rollout())["status"]["wave"]["quietSince"]
        async with hub.controlled("edge-scheduler"):
            await hub.settle(200)
            assert (await hub.rollout())["status"]["wave"]["quietSince"] == before
            assert (await hub.revisions())["e2"] == 1
            await hub.settle(250)
            assert (await hub.revisions())["e2"] == 2


@virtual
async def test_an_approval_is_asked_for_and_waited_for() -> None:
    async with rolling() as hub:
        await hub.edit(waves=[{**CANARY[0], "approval": True}])
        await hub.cut(2)
        await hub.settle(2)
        await hub.judge()
        assert await hub.phase() == "Awaiting"
        asked = (await hub.shop.get(ROLLOUT_APPROVALS, "web-2-canary"))["spec"]
        assert (asked["rollout"], asked["revision"], asked["wave"]) == ("web", 2, "canary")
        assert (await hub.revisions())["e2"] == 1
        await hub.approve("web-2-canary")
        assert (await hub.revisions())["e2"] == 2


@virtual
async def test_an_edge_that_joins_gets_the_stable_revision_and_one_that_goes_leaves() -> None:
    async with rolling() as hub:
        await hub.cut(2)
        await hub.settle(2)
        await hub.fleet(5)
        await hub.settle(2)
        assert (await hub.revisions())["e5"] == 1
        await hub.locate(INVENTORY, "e4", {"env": "dev"}, equal(edge="e4"))
        await hub.settle(2)
        assert set(await hub.revisions()) == {"e1", "e2", "e3", "e5"}


@virtual
async def test_newcomers_are_let_in_as_many_at_once_as_may_join() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        await hub.fleet(5)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.roll_out(joining={"concurrency": 2})
        await hub.cut(1)
        await hub.settle(20)
        assert len(await hub.entries()) == 2
        await hub.judge()
        assert len(await hub.entries()) == 4
        await hub.judge()
        assert len(await hub.entries()) == 5
        assert sorted(each["slot"] for each in await hub.entries()) == [1, 2, 3, 4, 5]


@virtual
async def test_people_promote_abort_undo_and_force() -> None:
    async with rolling() as hub:
        await hub.edit(waves=[{**CANARY[0], "soak": "24h"}])
        await hub.cut(2)
        await hub.settle(2)
        await hub.judge()
        await hub.annotate(promote="2/canary")
        await hub.settle(2)
        assert set((await hub.revisions()).values()) == {2}
        await hub.annotate(abort="2")
        await hub.settle(2)
        await hub.judge()
        assert await hub.phase() == "RolledBack"
        assert (await hub.rollout())["status"]["failure"]["reason"] == "Aborted"
        await hub.edit(force={"revision": 2, "reason": "INC-77"})
        await hub.settle(2)
        assert set((await hub.revisions()).values()) == {2}


@virtual
async def test_a_rollout_without_placement_says_so_and_one_that_is_deleted_waits() -> None:
    async with rolling() as hub:
        body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "Rollout", "spec": {}}
        await hub.shop.create(ROLLOUTS, {**body, "metadata": {"name": "other"}})
        await hub.settle(2)
        other = await hub.shop.get(ROLLOUTS, "other")
        reasons = {c["type"]: c["reason"] for c in other["status"]["conditions"]}
        assert reasons["Valid"] == "NoPlacement"
        await hub.cut(2)
        await hub.settle(2)
        await hub.shop.delete(ROLLOUTS, "web")
        await hub.settle(2)
        assert (await hub.rollout())["metadata"]["deletionTimestamp"]
        await hub.annotate(release="2")
        await hub.settle(2)
        names = {e["metadata"]["name"] for e in (await hub.shop.list(ROLLOUTS)).items}
        assert names == {"other"}
        assert set((await hub.revisions()).values()) == {0}


@virtual
async def test_without_a_rollout_slices_say_nothing_of_slots() -> None:
    hub = RolloutHub()
    async with hub.running("shop", "imw"), hub.controlled("edge-scheduler"):
        await hub.fleet(2)
        await hub.place(WORKLOAD, "web", equal(env="prod"))
        await hub.settle(2)
        assert all("slot" not in each for each in await hub.entries())
        placement = await hub.shop.get(EDGE_PLACEMENTS, "web")
        assert placement["status"]["destinationCount"] == 2


@virtual
async def test_conditions_of_others_stay_and_gate_a_wave() -> None:
    async with rolling(judge={"minReady": "0s", "external": ["smoke"]}) as hub:
        await hub.cut(2)
        await hub.settle(2)
        await hub.judge()
        assert (await hub.conditions())["Stalled"] == ("True", "ExternalCheck")
        status = (await hub.rollout())["status"]
        smoke = {"type": "smoke", "status": "True", "reason": "Fine", "message": "",
                 "lastTransitionTime": "2030-01-01T00:00:00Z"}  # fmt: skip
        patch = {"status": {"conditions": [*status["conditions"], smoke]}}
        await hub.shop.patch(ROLLOUTS, "web", patch, subresource="status")
        await asyncio.sleep(2)
        assert (await hub.revisions())["e2"] == 2
        assert "smoke" in await hub.conditions()


@virtual
async def test_a_rollout_that_a_freeze_holds_goes_on_when_the_freeze_ends() -> None:
    async with rolling() as hub:
        begins = hub.clock.now() + timedelta(minutes=2)
        freeze = {
            "name": "night",
            "schedule": f"{begins.minute} {begins.hour} * * *",
            "duration": "10m",
            "timeZone": "UTC",
            "stops": ["Content"],
        }
        guard = {"metadata": {"name": "own"}, "spec": {"freezes": [freeze]}}
        await hub.shop.create(PLACEMENT_GUARDS, {"kind": "PlacementGuard", **guard})
        await hub.settle(150)
        await hub.cut(2)
        await hub.settle(60)
        assert set((await hub.revisions()).values()) == {1}
        assert (await hub.conditions())["Stalled"] == ("True", "Held")
        await hub.settle(600)
        assert (await hub.revisions())["e1"] == 2


@virtual
async def test_a_wave_that_selects_nobody_is_passed_with_an_event() -> None:
    async with rolling() as hub:
        nobody = {"name": "nobody", "selector": equal(ring="none")}
        await hub.edit(waves=[nobody, *CANARY])
        await hub.cut(2)
        await hub.settle(2)
        assert (await hub.rollout())["status"]["wave"]["name"] == "canary"
        events = GroupVersionResource("", "v1", "events")
        found = {each["reason"]: each["message"] for each in (await hub.shop.list(events)).items}
        assert found["WaveEmpty"] == "revision 2: wave nobody selects nobody and is passed"


@virtual
async def test_a_missing_query_closes_the_gate_and_says_so() -> None:
    checks = [{"query": "errors", "holds": "rows.all(r, r.rate < 0.01)"}]
    async with rolling(judge={"minReady": "0s", "checks": checks}) as hub:
        await hub.cut(2)
        await hub.settle(2)
        await hub.judge()
        assert await hub.phase() == "Soaking"
        assert (await hub.conditions())["Stalled"] == ("True", "QueryMissing")
        assert (await hub.revisions())["e2"] == 1


@virtual
async def test_destinations_leave_as_many_at_once_as_may() -> None:
    async with rolling(6, **departing(2)) as hub:
        for number in range(2, 7):
            await hub.locate(INVENTORY, f"e{number}", {"env": "dev"}, equal(edge=f"e{number}"))
        await hub.settle(20)
        assert len(await hub.entries()) == 4
        # One of those that wait is wanted again.
        waiting = max(await hub.revisions())
        await hub.locate(INVENTORY, waiting, {"env": "prod"}, equal(edge=waiting))
        await hub.judge()
        assert len(await hub.entries()) == 2
        await hub.judge()
        assert set(await hub.revisions()) == {"e1", waiting}
        await hub.judge()
        assert "departing" not in (await hub.rollout())["status"]


@virtual
async def test_who_is_not_there_any_more_leaves_at_once() -> None:
    async with rolling(6, **departing(1)) as hub:
        for number in range(2, 6):
            await hub.at(INVENTORY).delete(SYNC_TARGETS, f"e{number}")
        await hub.settle(5)
        assert set(await hub.revisions()) == {"e1", "e6"}


@virtual
async def test_guards_are_asked_once_about_all_that_leave_however_slowly() -> None:
    async with rolling(4, **departing(1)) as hub:
        budget = {"of": "DestinationsRemoved", "max": 1}
        guard = {"metadata": {"name": "own"}, "spec": {"budgets": [budget]}}
        await hub.shop.create(PLACEMENT_GUARDS, {"kind": "PlacementGuard", **guard})
        await hub.settle(2)
        for number in range(2, 5):
            await hub.locate(INVENTORY, f"e{number}", {"env": "dev"}, equal(edge=f"e{number}"))
        await hub.settle(10)
        held = len(await hub.entries())
        assert held >= 3
        placement = await hub.shop.get(EDGE_PLACEMENTS, "web")
        token = placement["status"]["removals"]["held"]["name"]
        notes = {"metadata": {"annotations": {"edge.kcp.io/confirm": token}}}
        await hub.shop.patch(EDGE_PLACEMENTS, "web", notes)
        for _ in range(4):
            await hub.settle(2)
            await hub.judge()
        assert set(await hub.revisions()) == {"e1"}


def asked(**annotations: str) -> Wishes:
    keys = {"promote": PROMOTE, "abort": ABORT, "accept": ACCEPT, "undo": UNDO}
    notes = {keys[name]: text for name, text in annotations.items()}
    return wishes_of({"metadata": {"name": "web", "annotations": notes}})


def test_people_ask_by_annotations_that_name_what_they_are_about() -> None:
    assert asked() == Wishes()
    assert asked(promote="42/early", abort="42", accept="42@3", undo="40@42") == Wishes(
        "42/early", 42, (42, 3), (40, 42)
    )


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²", "٣", "9" * 5000, " 4"])
def test_what_is_malformed_asks_for_nothing(text: str) -> None:
    assert asked(abort=text).abort == 0
    assert asked(accept=f"{text}@{text}").accept == (0, 0)
    assert asked(undo=f"40@{text}").undo == (40, 0)


def test_half_a_pair_is_the_first_half() -> None:
    assert asked(undo="40").undo == (40, 0)
    assert asked(undo="@42").undo == (0, 42)
