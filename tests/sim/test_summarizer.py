"""The summarizer against the real hub engine, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from skerry.api.edge import (
    CLUSTER_STATUS_SUMMARIES,
    EDGE_PLACEMENTS,
    HELD,
    OWNER_WORKSPACE,
    SINGLE_PLACEMENT_SLICES,
    STATUS_SUMMARIES,
    SYNCER_CONFIGS,
    Mailbox,
)
from skerry.api.errors import Forbidden
from skerry.api.kcp.resources import WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.transport import Answer
from skerry.runtime.wrapping import WrappedTransport
from tests.kit.chain.summarizer_history import EDGES, History
from tests.kit.chain.summarizer_hub import (
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PROVIDER,
    Hub,
    deployment,
    running,
)
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import seeds_of

QUOTAS = GroupVersionResource("", "v1", "resourcequotas")


@virtual
async def test_a_placed_object_has_a_summary_of_what_its_copies_report() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        await hub.owner.create(DEPLOYMENTS, deployment("web"), "shop")
        placement = await hub.place("p", "florin", "guilder")
        await asyncio.sleep(2)
        (name, first), *_ = (await hub.summaries("shop")).items()
        assert name == "p-deployments-web"
        assert (first["destinations"], first["delivered"], first["reported"]) == (2, 0, 0)
        (reference,) = first["metadata"]["ownerReferences"]
        assert reference["uid"] == placement["metadata"]["uid"]

        for edge, available in (("florin", 1), ("guilder", 0)):
            await hub.project(edge, DEPLOYMENTS, deployment("web"), "shop")
            await hub.applied(edge, DEPLOYMENTS, "web", "shop")
            await hub.report(edge, DEPLOYMENTS, "web", "shop", running(1, available))
        await asyncio.sleep(2)
        summary = (await hub.summaries("shop"))["p-deployments-web"]
        counts = [summary[n] for n in ("destinations", "delivered", "reported", "healthy")]
        assert counts == [2, 2, 2, 1]
        numbers = {each["field"]: each for each in summary["numbers"]}
        assert numbers["replicas"]["sum"] == 2
        assert numbers["availableReplicas"] == {
            "field": "availableReplicas",
            "sum": 1,
            "min": 1,
            "max": 1,
        }
        ill, well = summary["details"]
        assert (ill["syncTarget"], ill["healthy"], ill["reason"]) == (
            "guilder",
            "False",
            "Unavailable",
        )
        assert (well["syncTarget"], well["healthy"]) == ("florin", "True")
        assert summary["newestReportTime"] >= summary["oldestReportTime"]


@virtual
async def test_a_summary_goes_with_its_cause() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        for name in ("web", "api"):
            await hub.owner.create(DEPLOYMENTS, deployment(name), "shop")
        await hub.place("p", "florin")
        await asyncio.sleep(2)
        assert set(await hub.summaries("shop")) == {"p-deployments-web", "p-deployments-api"}
        await hub.owner.delete(DEPLOYMENTS, "api", "shop")
        await asyncio.sleep(2)
        assert set(await hub.summaries("shop")) == {"p-deployments-web"}
        await hub.owner.patch(NAMESPACES, "shop", {"metadata": {"labels": {"go": "no"}}})
        await asyncio.sleep(2)
        assert not await hub.summaries("shop")
        await hub.owner.patch(NAMESPACES, "shop", {"metadata": {"labels": {"go": "yes"}}})
        await asyncio.sleep(2)
        assert set(await hub.summaries("shop")) == {"p-deployments-web"}
        await hub.owner.delete(EDGE_PLACEMENTS, "p")
        await asyncio.sleep(2)
        assert not await hub.summaries("shop")


@virtual
async def test_objects_without_status_are_counted_in_the_placement() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        page = {"metadata": {"name": "page"}, "data": {"a": "1"}}
        await hub.owner.create(CONFIG_MAPS, page, "shop")
        await hub.place("p", "florin", "guilder")
        status = {"status": {"specGeneration": 1, "matchingLocationCount": 2}}
        await hub.owner.patch(EDGE_PLACEMENTS, "p", status, subresource="status")
        await asyncio.sleep(2)
        assert (await hub.placement("p"))["status"]["deliveredObjects"] == 0
        for edge in ("florin", "guilder"):
            await hub.project(edge, CONFIG_MAPS, page, "shop")
            await hub.applied(edge, CONFIG_MAPS, "page", "shop")
        await asyncio.sleep(2)
        assert (await hub.placement("p"))["status"]["deliveredObjects"] == 2
        await hub.mailbox("florin").patch(CONFIG_MAPS, "page", {"data": {"a": "2"}}, "shop")
        await asyncio.sleep(2)
        assert (await hub.placement("p"))["status"]["deliveredObjects"] == 1
        assert not await hub.summaries("shop")


@virtual
async def test_what_an_edge_holds_back_is_said_by_every_placement_that_leads_there() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        for name, edge in (("here", "florin"), ("there", "guilder")):
            await hub.place(name, edge)
            status = {"status": {"specGeneration": 1, "matchingLocationCount": 1}}
            await hub.owner.patch(EDGE_PLACEMENTS, name, status, subresource="status")
        config = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "SyncerConfig",
            "metadata": {"name": "the-one"},
            "spec": {},
        }
        await hub.mailbox("florin").create(SYNCER_CONFIGS, config)
        held = {
            "type": "DeletionsHeld",
            "status": "True",
            "reason": "OverBudget",
            "message": "60 deletions are held: skerry edge approve-deletions florin",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        for expected in ("True", "False"):
            patch = {"status": {"conditions": [{**held, "status": expected}]}}
            await hub.mailbox("florin").patch(
                SYNCER_CONFIGS, "the-one", patch, subresource="status"
            )
            await asyncio.sleep(2)
            here = find_condition(await hub.placement("here"), HELD)
            there = find_condition(await hub.placement("there"), HELD)
            assert here is not None
            assert there is not None
            assert (here["status"], there["status"]) == (expected, "False")
            if expected == "True":
                assert here["reason"] == "DeletionsHeld"
                assert "skerry edge approve-deletions florin" in here["message"]


async def furnished(hub: Hub, *edges: str, **spec: Any) -> None:
    """One Deployment, placed on *edges*, with its copies there."""
    await hub.namespace("shop", go="yes")
    await hub.owner.create(DEPLOYMENTS, deployment("web"), "shop")
    await hub.place("p", *edges, **spec)
    for edge in edges:
        await hub.project(edge, DEPLOYMENTS, deployment("web"), "shop")


@virtual
async def test_the_only_destinations_status_comes_back_when_asked_for() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await furnished(hub, "florin", wantSingletonReportedState=True)
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(3))
        await asyncio.sleep(2)
        assert (await hub.owner.get(DEPLOYMENTS, "web", "shop"))["status"] == running(3)
        await hub.project("guilder", DEPLOYMENTS, deployment("web"), "shop")
        await hub.reslice("p", "florin", "guilder")
        await asyncio.sleep(2)
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(4))
        await asyncio.sleep(2)
        # Of two destinations neither speaks for the object.
        assert (await hub.owner.get(DEPLOYMENTS, "web", "shop"))["status"] == running(3)


@virtual
async def test_the_status_of_a_namesake_from_another_workspace_does_not_come_back() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await furnished(hub, "florin", wantSingletonReportedState=True)
        owner = {"metadata": {"annotations": {OWNER_WORKSPACE: "another"}}}
        await hub.mailbox("florin").patch(DEPLOYMENTS, "web", owner, "shop")
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(3))
        await asyncio.sleep(2)
        assert not (await hub.owner.get(DEPLOYMENTS, "web", "shop")).get("status")
        owner["metadata"]["annotations"][OWNER_WORKSPACE] = await hub.cluster_of("root:wmw")
        await hub.mailbox("florin").patch(DEPLOYMENTS, "web", owner, "shop")
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running(4))
        await asyncio.sleep(2)
        assert (await hub.owner.get(DEPLOYMENTS, "web", "shop"))["status"] == running(4)


@virtual
async def test_a_status_that_the_workspace_does_not_take_is_not_tried_again_and_again() -> None:
    """The exporter of the type keeps its status to itself, or what the edge reports is invalid."""
    hub = Hub()
    asked: list[str] = []

    class Refusing(WrappedTransport):
        async def request(self, method: str, path: str, *more: Any) -> Answer:
            if method == "PUT" and path.endswith("/status"):
                asked.append(path)
                refused = Forbidden("the exporter keeps it to itself").status()
                return Answer(403, {"content-type": "application/json"}, orjson.dumps(refused))
            return await super().request(method, path, *more)

    async with hub.running(["florin"]):
        hub.writer = replace(hub.writer, transport=Refusing(hub.faults))
        async with hub.summarizing():
            await furnished(hub, "florin", wantSingletonReportedState=True)
            await hub.report("florin", DEPLOYMENTS, "web", "shop", running(3))
            await asyncio.sleep(600)
            # Once for the report, once for the summary that came of it.
            assert len(asked) <= 2
            assert not (await hub.owner.get(DEPLOYMENTS, "web", "shop")).get("status")
            summary = (await hub.summaries("shop"))["p-deployments-web"]
            assert summary["reported"] == 1, "it is reported beside the object"


@virtual
async def test_no_edge_says_what_a_quota_uses_in_the_workspace() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await furnished(hub, "florin", wantSingletonReportedState=True)
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": {"configmaps": "1"}},
        }
        await hub.owner.create(QUOTAS, quota, "shop")
        counted = {"hard": {"configmaps": "1"}, "used": {"configmaps": "1"}}
        await hub.owner.patch(QUOTAS, "q", {"status": counted}, "shop", subresource="status")
        await hub.project("florin", QUOTAS, quota, "shop")
        free = {"hard": {"configmaps": "1"}, "used": {"configmaps": "0"}}
        await hub.report("florin", QUOTAS, "q", "shop", free)
        await asyncio.sleep(2)
        assert (await hub.owner.get(QUOTAS, "q", "shop"))["status"] == counted
        summary = (await hub.summaries("shop"))["p-resourcequotas-q"]
        assert summary["reported"] == 1, "it is reported beside the object"


@virtual
async def test_a_summary_edited_or_deleted_by_hand_is_restored() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await furnished(hub, "florin")
        await asyncio.sleep(2)
        name = "p-deployments-web"
        await hub.owner.patch(STATUS_SUMMARIES, name, {"destinations": 99, "details": []}, "shop")
        await asyncio.sleep(2)
        assert (await hub.summaries("shop"))[name]["destinations"] == 1
        stray = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "StatusSummary",
            "metadata": {"name": "stray"},
            "destinations": 5,
        }
        await hub.owner.create(STATUS_SUMMARIES, stray, "shop")
        await hub.owner.delete(STATUS_SUMMARIES, name, "shop")
        await asyncio.sleep(2)
        found = await hub.summaries("shop")
        assert set(found) == {name}
        assert found[name]["destinations"] == 1


@virtual
async def test_a_storm_of_reports_costs_a_few_writes_per_second() -> None:
    hub = Hub()
    edges = [f"edge-{number}" for number in range(20)]
    async with hub.running(edges), hub.summarizing():
        await furnished(hub, *edges)
        await asyncio.sleep(2)
        before = (await hub.summaries("shop"))["p-deployments-web"]["metadata"]["generation"]
        for moment in range(100):
            edge = edges[moment % len(edges)]
            await hub.report(edge, DEPLOYMENTS, "web", "shop", running(moment + 1))
            await asyncio.sleep(0.02)
        await asyncio.sleep(1)
        summary = (await hub.summaries("shop"))["p-deployments-web"]
        # Two seconds of reports, and the last look after them.
        assert summary["metadata"]["generation"] - before <= 6
        replicas = next(each for each in summary["numbers"] if each["field"] == "replicas")
        assert (replicas["min"], replicas["max"], replicas["sum"]) == (81, 100, 1810)


@virtual
async def test_a_restart_writes_nothing_that_is_right_already() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.summarizing():
            await furnished(hub, "florin", "guilder")
            await hub.report("florin", DEPLOYMENTS, "web", "shop", running())
            await asyncio.sleep(2)
        revision = await hub.store.revision()
        async with hub.summarizing():
            await asyncio.sleep(5)
        assert await hub.store.revision() == revision


@virtual
async def test_summaries_that_would_share_a_name_do_not() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        await hub.owner.create(DEPLOYMENTS, deployment("deployments-web"), "shop")
        await hub.owner.create(DEPLOYMENTS, deployment("web"), "shop")
        await hub.place("p", "florin")
        await hub.place("p-deployments", "florin")
        await asyncio.sleep(2)
        found = await hub.summaries("shop")
        assert len(found) == 4
        causes = {(each["placement"], each["object"]["name"]) for each in found.values()}
        assert len(causes) == 4
        shared = "p-deployments-deployments-web"
        assert found[shared]["placement"] == "p"
        await hub.owner.delete(EDGE_PLACEMENTS, "p")
        await asyncio.sleep(2)
        found = await hub.summaries("shop")
        assert found[shared]["placement"] == "p-deployments"
        assert len(found) == 2


WIDGETS = GroupVersionResource("example.org", "v1", "widgets")


def definition(scope: str = "Namespaced") -> dict[str, Any]:
    """A kind that its workspace defines for itself."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": scope,
            "names": {
                "plural": "widgets",
                "singular": "widget",
                "kind": "Widget",
                "listKind": "WidgetList",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


@virtual
async def test_kinds_that_a_workspace_defines_itself_have_summaries_too() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await asyncio.sleep(2)
        await hub.owner.create(DEFINITIONS, definition())
        await hub.mailbox("florin").create(DEFINITIONS, definition())
        await asyncio.sleep(2)
        widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await hub.owner.create(WIDGETS, widget, "shop")
        await hub.project("florin", WIDGETS, widget, "shop")
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "load": 0.5}
        await hub.report("florin", WIDGETS, "w", "shop", ready)
        await asyncio.sleep(2)
        summary = (await hub.summaries("shop"))["p-widgets-w"]
        assert (summary["destinations"], summary["healthy"]) == (1, 1)
        assert summary["numbers"] == [{"field": "load", "sum": 0.5, "min": 0.5, "max": 0.5}]
        assert summary["conditionCounts"] == [
            {"type": "Ready", "true": 1, "false": 0, "unknown": 0}
        ]
        await hub.owner.delete(DEFINITIONS, "widgets.example.org")
        await asyncio.sleep(5)
        assert not await hub.summaries("shop")


