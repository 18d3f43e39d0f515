"""Explanations and what-ifs read from a real hub engine; nothing is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.api.edge import LOCATION_GRANTS, SINGLE_PLACEMENT_SLICES, Mailbox
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.refs import ObjectRef
from skerry.app.explain import Hub as AskedHub
from skerry.app.explain import Question
from skerry.app.explain_names import Unanswered
from skerry.logic.fleet.explanation.answer import Answer
from skerry.logic.fleet.explanation.text import changes_text
from tests.kit.chain import building
from tests.kit.chain.summarizer_hub import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PROVIDER,
    Hub,
    deployment,
    running,
)
from tests.kit.sim.loop import virtual

Raw = dict[str, Any]


class Town(Hub):
    """A hub with an inventory: florin is in production, guilder is not."""

    @asynccontextmanager
    async def furnished(self) -> AsyncIterator[AskedHub]:
        async with self.running([]):
            await self.workspace("root", "imw")
            for name, env in (("florin", "prod"), ("guilder", "dev")):
                await self._edge(name, {"env": env})
            await self.namespace("shop", go="yes")
            await self.namespace("bank", go="no")
            await self.owner.create(DEPLOYMENTS, deployment("web"), "shop")
            loot = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "loot"}}
            await self.owner.create(CONFIG_MAPS, loot, "bank")
            await self.place("p", locationSelectors=[{"matchLabels": {"env": "prod"}}])
            revision = await self.store.revision()
            yield AskedHub(self.client, self.client, self.client, "root:wmw")
            self.writes = await self.store.revision() - revision

    async def _edge(self, name: str, labels: dict[str, str]) -> None:
        inventory = self.at("root:imw")
        target = await inventory.create(
            SYNC_TARGETS,
            {
                "apiVersion": "workload.kcp.io/v1alpha1",
                "kind": "SyncTarget",
                "metadata": {"name": name, "labels": {"id": name}},
                "spec": {"cells": {}},
            },
        )
        await inventory.create(LOCATIONS, location(name, labels))
        self.uids[name] = target["metadata"]["uid"]
        imw = ObjectRef.of(SYNC_TARGETS.group_resource, target).cluster
        workspace = Mailbox(imw, self.uids[name]).workspace
        await self.workspace(PROVIDER, workspace)
        self.clusters[name] = await self.cluster_of(f"{PROVIDER}:{workspace}")
        await self.bind(self.clusters[name], "bind-kubernetes", "root:compute", "kubernetes")
        self.imw = imw

    async def slice(self) -> None:
        destination = {
            "cluster": self.imw,
            "locationName": "florin",
            "syncTargetName": "florin",
            "syncTargetUID": self.uids["florin"],
        }
        await self.owner.patch(SINGLE_PLACEMENT_SLICES, "p", {"destinations": [destination]})


def location(name: str, labels: dict[str, str]) -> Raw:
    return {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "resource": {
                "group": "workload.kcp.io",
                "version": "v1alpha1",
                "resource": "synctargets",
            },
            "instanceSelector": {"matchLabels": {"id": name}},
        },
    }


def outcomes(found: Answer) -> dict[tuple[str, str], str]:
    return {(each.item.name, each.ref.name): each.chain.outcome for each in found.pairs}


@virtual
async def test_an_object_is_followed_from_selection_to_health() -> None:
    town = Town()
    async with town.furnished() as hub:
        web = Question("p", "florin", "deploy/shop/web")
        assert outcomes(await hub.explain(web)) == {("web", "florin"): "NotYetScheduled"}
        await town.slice()
        assert outcomes(await hub.explain(web)) == {("web", "florin"): "NotInMailbox"}
        await town.project("florin", DEPLOYMENTS, await _source(town), "shop")
        assert outcomes(await hub.explain(web)) == {("web", "florin"): "NotApplied"}
        await town.applied("florin", DEPLOYMENTS, "web", "shop")
        assert outcomes(await hub.explain(web)) == {("web", "florin"): "NotReported"}
        await town.report("florin", DEPLOYMENTS, "web", "shop", running(1, 0))
        assert outcomes(await hub.explain(web)) == {("web", "florin"): "Unavailable"}
        await town.report("florin", DEPLOYMENTS, "web", "shop", running(1))
        await town.mailbox("florin").patch(
            DEPLOYMENTS, "web", {"status": running(1)}, "shop", subresource="status"
        )
        assert outcomes(await hub.explain(web)) == {("web", "florin"): "Healthy"}


async def _source(town: Town) -> Raw:
    """The source as the server completed it: what the translator copies."""
    return await town.owner.get(DEPLOYMENTS, "web", "shop")


@virtual
async def test_every_location_and_object_reports_why_it_is_not_meant() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        found = await hub.explain(Question("p"))
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
        found = await hub.explain(Question("p", "", "apibinding/bind-kubernetes"))
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
                await hub.explain(question)


@virtual
async def test_a_label_change_reports_what_it_would_bring() -> None:
    town = Town()
    async with town.furnished() as hub:
        labels = {"metadata": {"name": "bank", "labels": {"go": "yes"}}}
        (found,) = await hub.what_if([{"apiVersion": "v1", "kind": "Namespace", **labels}])
        assert [each.name for each in found.objects_added] == ["loot", "bank"]
        assert not found.destinations_added
    assert not town.writes


@virtual
async def test_a_relabelled_location_joins_seen_from_its_own_workspace() -> None:
    town = Town()
    async with town.furnished():
        inventory = AskedHub(town.client, town.client, town.client, "root:imw")
        change = {
            "apiVersion": "scheduling.kcp.io/v1alpha1",
            "kind": "Location",
            "metadata": {"name": "guilder", "labels": {"env": "prod"}},
        }
        (found,) = await inventory.what_if([change])
        assert found.ref.name == "p"
        assert [each.location for each in found.destinations_added] == ["guilder"]
        (lost,) = await inventory.what_if([location("florin", {})], delete=True)
        assert [each.location for each in lost.destinations_removed] == ["florin"]
    assert not town.writes


@virtual
async def test_a_new_placement_reports_everything_it_would_place() -> None:
    town = Town()
    async with town.furnished() as hub:
        placement = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "q"},
            "spec": {
                "locationSelectors": [{}],
                "namespaceSelector": {"matchLabels": {"go": "no"}},
            },
        }
        (found,) = await hub.what_if([placement])
        assert found.ref.name == "q"
        assert [each.name for each in found.objects_added] == ["loot", "bank"]
        assert {each.location for each in found.destinations_added} >= {"florin", "guilder"}
        with pytest.raises(Unanswered, match="serves no such kind"):
            await hub.what_if([{"apiVersion": "x/v1", "kind": "Y", "metadata": {"name": "z"}}])


async def _grant(town: Town, **spec: Any) -> Raw:
    """Put a LocationGrant into the inventory; return it as a file would hold it."""
    made = building.grant("eu-only", **spec)
    return {**made, "metadata": {"name": "eu-only"}}


@virtual
async def test_a_refused_location_names_the_grant_and_what_if_reports_what_a_grant_would_do() -> (
    None
):
    town = Town()
    async with town.furnished() as hub:
        await town.bind("root:imw", "bind-espw", PROVIDER, "edge.kcp.io")
        await town.slice()
        inventory = AskedHub(town.client, town.client, town.client, "root:imw")
        grant = await _grant(town, paths=["root:other"], selector={})
        (held,) = await inventory.what_if([grant])
        assert (held.workspace, held.destinations_removed) == ("root:wmw", ())
        assert [each.location for each in held.destinations_held] == ["florin"]
        assert "! held destination florin by florin" in changes_text([held])
        await town.at("root:imw").create(LOCATION_GRANTS, grant)
        found = await hub.explain(Question("p", "florin", "deploy/shop/web"))
        (location,) = found.locations
        assert location.link.reason == "Held"
        assert location.link.messages[0] == "not granted by root:imw/eu-only"
        wider = await _grant(town, paths=["root:wmw"], selector={})
        (freed,) = await inventory.what_if([wider])
        assert [each.location for each in freed.destinations_freed] == ["florin"]
        await town.owner.patch(SINGLE_PLACEMENT_SLICES, "p", {"destinations": []})
        (location,) = (await hub.explain(Question("p", "florin"))).locations
        assert location.link.reason == "NotGranted"
