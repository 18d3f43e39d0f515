"""StatusQueries against the real hub engine, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.edge import STATUS_QUERIES
from skerry.api.errors import NotFound
from skerry.api.objects import Object
from skerry.logic.machinery.conditions import find_condition
from tests.kit.chain.query_hub import COUNT, REGION, Hub
from tests.kit.chain.summarizer_hub import CONFIG_MAPS, DEFINITIONS, DEPLOYMENTS, PROVIDER
from tests.kit.chain.written import writes
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import SEEDS

WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.io"},
    "spec": {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
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


@virtual
async def test_a_workspace_sees_its_own_copies_and_the_provider_all() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.controlled("status-queries"):
        await hub.workspace("root", "bank")
        await hub.bind("root:bank", "bind-espw", PROVIDER, "edge.kcp.io")
        await hub.bind("root:bank", "bind-kubernetes", "root:compute", "kubernetes")
        await hub.bind(PROVIDER, "bind-espw", PROVIDER, "edge.kcp.io")
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin", "guilder")
        await hub.deploy("web", "florin", "guilder")
        for where in ("root:wmw", "root:bank", PROVIDER):
            await hub.ask("all", where, aggregates=[COUNT, READY])
        await asyncio.sleep(5)
        assert await hub.rows("all") == [[2, 2]]
        assert await hub.rows("all", PROVIDER) == [[2, 2]]
        assert await hub.rows("all", "root:bank") == []
        assert (await hub.answer("all", "root:bank"))["sources"]["destinations"] == 0


@virtual
async def test_a_copy_of_a_namesake_in_another_workspace_is_absent() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.deploy("web", "florin")
        own = await hub.cluster_of("root:wmw")
        notes = {"metadata": {"annotations": {"edge.kcp.io/withheld-from": own}}}
        await hub.mailbox("florin").patch(DEPLOYMENTS, "web", notes, "shop")
        await hub.ask("all")
        await asyncio.sleep(5)
        answer = await hub.answer("all")
        assert answer["rows"] == []
        assert answer["sources"]["absent"] == 1


@virtual
async def test_after_a_restart_the_old_answer_stands_until_the_new_is_complete() -> None:
    hub = Hub()
    async with hub.running(["florin"]):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.deploy("web", "florin")
        async with hub.controlled("status-queries"):
            await hub.ask("ready", aggregates=[READY])
            await asyncio.sleep(3)
            assert await hub.rows("ready") == [[1]]
        before = await hub.at("root:wmw").get(STATUS_QUERIES, "ready")
        async with hub.controlled("status-queries"):
            await asyncio.sleep(3)
            after = await hub.at("root:wmw").get(STATUS_QUERIES, "ready")
            assert after == before
        await hub.reports("florin", "web", 4)
        async with hub.controlled("status-queries"):
            await asyncio.sleep(3)
            assert await hub.rows("ready") == [[4]]


@virtual
async def test_an_edited_query_never_has_old_rows_under_new_columns() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.deploy("web", "florin")
        await hub.ask("q", aggregates=[READY])
        await asyncio.sleep(3)
        spec = {"aggregates": [COUNT, {**READY, "name": "n"}]}
        await hub.at("root:wmw").patch(STATUS_QUERIES, "q", {"spec": spec})
        async with hub.at("root:wmw").watch(STATUS_QUERIES) as events:
            async for event in events:
                status = event.object.get("status") or {}
                if status.get("observedGeneration") != event.object["metadata"]["generation"]:
                    continue
                names = [column["name"] for column in status.get("columns") or ()]
                assert names in ([], ["edges", "n"])
                if status.get("rows"):
                    assert status["rows"] == [{"values": [1, 1]}]
                    break


@virtual
async def test_a_kind_that_is_not_served_and_one_that_is_gone_are_said_so() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        widgets = {"apiGroup": "example.io", "resources": ["widgets"]}
        await hub.ask("widgets", source=widgets)
        await asyncio.sleep(3)
        assert await hub.complete("widgets") == ("False", "KindNotServed")
        await hub.owner.create(DEFINITIONS, WIDGETS)
        await asyncio.sleep(5)
        assert await hub.complete("widgets") == ("True", "Read")
        await hub.owner.delete(DEFINITIONS, "widgets.example.io")
        await asyncio.sleep(40)
        assert await hub.complete("widgets") == ("False", "KindGone")


@virtual
async def test_a_query_that_is_to_last_no_longer_is_deleted() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.ask("once", ttlSeconds=30)
        await asyncio.sleep(20)
        assert (await hub.answer("once"))["rows"] == []
        await asyncio.sleep(15)
        with pytest.raises(NotFound):
            await hub.answer("once")


@virtual
async def test_reports_become_stale_by_themselves() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.deploy("web", "florin")
        await hub.ask("q", staleAfter="1m")
        await asyncio.sleep(30)
        assert (await hub.answer("q"))["sources"]["stale"] == 0
        await asyncio.sleep(40)
        assert (await hub.answer("q"))["sources"]["stale"] == 1


@virtual
async def test_an_edge_that_is_lost_is_unknown_and_its_destination_too() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.deploy("web", "florin")
        healthy = [{"name": "healthy", "value": "report.healthy"}]
        await hub.ask("copies", groupBy=healthy)
        await hub.ask("edges", source={"rows": "Destinations"}, groupBy=healthy)
        await hub.beat("florin", 10)
        await asyncio.sleep(5)
        assert await hub.rows("edges") == [["True", 1]]
        await asyncio.sleep(20)
        assert await hub.rows("copies") == await hub.rows("edges") == [["Unknown", 1]]


@virtual
async def test_what_came_up_from_edges_is_asked_about_by_who_wants_it() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        upsync = [{"apiGroup": "", "resources": ["configmaps"], "namespaces": ["*"],
                   "names": ["up"]}]  # fmt: skip
        await hub.place("p", "florin", upsync=upsync)
        for name in ("up", "other"):
            metadata = {"name": name, "annotations": {"edge.kcp.io/upsynced": "true"}}
            await hub.mailbox("florin").create(
                CONFIG_MAPS, {"metadata": metadata, "data": {"k": name}}, "default"
            )
        source = {"rows": "Upsynced", "resources": ["configmaps"]}
        column = {"name": "k", "value": "obj.data.k"}
        await hub.ask("up", source=source, select=[column])
        await asyncio.sleep(5)
        assert await hub.rows("up") == [["up"]]


@virtual
@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_fails_on_the_way_the_answer_comes_right(seed: int) -> None:
    hub = Hub(seed, Rates(0.05, 0.05, 0.05, 0.05, 0.05))
    async with hub.running(["florin", "guilder"]):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin", "guilder")
        await hub.deploy("web", "florin", "guilder")
        await hub.ask("ready", groupBy=[REGION], aggregates=[COUNT, READY])
        async with hub.controlled("status-queries", "summarizer"):
            for number in range(8):
                await hub.reports("florin", "web", number)
                await hub.relabel("guilder", region=f"r{number % 2}")
                await asyncio.sleep(hub.ids.fraction() * 2)
            hub.faults.heal()
            await asyncio.sleep(120)
            assert await hub.complete("ready") == ("True", "Read")
            assert await hub.rows("ready") == [["none", 1, 7], ["r1", 1, 1]]
        await assert_complete_answers_are_whole(hub)


async def assert_complete_answers_are_whole(hub: Hub) -> None:
    """Check that whatever was ever called complete had every copy, as of then or later."""
    ready: dict[str, list[tuple[int, int]]] = {}
    for write in await writes(hub.store, DEPLOYMENTS, STATUS_QUERIES):
        status = (write.obj or {}).get("status") or {}
        if write.kind == DEPLOYMENTS.group_resource:
            if write.cluster != await hub.cluster_of("root:wmw"):
                number = status.get("readyReplicas", 0)
                ready.setdefault(write.cluster, []).append((write.revision, number))
        elif (find_condition({"status": status}, "Complete") or {}).get("status") == "True":
            as_of = int(status["asOf"]["resourceVersion"])
            totals = {0}
            for seen in ready.values():
                then = [number for revision, number in seen if revision <= as_of][-1:]
                later = [number for revision, number in seen if revision > as_of]
                totals = {total + number for total in totals for number in (*then, *later)}
            assert status["matched"] == len(ready) == 2
            assert sum(row["values"][2] for row in status["rows"]) in totals


@virtual
async def test_an_answer_changes_no_more_than_twice_a_second() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.controlled("status-queries"):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.deploy("web", "florin")
        await hub.ask("ready", aggregates=[READY])
        await asyncio.sleep(3)
        before = len(await writes(hub.store, STATUS_QUERIES))
        for number in range(100):
            await hub.reports("florin", "web", number)
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        assert await hub.rows("ready") == [[99]]
        assert 10 < len(await writes(hub.store, STATUS_QUERIES)) - before <= 22
