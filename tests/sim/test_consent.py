"""Grants on a real hub: only what is granted comes in, and nothing goes that nobody confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from skerry.api.edge import (
    EDGE_PLACEMENTS,
    LOCATION_CONSENTS,
    LOCATION_GRANTS,
    SINGLE_PLACEMENT_SLICES,
    edge_placement_ref,
)
from skerry.api.errors import ApiError, NotFound
from skerry.api.kcp.resources import API_EXPORTS, LOCATIONS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from tests.kit.chain.building import equal
from tests.kit.chain.edge_scheduler_hub import Hub
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

_FEW = seeds_of(12, least=4)
SCHEDULER = "edge-scheduler"
EVENTS = GroupVersionResource("", "v1", "events")
IMW = "root:imw"


async def furnish(hub: Hub, locations: int = 3) -> None:
    """Make an inventory, and one placement everywhere in each of two workspaces."""
    for number in range(locations):
        region = {"region": "eu" if number % 2 else "us"}
        await hub.locate(IMW, f"l{number}", region, equal(n=str(number)))
        await hub.target(IMW, f"t{number}", {"n": str(number)})
    for tenant in ("shop", "bank"):
        await hub.place(f"root:{tenant}", "p", {})


async def names(hub: Hub, tenant: str) -> list[str]:
    """Return the Locations that a workspace's slices hold, those of the inventory only."""
    cluster = await cluster_of(hub, tenant)
    found = (await hub.destinations()).get(edge_placement_ref(cluster, "p"), [])
    return [each.location for each in found if each.location != "default"]


async def cluster_of(hub: Hub, name: str) -> str:
    return str((await hub.at("root").get(WORKSPACES, name))["spec"]["cluster"])


async def condition(hub: Hub, tenant: str, kind: str = "Granted") -> Object | None:
    found = await hub.at(f"root:{tenant}").get(EDGE_PLACEMENTS, "p")
    return next((c for c in found["status"]["conditions"] if c["type"] == kind), None)


async def events(hub: Hub, workspace: str) -> set[str]:
    found = (await hub.at(workspace).list(EVENTS)).items
    return {each["reason"] for each in found}


@virtual
async def test_without_grants_everybody_is_in_and_nobody_hears_of_grants() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        assert await names(hub, "shop") == await names(hub, "bank") == ["l0", "l1", "l2"]
        assert await condition(hub, "shop") is None
        with pytest.raises(NotFound):
            await hub.consent(IMW)


@virtual
async def test_a_grant_that_observes_reports_both_sides_and_changes_no_slice() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        before = [
            piece["metadata"]["resourceVersion"]
            for piece in await hub.everything(SINGLE_PLACEMENT_SLICES)
        ]
        await hub.grant(IMW, "eu", mode="Observe", paths=["root:shop"], selector=equal(region="eu"))
        await hub.settle()
        after = [
            piece["metadata"]["resourceVersion"]
            for piece in await hub.everything(SINGLE_PLACEMENT_SLICES)
        ]
        assert after == before
        record = await hub.consent(IMW)
        assert (record["mode"], record["held"]) == ("Observe", 0)
        refused = {each["workspace"]: each for each in record["destinations"]["refused"]}
        # The default Location, which every workspace with SyncTargets has, counts as well.
        assert refused["root:bank"]["locations"] == 4
        assert refused["root:shop"]["locations"] == 3
        written = await condition(hub, "bank")
        assert written is not None
        assert (written["status"], written["reason"]) == ("True", "WouldBeRefused")
        assert "root:imw/eu" in written["message"]
        grant = await hub.at(IMW).get(LOCATION_GRANTS, "eu")
        assert (grant["status"]["locations"], grant["status"]["workspaces"]) == (1, 1)
        assert grant["status"]["conditions"][0]["reason"] == "Observing"


