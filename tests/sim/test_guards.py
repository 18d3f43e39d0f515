"""Guards on a real hub: no more goes than the budget, whatever the script or the crash."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from random import Random
from typing import Any

import orjson
import pytest

from skerry.api.edge import (
    CONFIRM,
    EDGE_PLACEMENTS,
    GUARD_FINALIZER,
    PLACEMENT_GUARDS,
    SINGLE_PLACEMENT_SLICES,
    placement_of_slice,
)
from skerry.api.errors import ApiError, Conflict, NotFound
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS, WORKSPACES
from skerry.api.objects import Object
from tests.kit.chain.building import equal
from tests.kit.chain.edge_scheduler_hub import PROVIDER, Hub
from tests.kit.chain.translator_hub import CONFIG_MAPS
from tests.kit.chain.written import Write, writes
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

_FEW = seeds_of(12, least=3)
SCHEDULER = "edge-scheduler"
IMW, SHOP = "root:imw", "root:shop"
_BUDGET = {"of": "DestinationsRemoved", "max": 10, "percent": 5, "window": "10m"}


async def furnish(hub: Hub, count: int) -> None:
    """Make an inventory, and one placement of all that is in production; faults go on."""
    for number in range(count):
        await hub.locate(IMW, f"l{number}", {"env": "prod"}, equal(n=str(number)))
        await hub.target(IMW, f"t{number}", {"n": str(number)})
    await hub.place(SHOP, "web", equal(env="prod"))
    await asyncio.sleep(120)


async def guard(hub: Hub, workspace: str, name: str = "fleet", **spec: Any) -> None:
    body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "PlacementGuard"}
    await hub.at(workspace).create(
        PLACEMENT_GUARDS, {**body, "metadata": {"name": name}, "spec": spec}
    )


async def relabel(hub: Hub, numbers: range, env: str) -> None:
    for number in numbers:
        await hub.at(IMW).patch(LOCATIONS, f"l{number}", {"metadata": {"labels": {"env": env}}})


async def there(hub: Hub) -> set[str]:
    found = await hub.destinations()
    return {each.location for destinations in found.values() for each in destinations}


async def held(hub: Hub, part: str = "held") -> Object | None:
    obj = await hub.at(SHOP).get(EDGE_PLACEMENTS, "web")
    found: Object | None = ((obj.get("status") or {}).get("removals") or {}).get(part)
    return found


async def confirm(hub: Hub, name: str) -> None:
    patch = {"metadata": {"annotations": {CONFIRM: name}}}
    await hub.at(SHOP).patch(EDGE_PLACEMENTS, "web", patch)


@virtual
async def test_a_script_that_relabels_everything_is_stopped_at_the_budget() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await hub.bind(PROVIDER)
        await guard(hub, PROVIDER, budgets=[_BUDGET])
        await furnish(hub, 16)
        await relabel(hub, range(14), "test")
        await hub.settle()
        left = await there(hub)
        assert len(left) >= 6, "more than the budget has gone"
        waiting = await held(hub)
        assert waiting is not None
        assert waiting["removed"] == len(left) - 2
        assert waiting["guards"] == ["fleet"]
        assert "within 10m (budget 10)" in waiting["why"]
        status = (await hub.at(PROVIDER).get(PLACEMENT_GUARDS, "fleet"))["status"]
        assert [(e["placement"], e["name"]) for e in status["held"]] == [
            ("root:shop|web", waiting["name"])
        ]
        assert {c["type"]: c["status"] for c in status["conditions"]} == {
            "Valid": "True",
            "Holding": "True",
        }
        # An hour later it is still held; additions go on; another's name lets nothing go.
        await asyncio.sleep(3_600)
        await hub.locate(IMW, "new", {"env": "prod"}, equal(n="0"))
        await confirm(hub, "000000")
        await hub.settle()
        assert await there(hub) == {*left, "new"}
        await confirm(hub, waiting["name"])
        await hub.settle()
        assert await there(hub) == {"new", "l14", "l15"}
        assert await held(hub) is None
        placement = await hub.at(SHOP).get(EDGE_PLACEMENTS, "web")
        assert CONFIRM not in placement["metadata"].get("annotations", {})


@virtual
async def test_a_person_is_stopped_at_the_door_and_a_wrong_backup_by_the_scheduler() -> None:
    """120 Locations; what admission counts is what the scheduler then does."""
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await hub.bind(PROVIDER)
        await guard(hub, PROVIDER, budgets=[{**_BUDGET, "max": 50}])
        await furnish(hub, 120)
        ann = hub.ann.at("", IMW)
        test = {"metadata": {"labels": {"env": "test"}}}
        for number in range(50):
            await ann.patch(LOCATIONS, f"l{number}", test)
        with pytest.raises(Conflict) as refused:
            await ann.patch(LOCATIONS, "l50", test)
        message = refused.value.message
        assert "destinations within 10m (budget 50)" in message
        assert "bring removals of placement root:shop|web to 51 of" in message
        await hub.settle()
        everywhere = {f"l{n}" for n in range(120)}
        gone = {f"l{n}" for n in range(50)}
        assert await there(hub) == everywhere - gone
        assert await held(hub) is None
        # What is confirmed at the door is not asked about again.
        [token] = re.findall(f"{CONFIRM}=([0-9a-f]+)", message)
        await ann.patch(LOCATIONS, "l50", {"metadata": {"annotations": {CONFIRM: token}}})
        passed = await ann.patch(LOCATIONS, "l50", test)
        assert CONFIRM not in passed["metadata"].get("annotations", {})
        await hub.settle()
        assert await there(hub) == everywhere - gone - {"l50"}
        # A backup comes back by no request: administrators are not asked, and nothing goes.
        await relabel(hub, range(51, 120), "old")
        await hub.settle()
        assert await there(hub) == everywhere - gone - {"l50"}
        waiting = await held(hub)
        assert waiting is not None
        assert waiting["removed"] == 69


@virtual
async def test_without_any_guard_a_decision_that_removes_most_is_held() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await furnish(hub, 52)
        everywhere = await there(hub)
        await hub.place(SHOP, "web", equal(env="none"))
        await hub.settle()
        assert await there(hub) == everywhere
        waiting = await held(hub)
        assert waiting is not None
        assert "the built-in floor" in waiting["why"]
        # What has no SyncTarget any more goes at once.
        await hub.remove(IMW, SYNC_TARGETS, "t0")
        await hub.settle()
        assert await there(hub) == everywhere - {"l0"}
        # What is wanted again is held no more; the rest fits the budget.
        await hub.place(SHOP, "web", equal(env="prod"))
        await hub.settle()
        assert await there(hub) == everywhere - {"l0"}
        assert await held(hub) is None


@virtual
async def test_a_restart_keeps_what_is_held_and_a_guard_that_is_deleted_releases_nothing() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"):
        async with hub.controlled(SCHEDULER):
            await guard(hub, SHOP, budgets=[{"of": "DestinationsRemoved", "max": 2}])
            await furnish(hub, 5)
            await hub.place(SHOP, "web", equal(env="none"))
            await hub.settle()
            before = await held(hub)
            assert before is not None
            assert before["guards"] == ["./fleet"]
        async with hub.controlled(SCHEDULER):
            await hub.remove(SHOP, PLACEMENT_GUARDS, "fleet")
            await hub.settle()
            assert len(await there(hub)) == 5
            assert await held(hub) == before
            await confirm(hub, before["name"])
            await hub.settle()
            assert await there(hub) == set()


@virtual
async def test_the_deletion_of_a_large_placement_asks_once_and_that_of_a_small_one_does_not() -> (
    None
):
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await furnish(hub, 51)
        await hub.place(SHOP, "small", equal(env="none"))
        await hub.settle()
        placement = await hub.at(SHOP).get(EDGE_PLACEMENTS, "web")
        assert placement["metadata"]["finalizers"] == [GUARD_FINALIZER]
        await hub.remove(SHOP, EDGE_PLACEMENTS, "small")
        await hub.remove(SHOP, EDGE_PLACEMENTS, "web")
        await hub.settle()
        with pytest.raises(NotFound):
            await hub.at(SHOP).get(EDGE_PLACEMENTS, "small")
        assert len(await there(hub)) == 51
        waiting = await held(hub)
        assert waiting is not None
        await confirm(hub, waiting["name"])
        await hub.settle()
        with pytest.raises(NotFound):
            await hub.at(SHOP).get(EDGE_PLACEMENTS, "web")


@virtual
async def test_a_person_who_deletes_a_large_placement_is_asked_once() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await hub.bind(PROVIDER)
        await guard(hub, PROVIDER, budgets=[_BUDGET])
        await furnish(hub, 51)
        ann = hub.ann.at("", SHOP)
        with pytest.raises(Conflict) as refused:
            await ann.delete(EDGE_PLACEMENTS, "web")
        [token] = re.findall(f"{CONFIRM}=([0-9a-f]+)", refused.value.message)
        await ann.patch(EDGE_PLACEMENTS, "web", {"metadata": {"annotations": {CONFIRM: token}}})
        await ann.delete(EDGE_PLACEMENTS, "web")
        await hub.settle()
        with pytest.raises(NotFound):
            await hub.at(SHOP).get(EDGE_PLACEMENTS, "web")


@virtual
async def test_a_deleted_workspace_stays_with_all_it_has_until_a_person_confirms() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await furnish(hub, 51)
        space = {"metadata": {"name": "kept"}, "data": {"k": "v"}}
        await hub.at(SHOP).create(CONFIG_MAPS, space, "default")
        await hub.remove("root", WORKSPACES, "shop")
        await hub.settle()
        assert len(await there(hub)) == 51
        assert await hub.at(SHOP).get(CONFIG_MAPS, "kept", "default")
        waiting = await held(hub)
        assert waiting is not None
        await confirm(hub, waiting["name"])
        await hub.settle()
        with pytest.raises(NotFound):
            await hub.at("root").get(WORKSPACES, "shop")
        assert await there(hub) == set()


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_a_guard_that_observes_leaves_the_history_of_slices_as_it_is(seed: int) -> None:
    random = Random(seed)
    moves = [(random.randrange(4), random.choice(["prod", "test"])) for _ in range(6)]
    histories = []
    for mode in (None, "Observe"):
        hub = Hub()
        async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
            if mode is not None:
                budget = {"of": "DestinationsRemoved", "max": 1, "window": "1h"}
                await guard(hub, SHOP, mode=mode, budgets=[budget])
            await furnish(hub, 4)
            for number, env in moves:
                await relabel(hub, range(number, number + 1), env)
                await hub.settle()
        histories.append([write.obj for write in await slice_writes(hub)])
    assert without_identities(histories[0]) == without_identities(histories[1])


def without_identities(slices: list[Object | None]) -> list[bytes]:
    """Return slices byte for byte, but for what one object more moves, and when it was."""
    moving = (
        rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        rb'|"(cluster|kcp\.io/cluster|resourceVersion|time|creationTimestamp)":"[^"]*"'
    )
    return [re.sub(moving, b"", orjson.dumps(each)) for each in slices]


@virtual
async def test_a_freeze_stops_joining_and_departing_until_it_ends() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await furnish(hub, 3)
        now = hub.clock.now()
        begins = f"{now.minute} {now.hour} * * *"
        stops = ["Joining", "Leaving"]
        freeze = {"name": "f", "schedule": begins, "duration": "2h", "stops": stops}
        await guard(hub, SHOP, freezes=[freeze])
        await hub.settle()
        await relabel(hub, range(1), "test")
        await hub.locate(IMW, "new", {"env": "prod"}, equal(n="1"))
        await hub.remove(IMW, SYNC_TARGETS, "t2")
        await hub.settle()
        assert await there(hub) == {"l0", "l1"}
        await asyncio.sleep(7_300)
        assert await there(hub) == {"l1", "new"}


@virtual
async def test_a_protected_location_asks_however_small_the_loss() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await furnish(hub, 3)
        protect = [{"kind": "Location", "names": ["l1"], "against": ["Delete", "Relabel"]}]
        await guard(hub, SHOP, protect=protect)
        await relabel(hub, range(1), "test")
        await hub.settle()
        assert await there(hub) == {"l1", "l2"}
        await hub.remove(IMW, LOCATIONS, "l1")
        await hub.settle()
        assert await there(hub) == {"l1", "l2"}
        waiting = await held(hub)
        assert waiting is not None
        assert waiting["why"] == "PlacementGuard ./fleet protects Location l1"


async def slice_writes(hub: Hub) -> list[Write]:
    return await writes(hub.store, SINGLE_PLACEMENT_SLICES)


async def written(hub: Hub) -> list[list[str]]:
    """Return the Locations that each write of a slice of the placement held."""
    return [
        [each["locationName"] for each in write.obj["destinations"]]
        for write in await slice_writes(hub)
        if write.obj is not None and placement_of_slice(write.obj) == "web"
    ]


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_within_any_window_no_more_goes_than_the_budget_whatever_happens(seed: int) -> None:
    """Scripts, faults and two schedulers; nobody confirms anything."""
    hub = Hub(seed, Rates())
    count, limit = 12, 3
    async with hub.running("imw", "shop"):
        async with hub.controlled(SCHEDULER):
            budget = {"of": "DestinationsRemoved", "max": limit, "window": "1h"}
            await guard(hub, SHOP, budgets=[budget])
            await furnish(hub, count)
            assert len(await there(hub)) == count
        for _ in range(3):
            async with hub.controlled(SCHEDULER), hub.standing_by(SCHEDULER) as lead:
                task = lead()
                for _ in range(8):
                    number = int(hub.ids.fraction() * count)
                    env = "prod" if hub.ids.fraction() < 0.3 else "test"
                    with suppress(ApiError):
                        await relabel(hub, range(number, number + 1), env)
                    await asyncio.sleep(hub.ids.fraction())
                task.cancel()
        async with hub.controlled(SCHEDULER):
            await hub.settle()
            # All of it happened within an hour.
            assert len(await lost(hub)) <= limit
            await assert_only_removals_wait(hub)


async def assert_only_removals_wait(hub: Hub) -> None:
    """Check that whoever is wanted is there, and that who has no SyncTarget any more is not."""
    wanted = {
        each["metadata"]["name"]
        for each in (await hub.at(IMW).list(LOCATIONS)).items
        if each["metadata"].get("labels", {}).get("env") == "prod"
    }
    found = await there(hub)
    assert wanted <= found
    some = min(found)
    await hub.remove(IMW, SYNC_TARGETS, f"t{some.removeprefix('l')}")
    await hub.settle()
    assert await there(hub) == found - {some}


async def lost(hub: Hub) -> set[str]:
    """Return the Locations that slices lost at any time."""
    gone: set[str] = set()
    before: set[str] = set()
    for now in map(set, await written(hub)):
        gone |= before - now
        before = now
    return gone


async def misbehave(hub: Hub, count: int) -> None:
    """Do what people and scripts do to a fleet, by requests that are asked and others."""
    number, dice = int(hub.ids.fraction() * count), hub.ids.fraction()
    client = hub.ann.at("", IMW) if dice < 0.5 else hub.at(IMW)
    env = "prod" if hub.ids.fraction() < 0.3 else "test"
    with suppress(ApiError):
        if dice < 0.9:
            change = {"metadata": {"labels": {"env": env}}}
            await client.patch(LOCATIONS, f"l{number}", change)
        else:
            await hub.place(SHOP, "web", equal(env=env))


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_a_scheduler_that_dies_at_any_moment_lets_no_more_go_than_the_budget(
    seed: int,
) -> None:
    """It is killed between any two steps and started again; whoever leads next goes on."""
    hub = Hub(seed, Rates())
    count, limit = 12, 3
    async with hub.running("imw", "shop"):
        async with hub.controlled(SCHEDULER):
            budget = {"of": "DestinationsRemoved", "max": limit, "window": "1h"}
            await guard(hub, SHOP, budgets=[budget])
            await furnish(hub, count)
        async with hub.standing_by(SCHEDULER) as lead:
            for _ in range(40):
                task = lead()
                await misbehave(hub, count)
                # Mostly in the midst of a reconcile, which takes some milliseconds.
                await asyncio.sleep(hub.ids.fraction() * 0.05)
                task.cancel()
                await asyncio.wait([task])
        async with hub.controlled(SCHEDULER):
            await hub.place(SHOP, "web", equal(env="prod"))
            await hub.settle()
            assert len(await lost(hub)) <= limit
            await assert_only_removals_wait(hub)


@virtual
async def test_a_token_is_good_for_a_quarter_of_an_hour_and_then_there_is_another() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await guard(hub, SHOP, budgets=[{"of": "DestinationsRemoved", "max": 0}])
        await furnish(hub, 2)
        test = {"labels": {"env": "test"}}
        stale = await token_for(hub, test)
        await asyncio.sleep(17 * 60)
        fresh = await token_for(hub, {**test, "annotations": {CONFIRM: stale}})
        assert fresh != stale
        await asyncio.sleep(14 * 60)
        right = {"metadata": {**test, "annotations": {CONFIRM: fresh}}}
        await hub.ann.at("", IMW).patch(LOCATIONS, "l0", right)
        await hub.settle()
        assert await there(hub) == {"l1"}


async def token_for(hub: Hub, metadata: Object) -> str:
    """Return the token that a change of one Location is asked for."""
    with pytest.raises(Conflict) as refused:
        await hub.ann.at("", IMW).patch(LOCATIONS, "l0", {"metadata": metadata})
    [found] = re.findall(f"{CONFIRM}=([0-9a-f]+)", refused.value.message)
    return str(found)


@virtual
async def test_a_time_zone_that_nobody_knows_is_utc_and_the_guard_says_so() -> None:
    hub = Hub()
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await furnish(hub, 2)
        now = hub.clock.now()
        freeze = {
            "name": "f",
            "schedule": f"{now.minute} {now.hour} * * *",
            "duration": "2h",
            "stops": ["Leaving"],
            "timeZone": "label:tz",
        }
        await hub.at(IMW).patch(LOCATIONS, "l0", {"metadata": {"labels": {"tz": "Atlantis"}}})
        await guard(hub, SHOP, freezes=[freeze])
        await hub.settle()
        await relabel(hub, range(1), "test")
        await hub.settle()
        assert await there(hub) == {"l0", "l1"}
        status = (await hub.at(SHOP).get(PLACEMENT_GUARDS, "fleet"))["status"]
        [valid] = [each for each in status["conditions"] if each["type"] == "Valid"]
        assert (valid["status"], "Atlantis" in valid["message"]) == ("True", True)
        await asyncio.sleep(7_300)
        assert await there(hub) == {"l1"}


async def asked_of(hub: Hub, random: Random) -> int:
    """Do something at random, confirm it where that is asked for, and return the number shown."""
    name = f"l{random.randrange(5)}"
    number = name.removeprefix("l")
    env = random.choice(["prod", "prod", "test"])
    where, gvr, subject, change = random.choice(
        [
            (IMW, LOCATIONS, name, {"metadata": {"labels": {"env": env}}}),
            (IMW, LOCATIONS, name, {"spec": {"instanceSelector": equal(n=random.choice("01234"))}}),
            (IMW, SYNC_TARGETS, f"t{number}", {"metadata": {"labels": {"n": number}}}),
            (IMW, SYNC_TARGETS, f"t{number}", {"metadata": {"labels": {"n": "none"}}}),
            (SHOP, EDGE_PLACEMENTS, "web", {"spec": {"locationSelectors": [equal(env=env)]}}),
            (IMW, LOCATIONS, name, None),
        ]
    )
    ann = hub.ann.at("", where)

    async def do() -> None:
        if change is not None:
            await ann.patch(gvr, subject, change)
        else:
            await ann.delete(gvr, subject)
            await hub.locate(IMW, subject, {"env": "gone"}, equal(n=number))

    try:
        await do()
    except Conflict as refused:
        [(shown, token)] = re.findall(rf" to (\d+) .*{CONFIRM}=([0-9a-f]+)", refused.message)
        await ann.patch(gvr, subject, {"metadata": {"annotations": {CONFIRM: token}}})
        await do()
        return int(shown)
    return 0


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_what_a_request_is_shown_is_what_the_scheduler_then_does(seed: int) -> None:
    hub, random = Hub(seed), Random(seed)
    async with hub.running("imw", "shop"), hub.controlled(SCHEDULER):
        await guard(hub, SHOP, budgets=[{"of": "DestinationsRemoved", "max": 0}])
        await furnish(hub, 5)
        for _ in range(15):
            (before,) = (await hub.destinations()).values()
            shown = await asked_of(hub, random)
            await hub.settle(20)
            (after,) = (await hub.destinations()).values()
            assert len(set(before) - set(after)) == shown
            assert await held(hub) is None