@virtual
async def test_a_cluster_scoped_object_has_a_cluster_scoped_summary() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await hub.owner.create(DEFINITIONS, definition("Cluster"))
        await hub.mailbox("florin").create(DEFINITIONS, definition("Cluster"))
        entry = {"apiGroup": "example.org", "resources": ["widgets"], "resourceNames": ["w"]}
        await hub.place("p", "florin", nonNamespacedObjects=[entry])
        for name in ("w", "other"):
            widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}}
            await hub.owner.create(WIDGETS, widget)
            await hub.project("florin", WIDGETS, widget, "")
        await hub.report("florin", WIDGETS, "w", "", {"size": 3})
        await asyncio.sleep(5)
        (summary,) = (await hub.owner.list(CLUSTER_STATUS_SUMMARIES)).items
        assert summary["metadata"]["name"] == "p-widgets-w"
        assert (summary["destinations"], summary["reported"]) == (1, 1)


@virtual
async def test_destinations_are_those_of_all_slices_together() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await furnished(hub, "florin")
        first = await hub.owner.get(SINGLE_PLACEMENT_SLICES, "p")
        second = {
            "apiVersion": first["apiVersion"],
            "kind": first["kind"],
            "metadata": {"name": "p-2", "ownerReferences": first["metadata"]["ownerReferences"]},
            "destinations": [hub.destination("guilder")],
        }
        await hub.owner.create(SINGLE_PLACEMENT_SLICES, second)
        await asyncio.sleep(2)
        assert (await hub.summaries("shop"))["p-deployments-web"]["destinations"] == 2
        await hub.owner.delete(SINGLE_PLACEMENT_SLICES, "p-2")
        await asyncio.sleep(2)
        assert (await hub.summaries("shop"))["p-deployments-web"]["destinations"] == 1