@virtual
async def test_enforcing_lets_only_the_granted_in_and_holds_what_runs() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        await hub.grant(IMW, "eu", paths=["root:shop"], selector=equal(region="eu"))
        await hub.settle()
        assert await names(hub, "bank") == ["l0", "l1", "l2"], "what runs stays"
        await hub.locate(IMW, "l9", {"region": "eu"}, equal(n="1"))
        await hub.target(IMW, "t99", {"n": "2"})
        await hub.settle()
        assert await names(hub, "shop") == ["l0", "l1", "l2", "l9"]
        assert await names(hub, "bank") == ["l0", "l1", "l2"], "a new Location does not admit it"
        written = await condition(hub, "bank")
        assert written is not None
        assert (written["status"], written["reason"]) == ("False", "NotGranted")
        assert "not granted by root:imw/eu" in written["message"]
        assert await cluster_of(hub, "imw") not in written["message"]
        assert {"NotGranted"} <= await events(hub, "root:bank")
        assert {"RemovalHeld"} <= await events(hub, IMW)
        grant = await hub.at(IMW).get(LOCATION_GRANTS, "eu")
        assert grant["status"]["conditions"][0]["status"] == "True"


@virtual
async def test_a_confirmation_removes_exactly_what_was_shown() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        await hub.grant(IMW, "eu", paths=["root:shop"], selector=equal(region="eu"))
        await hub.settle()
        held = {h["workspace"]: h for h in (await hub.consent(IMW))["destinations"]["held"]}
        assert held["root:bank"]["locations"] == 4
        # One more is lost before the person has answered: the id is another now.
        await hub.locate(IMW, "l1", {"region": "us"}, equal(n="1"))
        await hub.settle()
        await hub.confirm(IMW, held["root:shop"]["id"], "nonsense")
        await hub.settle()
        assert await names(hub, "shop") == ["l0", "l1", "l2"]
        assert "ConfirmationIgnored" in await events(hub, IMW)
        await hub.confirm(IMW, held["root:bank"]["id"])
        await hub.settle()
        assert await names(hub, "bank") == []
        assert await names(hub, "shop") == ["l0", "l1", "l2"]
        record = await hub.consent(IMW)
        assert record["confirmations"][0]["workspace"] == "root:bank"
        assert record["confirmations"][0]["count"] == 4
        assert "edge.kcp.io/confirm" not in (record["metadata"].get("annotations") or {})
        assert "RemovalConfirmed" in await events(hub, IMW)


@virtual
async def test_an_id_is_good_once() -> None:
    """The same things held again are confirmed again."""
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        await hub.grant(IMW, "eu", paths=["root:shop"], selector={})
        await hub.settle()
        [held] = (await hub.consent(IMW))["destinations"]["held"]
        await hub.confirm(IMW, held["id"])
        await hub.settle()
        assert await names(hub, "bank") == []
        await hub.grant(IMW, "bank", paths=["root:bank"], selector={})
        await hub.settle()
        assert len(await names(hub, "bank")) == 3
        await hub.remove(IMW, LOCATION_GRANTS, "bank")
        await hub.settle()
        assert len(await names(hub, "bank")) == 3
        [again] = (await hub.consent(IMW))["destinations"]["held"]
        assert again["id"] == held["id"], "the id stands for the same destinations"


@virtual
async def test_deleting_the_last_grant_opens_nothing_until_that_is_confirmed() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"):
        async with hub.controlled(SCHEDULER):
            await furnish(hub)
            await hub.grant(IMW, "eu", paths=["root:shop"], selector={})
            await hub.settle()
            assert await names(hub, "bank") == []
        await hub.remove(IMW, LOCATION_GRANTS, "eu")
        async with hub.controlled(SCHEDULER):  # another process, which never saw the grant
            await hub.settle()
            assert await names(hub, "bank") == []
            assert len(await names(hub, "shop")) == 3, "nor is anything removed"
            opening = (await hub.consent(IMW))["opening"]["id"]
            await hub.confirm(IMW, opening)
            await hub.settle()
            assert len(await names(hub, "bank")) == 3
            assert await condition(hub, "bank") is None
            with pytest.raises(NotFound):
                await hub.consent(IMW)
            assert "OpeningConfirmed" in await events(hub, IMW)


