"""Explanations and what-ifs read from a real hub engine; nothing is written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skerry.api.edge import PLACEMENT_REVISIONS, SINGLE_PLACEMENT_SLICES, SliceOwner
from skerry.api.refs import ObjectRef
from skerry.app.explain import Question, explain, explain_problems
from skerry.app.explain_names import Unanswered
from skerry.app.hub_reading import HubReader
from skerry.logic.fleet.explanation.answer import Answer
from skerry.logic.fleet.explanation.text import answer_text
from skerry.logic.fleet.revision.manifest import Inputs, Manifest, RevisionItem, content_digest
from skerry.logic.fleet.revision.objects import Cut, revision_objects
from skerry.logic.fleet.translation.sources import WatchKey, record_of
from tests.kit.chain.asked_town import Town
from tests.kit.chain.summarizer_hub import DEPLOYMENTS, running
from tests.kit.sim.loop import virtual

Raw = dict[str, Any]


def outcomes(found: Answer) -> dict[tuple[str, str], str]:
    return {(each.item.name, each.ref.name): each.chain.outcome for each in found.pairs}


@virtual
async def test_an_object_is_followed_from_selection_to_health() -> None:
    town = Town()
    async with town.furnished() as hub:
        web = Question("p", "florin", "deploy/shop/web")
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "NotYetScheduled"}
        await town.slice()
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "NotInMailbox"}
        await town.project("florin", DEPLOYMENTS, await _source(town), "shop")
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "NeverHeardOf"}
        await town.beat("florin")
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "NotApplied"}
        await town.applied("florin", DEPLOYMENTS, "web", "shop")
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "NotReported"}
        await town.report("florin", DEPLOYMENTS, "web", "shop", running(1, 0))
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "Unavailable"}
        await town.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        await town.mailbox("florin").patch(
            DEPLOYMENTS, "web", {"status": running(1)}, "shop", subresource="status"
        )
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "Healthy"}


async def _source(town: Town) -> Raw:
    """The source as the server completed it: what the translator copies."""
    return await town.owner.get(DEPLOYMENTS, "web", "shop")


@virtual
async def test_every_location_and_object_reports_why_it_is_not_meant() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        found = await explain(hub, Question("p"))
        links = {each.ref.name: each.link for each in found.locations}
        assert links["florin"].holds
        assert links["guilder"].reason == "LocationNotSelected"
        assert links["guilder"].edit == "label Location guilder: env=prod"
        objects = {each.item.name: each.link for each in found.objects}
        assert objects["web"].holds
        assert objects["loot"].reason == "NamespaceNotSelected"
        assert objects["loot"].edit == "label Namespace bank: go=yes"
        assert "kube-root-ca.crt" not in objects
        assert {("web", "florin"), ("shop", "florin")} == outcomes(found).keys()
    assert town.writes == 1  # the slice; asking wrote nothing


@virtual
async def test_a_binding_goes_along_with_the_kinds_it_brings() -> None:
    town = Town()
    async with town.furnished() as hub:
        found = await explain(hub, Question("p", "", "apibinding/bind-kubernetes"))
        (binding,) = found.objects
        assert (binding.link.holds, binding.link.reason) == (True, "Implied")
        assert {each.item.name for each in found.pairs} == {"bind-kubernetes"}


@virtual
async def test_a_question_about_what_is_not_there_has_no_answer() -> None:
    town = Town()
    async with town.furnished() as hub:
        for question, message in (
            (Question("q"), "there is no EdgePlacement 'q' in root:wmw"),
            (Question("p", "nowhere"), "there is no Location 'nowhere'"),
            (Question("p", "", "deploy/shop/other"), "there is no object 'deploy/shop/other'"),
            (Question("p", "", "gadget/shop/x"), "there is no namespaced kind 'gadget' here"),
            (Question("p", "", "web"), "want kind/namespace/name, or kind/name"),
        ):
            with pytest.raises(Unanswered, match=message):
                await explain(hub, question)


@virtual
async def test_an_edge_that_fell_silent_is_unknown_though_it_was_well_before() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        await town.project("florin", DEPLOYMENTS, await _source(town), "shop")
        await town.applied("florin", DEPLOYMENTS, "web", "shop")
        await town.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        await town.beat("florin", 90)
        found = await explain(hub, Question("p", "florin", "deploy/shop/web"))
        (pair,) = found.pairs
        assert pair.chain.outcome == "LeaseLapsed"
        assert "florin last heard of 90 s ago" in answer_text(found)


@virtual
async def test_workspaces_are_called_by_their_paths() -> None:
    town = Town()
    async with town.furnished() as hub:
        text = answer_text(await explain(hub, Question("p")))
        assert text.startswith("EdgePlacement p in root:wmw: ")
        assert "root:imw" in text
        clusters = [town.imw, await town.cluster_of("root:wmw")]
        printed = text + json.dumps((await explain(hub, Question("p"))).as_json())
        assert not any(cluster in printed for cluster in clusters)
        (only,) = (await explain(hub, Question("p", "root:imw/florin"))).locations
        assert only.ref.name == "florin"
        with pytest.raises(Unanswered, match="no Location 'root:other/florin'"):
            await explain(hub, Question("p", "root:other/florin"))


@virtual
async def test_problems_are_those_of_the_workspace_or_of_all_of_them() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        await town.beat("florin")
        await town.project("florin", DEPLOYMENTS, await _source(town), "shop")
        copy = await town.mailbox("florin").get(DEPLOYMENTS, "web", "shop")
        notes = {"edge.kcp.io/sync-error": "Forbidden: the edge does not let it"}
        patch = {"metadata": {"annotations": notes}}
        await town.mailbox("florin").patch(DEPLOYMENTS, copy["metadata"]["name"], patch, "shop")
        found = await explain_problems(hub)
        worst = found[0]
        assert (worst.link.step, worst.link.reason) == ("applied", "Forbidden")
        assert (worst.workspace, worst.placement.name, worst.places) == (
            "root:wmw",
            "p",
            ("florin",),
        )
        elsewhere = town.reader("root:imw")
        assert await explain_problems(elsewhere) == []
        assert await explain_problems(elsewhere, everywhere=True) == found


@virtual
async def test_what_a_destination_is_sent_is_what_its_revision_says() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        web = Question("p", "florin", "deploy/shop/web")
        await town.project("florin", DEPLOYMENTS, await _source(town), "shop")
        await town.beat("florin")
        await town.applied("florin", DEPLOYMENTS, "web", "shop")
        await town.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        [piece] = (await hub.own.list(SINGLE_PLACEMENT_SLICES)).items
        sent = [{**each, "slot": 1, "revision": 4} for each in piece["destinations"]]
        await hub.own.patch(SINGLE_PLACEMENT_SLICES, "p", {"destinations": sent})
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "RevisionMissing"}
        source = await _source(town)
        item = ObjectRef("", "apps", "deployments", "shop", "web")
        proof = record_of(WatchKey("", "apps", "", "deployments"), source).digest
        await _cut(hub, 4, RevisionItem(item, content_digest(item, proof)))
        found = await explain(hub, web)
        assert [each.step for each in found.pairs[0].chain.links][3:5] == [
            "revision",
            "customization",
        ]
        # Somebody edits: what was cut is still what is sent.
        edit = {"spec": {"replicas": 7}}
        await town.owner.patch(DEPLOYMENTS, "web", edit, "shop")
        found = await explain(hub, web)
        assert outcomes(found) == {("web", "florin"): "Healthy"}
        text = answer_text(found)
        assert "yes, revision 4" in text
        assert "revision 4 is sent here; the workspace has something else since" in text
        assert found.as_json()["locations"][0]["revision"] == 4
        await _cut(hub, 5)
        sent = [{**each, "slot": 1, "revision": 5} for each in piece["destinations"]]
        await hub.own.patch(SINGLE_PLACEMENT_SLICES, "p", {"destinations": sent})
        assert outcomes(await explain(hub, web)) == {("web", "florin"): "NotInRevision"}


async def _cut(hub: HubReader, number: int, *items: RevisionItem) -> None:
    cut = Cut(number, number)
    for obj in revision_objects(SliceOwner("p", "u"), Manifest(items, Inputs("00")), cut):
        await hub.own.create(PLACEMENT_REVISIONS, obj)


@virtual
async def test_more_pairs_than_are_wanted_are_refused_before_any_mailbox_is_read() -> None:
    town = Town()
    async with town.furnished() as hub:
        everything = await explain(hub, Question("p"))
        locations, objects = len(everything.locations), len(everything.objects)
        whole = Question("p", max_pairs=locations * objects)
        assert (await explain(hub, whole)).as_json() == everything.as_json()
        with pytest.raises(Unanswered, match="name a Location, or an object, or both"):
            await explain(hub, replace(whole, max_pairs=locations * objects - 1))