@virtual
async def test_a_restart_reads_kinds_of_single_workspaces_before_it_writes() -> None:
    hub = Hub()
    async with hub.running(["florin"]):
        await hub.namespace("shop", go="yes")
        await hub.place("p", "florin")
        await hub.owner.create(DEFINITIONS, definition())
        await hub.mailbox("florin").create(DEFINITIONS, definition())
        widget = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await hub.owner.create(WIDGETS, widget, "shop")
        await hub.project("florin", WIDGETS, widget, "shop")
        await hub.report("florin", WIDGETS, "w", "shop", {"size": 3})
        async with hub.summarizing():
            await asyncio.sleep(5)
        assert (await hub.summaries("shop"))["p-widgets-w"]["reported"] == 1
        revision = await hub.store.revision()
        async with hub.summarizing():
            await asyncio.sleep(5)
        assert await hub.store.revision() == revision


@virtual
async def test_a_placement_whose_workspace_goes_holds_nobody_up() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing() as summarizer:
        await hub.workspace("root", "other")
        await hub.bind("root:other", "bind-espw", PROVIDER, "edge.kcp.io")
        other = await hub.cluster_of("root:other")
        placement = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "q"},
            "spec": {"locationSelectors": [{}]},
        }
        await hub.at(other).create(EDGE_PLACEMENTS, placement)
        await hub.at("root").delete(WORKSPACES, "other")
        await furnished(hub, "florin")
        await asyncio.sleep(60)
        assert set(await hub.summaries("shop")) == {"p-deployments-web"}
        assert not summarizer.inputs.is_workload(other)
        assert summarizer.queue.idle