@virtual
async def test_switching_to_observe_opens_nothing_until_that_is_confirmed() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.grant(IMW, "eu", paths=["root:shop"], selector={})
        await hub.settle()
        await hub.grant(IMW, "eu", mode="Observe", paths=["root:shop"], selector={})
        await hub.settle()
        assert await names(hub, "bank") == []
        record = await hub.consent(IMW)
        assert (record["mode"], record["enforcingGrants"]) == ("Enforce", 0)
        await hub.confirm(IMW, record["opening"]["id"])
        await hub.settle()
        assert len(await names(hub, "bank")) == 3
        record = await hub.consent(IMW)
        assert (record["mode"], "opening" in record) == ("Observe", False)
        assert record["confirmations"][0]["action"] == "Open"


@pytest.mark.parametrize("observing", [False, True], ids=["no grant", "an observing grant"])
@virtual
async def test_with_the_opening_a_removal_removes_nothing(observing: bool) -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        await hub.grant(IMW, "g", paths=["root:shop"], selector={})
        await hub.settle()
        if observing:
            await hub.grant(IMW, "g", mode="Observe", paths=["root:shop"], selector={})
        else:
            await hub.remove(IMW, LOCATION_GRANTS, "g")
        await hub.settle()
        record = await hub.consent(IMW)
        held = {each["workspace"]: each["id"] for each in record["destinations"]["held"]}
        await hub.confirm(IMW, held["root:bank"], record["opening"]["id"])
        await hub.settle()
        assert await names(hub, "bank") == ["l0", "l1", "l2"]
        bank = edge_placement_ref(await cluster_of(hub, "bank"), "p")
        await hub.assert_never_missing(bank, {"t0", "t1", "t2"})
        found = await events(hub, IMW)
        assert {"OpeningConfirmed", "ConfirmationIgnored"} <= found
        assert "RemovalConfirmed" not in found


@virtual
async def test_what_a_tenant_writes_into_slices_by_hand_is_not_held() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.grant(IMW, "eu", paths=["root:shop"], selector={})
        await hub.settle()
        shop = await hub.at("root:shop").get(SINGLE_PLACEMENT_SLICES, "p")
        await hub.at("root:bank").patch(
            SINGLE_PLACEMENT_SLICES, "p", {"destinations": shop["destinations"]}
        )
        await hub.settle()
        assert await names(hub, "bank") == []
        assert "held" not in (await hub.consent(IMW))["destinations"]


@virtual
async def test_the_slices_of_a_deleted_namesake_hold_nothing_for_a_new_placement() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.settle()
        await hub.grant(IMW, "g", paths=["root:shop"], selector={})
        await hub.settle()
        assert len(await names(hub, "bank")) == 3
        await hub.remove("root:bank", EDGE_PLACEMENTS, "p")
        await hub.place("root:bank", "p", {})
        await hub.settle()
        assert await names(hub, "bank") == []


@virtual
async def test_a_label_counts_on_the_workspace_object_in_the_named_parent_only() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.controlled(SCHEDULER):
        await furnish(hub)
        await hub.grant(IMW, "g", children=[("root", equal(tier="gold"))], selector={})
        # The administrator of a workspace labels a child, and places from there.
        await hub.make_workspace("root:bank", "sub", tier="gold")
        await hub.bind("root:bank:sub")
        await hub.place("root:bank:sub", "p", {})
        await hub.settle()
        assert await names(hub, "bank") == []
        sub = (await hub.at("root:bank").get(WORKSPACES, "sub"))["spec"]["cluster"]
        assert [
            d for d in (await hub.destinations())[edge_placement_ref(sub, "p")] if d.location != "x"
        ] == []
        patch = {"metadata": {"labels": {"tier": "gold"}}}
        await hub.at("root").patch(WORKSPACES, "bank", patch)
        await hub.settle()
        assert len(await names(hub, "bank")) == 3


