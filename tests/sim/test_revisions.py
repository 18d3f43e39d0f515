"""Revisions on a real hub: what a placement with a Rollout sends, and what it never takes away."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from skerry.api.edge import (
    CUSTOMIZERS,
    CUT,
    PLACEMENT_REVISIONS,
    REVISION_CONTENTS,
    ROLLOUTS,
    SYNCER_CONFIGS,
    edge_placement_ref,
)
from skerry.api.edge import SINGLE_PLACEMENT_SLICES as SLICES
from skerry.api.objects import Object
from skerry.kit import log
from skerry.logic.fleet.revision.noted import noted_revisions
from skerry.logic.fleet.revision.objects import read_page
from tests.kit.chain.translator_hub import (
    CONFIG_MAPS,
    DEFINITIONS,
    NAMESPACES,
    SECRETS,
    WIDGETS,
    Hub,
    config_map,
    customizer,
    widget_definition,
)
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import run_virtual, virtual
from tests.kit.sim.world import seeds_of

SOON = 1.0
# Longer than things have to be quiet.
SETTLED = 15.0


async def rollout(hub: Hub, settle: Object | None = None) -> None:
    body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"}}
    await hub.at("root:wmw").create(ROLLOUTS, {**body, "spec": {"settle": settle or {}}})


async def assign(hub: Hub, **revisions: int) -> None:
    """Say which edge has which revision, as the edge scheduler would; 0: none."""
    destinations = []
    for slot, (edge, number) in enumerate(revisions.items(), 1):
        entry = {**await hub.destination(edge), "slot": slot}
        destinations.append({**entry, "revision": number} if number else entry)
    await hub.at("root:wmw").patch(SLICES, "web", {"destinations": destinations})


async def revisions(hub: Hub) -> dict[str, Object]:
    found = await hub.at("root:wmw").list(PLACEMENT_REVISIONS)
    return {each["metadata"]["name"]: each for each in found.items}


async def contents(hub: Hub) -> set[str]:
    found = await hub.at("root:wmw").list(REVISION_CONTENTS)
    return {each["metadata"]["name"] for each in found.items}


async def named(hub: Hub) -> set[str]:
    """Return the contents that revisions name."""
    pages = [read_page(each) for each in (await revisions(hub)).values()]
    return {i.digest for page in pages for i in (*page.items, *page.inputs.customizers)}


async def data(hub: Hub, edge: str, name: str = "page") -> Any:
    found = await hub.found(edge, CONFIG_MAPS, name, "shop")
    return None if found is None else found.get("data")


async def noted(hub: Hub, edge: str) -> dict[str, int]:
    config = await hub.found(edge, SYNCER_CONFIGS, "the-one")
    assert config is not None
    return {ref.name: number for ref, number in noted_revisions(config["metadata"]).items()}


async def start(hub: Hub, *edges: str) -> None:
    """Have two ConfigMaps placed, and revision 1 of them everywhere."""
    await hub.namespace("shop")
    await hub.put(CONFIG_MAPS, config_map("page", {"k": "1"}), "shop")
    await hub.put(CONFIG_MAPS, config_map("other", {"k": "1"}), "shop")
    await hub.place("web", *edges)
    await rollout(hub)
    await asyncio.sleep(SETTLED)
    await assign(hub, **dict.fromkeys(edges, 1))
    await asyncio.sleep(SOON)


@virtual
async def test_a_change_goes_where_its_revision_does_and_nowhere_else() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await start(hub, "florin", "guilder")
        assert await noted(hub, "florin") == {"web": 1}
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.remove(CONFIG_MAPS, "other", "shop")
        await asyncio.sleep(SETTLED)
        found = await revisions(hub)
        assert sorted(found) == ["web-1", "web-2"]
        second = found["web-2"]["spec"]
        assert {each["item"]["name"] for each in second["causes"]} == {"page", "other"}
        # Nothing has moved yet.
        for edge in ("florin", "guilder"):
            assert (await data(hub, edge), await data(hub, edge, "other")) == ({"k": "1"},) * 2
        await assign(hub, florin=2, guilder=1)
        await asyncio.sleep(SOON)
        assert (await data(hub, "florin"), await data(hub, "florin", "other")) == ({"k": "2"}, None)
        assert await data(hub, "guilder", "other") == {"k": "1"}
        assert (await noted(hub, "florin"), await noted(hub, "guilder")) == ({"web": 2}, {"web": 1})
        # And back, though the workspace has it no longer.
        await assign(hub, florin=1, guilder=1)
        await asyncio.sleep(SOON)
        assert (await data(hub, "florin"), await data(hub, "florin", "other")) == ({"k": "1"},) * 2
        assert await noted(hub, "florin") == {"web": 1}


@virtual
async def test_a_process_that_starts_anew_sends_old_revisions_from_their_contents() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.translating():
            await start(hub, "florin", "guilder")
            await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
            await asyncio.sleep(SETTLED)
            await assign(hub, florin=2, guilder=1)
            await asyncio.sleep(SOON)
        await hub.mailbox("guilder").delete(CONFIG_MAPS, "page", "shop")
        async with hub.translating():
            await asyncio.sleep(SETTLED)
            assert (await data(hub, "florin"), await data(hub, "guilder")) == (
                {"k": "2"},
                {"k": "1"},
            )
            assert sorted(await revisions(hub)) == ["web-1", "web-2"]


@virtual
async def test_a_namespace_and_a_kind_that_are_gone_stay_where_their_revision_does() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await hub.namespace("shop")
        await hub.put(DEFINITIONS, widget_definition())
        await asyncio.sleep(SOON)
        widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await hub.put(WIDGETS, {**widget, "size": 1}, "shop")
        await hub.place("web", "florin")
        await rollout(hub)
        await asyncio.sleep(SETTLED)
        await assign(hub, florin=1)
        await asyncio.sleep(SOON)
        before = await hub.config("florin")
        items = (await revisions(hub))["web-1"]["spec"]["items"]
        assert [each.get("storageVersion") for each in items if each["resource"] != "widgets"] == [
            None,
            "v1",
        ]
        await hub.remove(DEFINITIONS, "widgets.example.io")
        await hub.remove(NAMESPACES, "shop")
        await asyncio.sleep(SETTLED * 3)
        found = await hub.found("florin", WIDGETS, "w", "shop")
        assert found is not None
        assert found["size"] == 1
        assert await hub.config("florin") == before
        number = max(each["spec"]["number"] for each in (await revisions(hub)).values())
        await assign(hub, florin=number)
        await asyncio.sleep(SETTLED)
        assert await hub.found("florin", WIDGETS, "w", "shop") is None
        assert await hub.found("florin", NAMESPACES, "shop") is None


@virtual
async def test_a_missing_revision_changes_and_removes_nothing_and_is_reported() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await start(hub, "florin")
        before = await hub.copies("florin")
        await assign(hub, florin=7)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.remove(CONFIG_MAPS, "other", "shop")
        await asyncio.sleep(SETTLED)
        assert await hub.copies("florin") == before
        assert [each["reason"] for each in await hub.problems("web")] == ["RevisionMissing"]
        await assign(hub, florin=max(map(_number, (await revisions(hub)).values())))
        await asyncio.sleep(SOON)
        assert await data(hub, "florin", "other") is None
        assert await hub.problems("web") == []


def _number(revision: Object) -> int:
    return int(revision["spec"]["number"])


@virtual
async def test_a_missing_content_changes_and_removes_nothing_until_it_is_back() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.translating():
            await start(hub, "florin", "guilder")
            await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
            await asyncio.sleep(SETTLED)
            await assign(hub, florin=2, guilder=2)
            await asyncio.sleep(SOON)
        owner = hub.at("root:wmw")
        [old] = [
            each["digest"]
            for each in (await revisions(hub))["web-1"]["spec"]["items"]
            if each["name"] == "page"
        ]
        lost = await owner.get(REVISION_CONTENTS, old)
        await owner.delete(REVISION_CONTENTS, old)
        async with hub.translating():
            await asyncio.sleep(SOON)
            await assign(hub, florin=1, guilder=2)
            await asyncio.sleep(SETTLED)
            assert await data(hub, "florin") == {"k": "2"}
            assert [each["reason"] for each in await hub.problems("web")] == ["RevisionMissing"]
            assert await noted(hub, "florin") == {"web": 2}
            lost["metadata"] = {"name": old}
            await owner.create(REVISION_CONTENTS, lost)
            await asyncio.sleep(40)
            assert await data(hub, "florin") == {"k": "1"}
            assert await hub.problems("web") == []
            assert await noted(hub, "florin") == {"web": 1}


@virtual
async def test_equal_states_are_one_revision_and_a_revert_is_the_earlier_one() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await start(hub, "florin")
        before = await contents(hub)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await asyncio.sleep(SETTLED)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "1"}), "shop")
        await asyncio.sleep(SETTLED)
        found = [read_page(each) for each in (await revisions(hub)).values()]
        assert sorted((each.number, each.sequence) for each in found) == [(1, 3), (2, 2)]
        assert len(await contents(hub)) == len(before) + 1
        # Every content that a revision names is there.
        names = {each.digest for page in found for each in page.items}
        assert names <= await contents(hub)


@virtual
async def test_what_is_never_quiet_is_cut_after_a_while_and_ten_commands_are_one_revision() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await start(hub, "florin")
        for number in range(10):
            await hub.put(CONFIG_MAPS, config_map("page", {"k": f"x{number}"}), "shop")
            await asyncio.sleep(1)
        await asyncio.sleep(SETTLED)
        assert sorted(await revisions(hub)) == ["web-1", "web-2"]
        for number in range(26):
            await hub.put(CONFIG_MAPS, config_map("page", {"k": f"y{number}"}), "shop")
            await asyncio.sleep(5)
        assert "web-3" in await revisions(hub)


@virtual
async def test_by_hand_a_revision_is_cut_when_somebody_says_so_and_once() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await hub.namespace("shop")
        await hub.place("web", "florin")
        await rollout(hub, {"mode": "Manual"})
        await asyncio.sleep(SETTLED)
        assert sorted(await revisions(hub)) == ["web-1"]
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await asyncio.sleep(SETTLED * 20)
        assert sorted(await revisions(hub)) == ["web-1"]
        note = {"metadata": {"annotations": {CUT: "friday"}}}
        await hub.at("root:wmw").patch(ROLLOUTS, "web", note)
        await asyncio.sleep(SOON)
        assert sorted(await revisions(hub)) == ["web-1", "web-2"]
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "3"}), "shop")
        await asyncio.sleep(SETTLED * 20)
        assert sorted(await revisions(hub)) == ["web-1", "web-2"]


@virtual
async def test_a_customizer_is_part_of_a_revision() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await hub.namespace("shop")
        await hub.put(CUSTOMIZERS, customizer("c", "$.data.k", '"one"'), "shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "0"}, customizer="c"), "shop")
        await hub.place("web", "florin", "guilder")
        await rollout(hub)
        await asyncio.sleep(SETTLED)
        await assign(hub, florin=1, guilder=1)
        await asyncio.sleep(SOON)
        assert await data(hub, "florin") == {"k": "one"}
        await hub.put(CUSTOMIZERS, customizer("c", "$.data.k", '"two"'), "shop")
        await asyncio.sleep(SETTLED)
        assert (await data(hub, "florin"), await data(hub, "guilder")) == ({"k": "one"},) * 2
        await assign(hub, florin=2, guilder=1)
        await asyncio.sleep(SOON)
        assert (await data(hub, "florin"), await data(hub, "guilder")) == (
            {"k": "two"},
            {"k": "one"},
        )


@virtual
async def test_of_several_placements_the_oldest_holds_and_all_report_it() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await start(hub, "florin")
        await hub.place("live", "florin")
        await asyncio.sleep(SOON)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await hub.put(CONFIG_MAPS, config_map("new", {"k": "2"}), "shop")
        await asyncio.sleep(SOON)
        assert await data(hub, "florin") == {"k": "1"}
        assert await data(hub, "florin", "new") == {"k": "2"}
        for name in ("web", "live"):
            condition = (await hub.conditions(name))["ConflictFree"]
            assert (condition["status"], condition["reason"]) == ("False", "RevisionsDisagree")


@virtual
async def test_what_nobody_names_is_gone_within_two_sweeps_and_nothing_else() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await start(hub, "florin")
        owner = hub.at("root:wmw")
        stray = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "RevisionContent",
            "metadata": {"name": "feed"},
            "content": {},
        }
        await owner.create(REVISION_CONTENTS, stray)
        before = await contents(hub)
        for number in range(14):
            await hub.put(CONFIG_MAPS, config_map("page", {"k": f"{number + 2}"}), "shop")
            await asyncio.sleep(SETTLED)
        await asyncio.sleep(3 * 3600 + 60)
        numbers = sorted(map(_number, (await revisions(hub)).values()))
        assert numbers == [1, *range(6, 16)]
        assert before - await contents(hub) == {"feed"}
        assert await named(hub) == await contents(hub)


@virtual
async def test_an_object_of_a_megabyte_is_a_content_like_any_other() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await start(hub, "florin")
        for text in ("a", "b"):
            await hub.put(CONFIG_MAPS, config_map("page", {"k": text * 1_000_000}), "shop")
            await asyncio.sleep(SETTLED)
        await assign(hub, florin=2)
        await asyncio.sleep(SOON)
        # The workspace has another since: this one is in its content alone.
        assert await data(hub, "florin") == {"k": "a" * 1_000_000}
        assert await hub.problems("web") == []


@virtual
async def test_a_placement_without_a_rollout_has_no_revisions() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating():
        await hub.namespace("shop")
        await hub.put(SECRETS, {**config_map("s"), "kind": "Secret", "data": {}}, "shop")
        await hub.place("web", "florin")
        await asyncio.sleep(SETTLED * 10)
        assert (await revisions(hub), await contents(hub)) == ({}, set())
        config = await hub.found("florin", SYNCER_CONFIGS, "the-one")
        assert config is not None
        assert "edge.kcp.io/revisions" not in (config["metadata"].get("annotations") or {})
        assert hub.translator is not None
        assert not hub.translator.tables.revisions.assigned.of(
            edge_placement_ref(hub.clusters["wmw"], "web")
        )


@virtual
async def test_an_export_without_these_kinds_changes_nothing_for_a_placement() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.translating(has_revisions=False):
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "1"}), "shop")
        await hub.place("web", "florin")
        await rollout(hub)
        await asyncio.sleep(SETTLED)
        assert await data(hub, "florin") == {"k": "1"}
        assert await revisions(hub) == {}


# -- any history ---------------------------------------------------------------------------------

EDGES = ("florin", "guilder")
# Five translators' lives and two thousand virtual seconds each, calm and faulty.
HISTORIES = seeds_of(6)


class History:
    """Edits, assignments and lost leaderships, at random; and what must hold at every moment."""

    def __init__(self, hub: Hub, seed: int) -> None:
        self.hub = hub
        self.random = random.Random(seed)

    async def happen(self, times: int) -> None:
        for _ in range(times):
            await self._event()
            await asyncio.sleep(self.random.choice([0.01, 0.5, 4, 12]))
            await self.check_named()

    async def _event(self) -> None:
        hub, choice = self.hub, self.random.choice
        match self.random.randrange(8):
            case 0 | 1 | 2:
                made = config_map(choice(["page", "other"]), {"k": choice("123")}, customizer="c")
                await hub.put(CONFIG_MAPS, made, "shop")
            case 3:
                await hub.remove(CONFIG_MAPS, choice(["page", "other"]), "shop")
            case 4:
                await hub.put(
                    CUSTOMIZERS, customizer("c", "$.data.c", choice(['"p"', '"q"'])), "shop"
                )
            case 5 | 6:
                known = [0, *map(_number, (await revisions(hub)).values())]
                await assign(hub, **{edge: choice(known) for edge in EDGES})
            case _:
                if hub.translator is not None:
                    await hub.lose_leadership(choice([0.2, 1, 30]))

    async def check_named(self) -> None:
        """Every revision is there with all its contents, and no two are of equal digests."""
        stored = await contents(self.hub)
        found = [read_page(each) for each in (await revisions(self.hub)).values()]
        for page in found:
            assert {each.digest for each in (*page.items, *page.inputs.customizers)} <= stored
        assert len({page.digest for page in found}) == len(found)


async def _history(seed: int, *, faulty: bool) -> None:
    hub = Hub(seed, Rates() if faulty else Rates(0, 0, 0, 0, 0))
    async with hub.running(EDGES):
        history = History(hub, seed)
        await hub.namespace("shop")
        await hub.place("web", *EDGES)
        await rollout(hub, {"quiet": "2s", "longest": "10s"})
        for _ in range(2):
            async with hub.translating():
                await history.happen(12)
            await history.happen(3)
        async with hub.translating():
            await history.happen(10)
            await hub.settle(600)
            await history.check_named()
            await hub.assert_as_expected(*EDGES)
            newest = max((await revisions(hub)).values(), key=lambda each: read_page(each).sequence)
            number = _number(newest)
            await assign(hub, **dict.fromkeys(EDGES, number))
            await hub.settle(100)
            for edge in EDGES:
                assert await noted(hub, edge) == {"web": number}
            held = [await hub.copies(edge) for edge in EDGES]
            await assign(hub, **dict.fromkeys(EDGES, 0))
            await hub.settle(100)
            await hub.assert_as_expected(*EDGES)
            assert [await hub.copies(edge) for edge in EDGES] == held
        async with hub.translating():
            # What is older than the last ten is swept, and what those who died left behind.
            await asyncio.sleep(3 * 3600)
        assert await contents(hub) == await named(hub)
        before = await hub.store.revision()
        async with hub.translating() as translator:
            await asyncio.sleep(100)
            assert await hub.store.revision() == before, "a second pass wrote something"
            assert translator.tables.dirty.waiting == 0


@pytest.mark.parametrize("faulty", [False, True], ids=["calm", "faulty"])
@pytest.mark.parametrize("seed", HISTORIES)
def test_from_any_history_mailboxes_are_what_their_revisions_say(seed: int, faulty: bool) -> None:
    log.configure(verbosity=-1)
    run_virtual(_history(seed, faulty=faulty))