@virtual
async def test_a_mailbox_made_anew_is_followed_where_it_is_now() -> None:
    hub = Hub()
    async with hub.running(["florin"]), hub.summarizing():
        await furnished(hub, "florin")
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running())
        await asyncio.sleep(2)
        assert (await hub.summaries("shop"))["p-deployments-web"]["healthy"] == 1
        await hub.at(PROVIDER).delete(WORKSPACES, Mailbox("imw", hub.uids["florin"]).workspace)
        await asyncio.sleep(5)
        summary = (await hub.summaries("shop"))["p-deployments-web"]
        assert (summary["healthy"], summary["details"][0]["reason"]) == (0, "NeverHeardOf")
        await hub.add_edge("florin")
        await hub.project("florin", DEPLOYMENTS, deployment("web"), "shop")
        await hub.report("florin", DEPLOYMENTS, "web", "shop", running())
        await asyncio.sleep(2)
        assert (await hub.summaries("shop"))["p-deployments-web"]["healthy"] == 1


# A dozen in the suite; all of them when asked for many.
@pytest.mark.parametrize("seed", seeds_of(1, least=12))
@virtual
async def test_after_any_history_with_faults_summaries_are_what_one_pass_would_write(
    seed: int,
) -> None:
    """Random edits by everybody, a flaky network and restarts; then the truth, written once."""
    hub = Hub(seed, Rates())
    history = History(hub)
    async with hub.running(EDGES):
        await history.begin()
        for _ in range(2):
            async with hub.summarizing():
                for _ in range(15):
                    await history.step()
                    await asyncio.sleep(hub.ids.fraction() * 2)
        async with hub.summarizing():
            hub.faults.heal()
            await asyncio.sleep(300)
            assert await history.found() == await history.expected()
            revision = await hub.store.revision()
            await asyncio.sleep(300)
            assert await hub.store.revision() == revision