class Owners:
    """People who edit grants, workspaces and Locations, and never confirm anything."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.hub.ids.fraction() * len(choices))]

    async def act(self) -> None:
        hub, name = self.hub, self.one_of("g", "h")
        paths = self.one_of([], ["root:shop"], ["root:bank"], ["root:shop", "root:bank"])
        children = self.one_of([], [("root", equal(tier="gold"))])
        mode = self.one_of("Observe", "Enforce", "Enforce")
        selector = self.one_of(None, {}, equal(region="eu"))
        deeds: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: hub.grant(
                IMW, name, mode=mode, paths=paths, children=children, selector=selector
            ),
            lambda: hub.remove(IMW, LOCATION_GRANTS, name),
            lambda: hub.confirm(IMW, "d-000000000000", "open-000000000000", "x"),
            lambda: hub.at("root").patch(
                WORKSPACES,
                self.one_of("shop", "bank"),
                {"metadata": {"labels": {"tier": self.one_of("gold", "tin", None)}}},
            ),
            lambda: hub.at(IMW).patch(
                LOCATIONS,
                self.one_of("l0", "l1", "l2"),
                {"metadata": {"labels": {"region": self.one_of("eu", "us")}}},
            ),
            lambda: hub.locate(IMW, self.one_of("l3", "l4"), {"region": "eu"}, equal(n="1")),
        )
        with suppress(ApiError):
            await self.one_of(*deeds)()


@pytest.mark.parametrize("seed", _FEW)
@virtual
async def test_no_history_of_grants_removes_anything_that_nobody_confirmed(seed: int) -> None:
    hub = Hub(seed, Rates())
    owners = Owners(hub)
    async with hub.running("imw", "shop", "bank"):
        await furnish(hub)
        seen: dict[ObjectRef, set[Any]] = {}
        if hub.ids.fraction() < 0.5:
            async with hub.controlled(SCHEDULER):
                await asyncio.sleep(120)
        for _ in range(4):  # each time by a new process
            async with hub.controlled(SCHEDULER):
                for _ in range(8):
                    await owners.act()
                    await asyncio.sleep(hub.ids.fraction() * 2)
                    await _nothing_went(hub, seen)
            await owners.act()
        async with hub.controlled(SCHEDULER):
            await hub.settle()
            await _nothing_went(hub, seen)
            await _as_a_scan_says(hub, seen)
        revision = await hub.store.revision()
        async with hub.controlled(SCHEDULER):
            await hub.settle()
        assert await hub.store.revision() == revision, "a second pass writes nothing"


async def _nothing_went(hub: Hub, seen: dict[ObjectRef, set[Any]]) -> None:
    for ref, destinations in (await hub.destinations()).items():
        assert seen.get(ref, set()) <= set(destinations)
        seen[ref] = set(destinations)


async def _as_a_scan_says(hub: Hub, seen: dict[ObjectRef, set[Any]]) -> None:
    """Check slices against a scan that knows what was there before."""
    reference = await hub.reference()
    for ref, found in (await hub.destinations()).items():
        present = {each.location_ref for each in seen[ref]}
        wanted = set(reference.destinations(ref, present))
        assert set(found) <= wanted
        assert set(reference.destinations(ref)) <= set(found)


@virtual
async def test_a_confirmation_taken_by_a_process_that_dies_is_asked_for_again() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"):
        async with hub.controlled(SCHEDULER):
            await furnish(hub)
            await hub.settle()
            await hub.grant(IMW, "g", paths=["root:shop"], selector={})
            await hub.settle()
            [held] = (await hub.consent(IMW))["destinations"]["held"]
        record = await hub.consent(IMW)
        # As if the id had been taken and nothing done.
        await hub.confirm(IMW, held["id"])
        await hub.at(IMW).patch(LOCATION_CONSENTS, "default", {"metadata": {"annotations": None}})
        async with hub.controlled(SCHEDULER):
            await hub.settle()
            assert len(await names(hub, "bank")) == 3
            assert (await hub.consent(IMW))["destinations"] == record["destinations"]
            await hub.confirm(IMW, held["id"])
            await hub.settle()
            assert await names(hub, "bank") == []


@pytest.mark.parametrize("seed", seeds_of(12, least=4))
@virtual
async def test_a_confirmation_given_while_no_scheduler_runs_is_taken_by_the_next(seed: int) -> None:
    """It reads slices slowly; what is listed meanwhile is what was listed before."""
    hub = Hub(seed)
    async with hub.running("imw", "shop", "bank"):
        async with hub.controlled(SCHEDULER):
            await furnish(hub)
            for number in range(5):
                await hub.place("root:bank", f"p{number}", {})
            await hub.settle()
            await hub.grant(IMW, "g", paths=["root:shop"], selector={})
            await hub.settle()
            listed = (await hub.consent(IMW))["destinations"]
        [held] = listed["held"]
        assert held["placements"] == 6
        await hub.confirm(IMW, held["id"])
        hub.faults.rates = Rates(0.0, 0.0, 0.0, 0.0, max_delay_seconds=0.5)
        async with hub.controlled(SCHEDULER):
            for _ in range(200):
                record = await hub.consent(IMW)
                assert record.get("destinations") == listed or record.get("confirmations")
                await asyncio.sleep(0.1)
            await hub.settle()
        assert await names(hub, "bank") == []
        record = await hub.consent(IMW)
        assert [each["id"] for each in record["confirmations"]] == [held["id"]]
        assert "ConfirmationIgnored" not in await events(hub, IMW)


@virtual
async def test_an_opening_waits_for_no_placement_that_a_finalizer_keeps() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"):
        async with hub.controlled(SCHEDULER):
            await furnish(hub)
            await hub.grant(IMW, "g", paths=["root:shop"], selector={})
            await hub.settle()
            await hub.remove(IMW, LOCATION_GRANTS, "g")
            await hub.settle()
            opening = (await hub.consent(IMW))["opening"]["id"]
        mine = {"metadata": {"finalizers": ["example.com/mine"]}}
        await hub.at("root:bank").patch(EDGE_PLACEMENTS, "p", mine)
        await hub.remove("root:bank", EDGE_PLACEMENTS, "p")
        await hub.confirm(IMW, opening)
        async with hub.controlled(SCHEDULER):
            await hub.settle()
            with pytest.raises(NotFound):
                await hub.consent(IMW)


@virtual
async def test_a_scheduler_that_leads_again_does_not_bring_back_what_another_removed() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"), hub.standing_by(SCHEDULER) as lead:
        first = lead()
        await furnish(hub)
        await hub.settle()
        await hub.grant(IMW, "g", paths=["root:shop"], selector={})
        await hub.settle()
        assert len(await names(hub, "bank")) == 3
        first.cancel()
        async with hub.controlled(SCHEDULER):
            await hub.settle()
            [held] = (await hub.consent(IMW))["destinations"]["held"]
            await hub.confirm(IMW, held["id"])
            await hub.settle()
            assert await names(hub, "bank") == []
        lead()
        await hub.settle()
        assert await names(hub, "bank") == []
        assert (await hub.consent(IMW))["held"] == 0


@virtual
async def test_a_scheduler_on_an_export_without_grants_schedules_as_before() -> None:
    hub = Hub()
    async with hub.running("imw", "shop", "bank"):
        espw = hub.at("root:espw")
        exports = API_EXPORTS
        export = await espw.get(exports, "edge.kcp.io")
        kept = [n for n in export["spec"]["latestResourceSchemas"] if ".location" not in n]
        await espw.update(exports, {**export, "spec": {"latestResourceSchemas": kept}})
        async with hub.controlled(SCHEDULER):
            await furnish(hub)
            await hub.settle()
            assert len(await names(hub, "bank")) == 3