# Edges that are not heard of.


async def seen_of(hub: Hub) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the summary of the Deployment, and the status of its placement."""
    summary = (await hub.summaries("shop"))["p-deployments-web"]
    return summary, (await hub.placement("p"))["status"]


async def with_one_lost(hub: Hub) -> None:
    """Have a Deployment healthy at florin and guilder, of which the latter is lost."""
    await furnished(hub, "florin", "guilder")
    for edge in ("florin", "guilder"):
        await hub.applied(edge, DEPLOYMENTS, "web", "shop")
        await hub.report(edge, DEPLOYMENTS, "web", "shop", running())
    # As the scheduler would.
    scheduled = {"status": {"specGeneration": 1, "matchingLocationCount": 2}}
    await hub.owner.patch(EDGE_PLACEMENTS, "p", scheduled, subresource="status")
    await hub.beat("guilder", 60)
    await asyncio.sleep(2)


@virtual
async def test_a_report_counts_until_the_lease_lapses_and_again_when_the_edge_is_back() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await with_one_lost(hub)
        before, _ = await seen_of(hub)
        assert (before["healthy"], before["unknown"]) == (2, 0)

        await asyncio.sleep(60)
        summary, status = await seen_of(hub)
        assert (summary["healthy"], summary["unknown"]) == (1, 1)
        assert status["unknownDestinations"] == 1

        copies = (await hub.mailbox("guilder").get(DEPLOYMENTS, "web", "shop"))["metadata"]
        await hub.beat("guilder", 3600)
        await asyncio.sleep(2)
        summary, status = await seen_of(hub)
        assert {**summary, "metadata": {}} == {**before, "metadata": {}}
        assert status["unknownDestinations"] == 0
        after = (await hub.mailbox("guilder").get(DEPLOYMENTS, "web", "shop"))["metadata"]
        assert after["resourceVersion"] == copies["resourceVersion"]


@virtual
async def test_a_summarizer_that_starts_anew_changes_its_mind_of_no_edge() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.summarizing():
            await with_one_lost(hub)
            await asyncio.sleep(60)
            assert (await seen_of(hub))[0]["unknown"] == 1
        revision = await hub.store.revision()
        async with hub.summarizing():
            await asyncio.sleep(30)
        assert await hub.store.revision() == revision


@virtual
async def test_nothing_lapses_while_the_hub_does_not_answer() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.summarizing():
        await with_one_lost(hub)
        before, _ = await seen_of(hub)
        hub.faults.rates = Rates(1.0, 0.0, 0.0, 1.0, 0.0)
        await hub.beat("guilder", 60)  # breaks the watch, unseen
        await asyncio.sleep(100)
        await hub.beat("guilder", 60)
        hub.faults.heal()
        await asyncio.sleep(40)
        summary, status = await seen_of(hub)
        assert summary["metadata"]["generation"] == before["metadata"]["generation"]
        assert (summary["unknown"], status["unknownDestinations"]) == (0, 0)
