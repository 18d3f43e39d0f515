"""What a change not yet made would do, asked of a real hub engine; nothing is written."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import (
    CUSTOMIZERS,
    EDGE_PLACEMENTS,
    LOCATION_GRANTS,
    PLACEMENT_GUARDS,
    ROLLOUTS,
    SINGLE_PLACEMENT_SLICES,
)
from skerry.api.kinds import GroupVersionResource
from skerry.app.explain import Question, explain
from skerry.app.explain_names import Unanswered
from skerry.app.hub_reading import HubReader
from skerry.app.what_if import foresee
from skerry.logic.fleet.explanation.changes import PlacementChange
from skerry.logic.fleet.explanation.text import changes_text
from tests.kit.chain import building
from tests.kit.chain.asked_town import Town, location
from tests.kit.chain.summarizer_hub import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PROVIDER,
    deployment,
)
from tests.kit.sim.loop import virtual

Raw = dict[str, Any]
SERVICES = GroupVersionResource("", "v1", "services")


async def what_if(hub: HubReader, documents: list[Raw], **how: Any) -> list[PlacementChange]:
    return (await foresee(hub, documents, **how)).changes


@virtual
async def test_a_label_change_reports_what_it_would_bring() -> None:
    town = Town()
    async with town.furnished() as hub:
        labels = {"metadata": {"name": "bank", "labels": {"go": "yes"}}}
        (found,) = await what_if(hub, [{"apiVersion": "v1", "kind": "Namespace", **labels}])
        assert [each.name for each in found.objects_added] == ["loot", "bank"]
        assert not found.destinations_added
    assert not town.writes


@virtual
async def test_a_relabelled_location_joins_seen_from_its_own_workspace() -> None:
    town = Town()
    async with town.furnished():
        inventory = town.reader("root:imw")
        change = {
            "apiVersion": "scheduling.kcp.io/v1alpha1",
            "kind": "Location",
            "metadata": {"name": "guilder", "labels": {"env": "prod"}},
        }
        (found,) = await what_if(inventory, [change])
        assert found.ref.name == "p"
        assert [each.location for each in found.destinations_added] == ["guilder"]
        (lost,) = await what_if(inventory, [location("florin", {})], delete=True)
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
        (found,) = await what_if(hub, [placement])
        assert found.ref.name == "q"
        assert [each.name for each in found.objects_added] == ["loot", "bank"]
        assert {each.location for each in found.destinations_added} >= {"florin", "guilder"}
        with pytest.raises(Unanswered, match="serves no such kind"):
            await what_if(hub, [{"apiVersion": "x/v1", "kind": "Y", "metadata": {"name": "z"}}])


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
        inventory = town.reader("root:imw")
        grant = await _grant(town, paths=["root:other"], selector={})
        (held,) = await what_if(inventory, [grant])
        assert held.destinations_removed == ()
        assert [each.location for each in held.destinations_held] == ["florin"]
        foreseen = await foresee(inventory, [grant])
        text = changes_text(foreseen.changes, foreseen.path)
        assert "EdgePlacement p in root:wmw" in text
        assert "! held destination florin by florin  root:imw" in text
        await town.at("root:imw").create(LOCATION_GRANTS, grant)
        found = await explain(hub, Question("p", "florin", "deploy/shop/web"))
        (location,) = found.locations
        assert location.link.reason == "Held"
        assert location.link.messages[0] == "not granted by root:imw/eu-only"
        wider = await _grant(town, paths=["root:wmw"], selector={})
        (freed,) = await what_if(inventory, [wider])
        assert [each.location for each in freed.destinations_freed] == ["florin"]
        await town.owner.patch(SINGLE_PLACEMENT_SLICES, "p", {"destinations": []})
        (location,) = (await explain(hub, Question("p", "florin"))).locations
        assert location.link.reason == "NotGranted"


MAPS = {"apiGroups": [""], "resources": ["configmaps"]}
NOT_APPS = {"apiGroups": [""], "resources": ["*"]}
OWN_PLACEMENT: Raw = {
    "apiVersion": "edge.kcp.io/v1alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "own"},
    "spec": {
        "locationSelectors": [{"matchLabels": {"env": "prod"}}],
        "namespaceSelector": {"matchLabels": {"go": "here"}},
    },
}


async def _own(town: Town) -> HubReader:
    """Have a workload where the Locations are, with no placement; return who asks there."""
    await town.bind("root:imw", "bind-espw", PROVIDER, "edge.kcp.io")
    await town.bind("root:imw", "bind-kubernetes", "root:compute", "kubernetes")
    at = town.at("root:imw")
    await at.create(NAMESPACES, {"metadata": {"name": "here", "labels": {"go": "here"}}})
    page: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}}
    await at.create(CONFIG_MAPS, page, "here")
    await at.create(DEPLOYMENTS, deployment("web"), "here")
    return town.reader("root:imw")


async def _changed(hub: HubReader, *documents: Raw, **how: Any) -> PlacementChange | None:
    """Return what documents would change of the placement ``own``."""
    found = await what_if(hub, list(documents), **how)
    return next((each for each in found if each.ref.name == "own"), None)


def _withheld(change: PlacementChange | None) -> list[tuple[str, str]]:
    assert change is not None
    return [(each.item.name, each.problem.reason) for each in change.withheld]


@virtual
async def test_what_a_new_grant_admits_is_not_withheld_for_want_of_it() -> None:
    town = Town()
    async with town.furnished():
        hub = await _own(town)
        await hub.own.create(EDGE_PLACEMENTS, OWN_PLACEMENT)
        other = await _grant(town, paths=["root:other"], selector={})
        await hub.own.create(LOCATION_GRANTS, other)
        mine = await _grant(town, paths=["root:imw"], selector={})
        mine["metadata"]["name"] = "mine"
        found = await _changed(hub, mine)
        assert found is not None
        assert [each.location for each in found.destinations_added] == ["florin"]
        assert {each.name for each in found.arriving} == {"here", "page", "web"}
        assert _withheld(found) == []
        # The rules that count are those of the new grant.
        some = await _changed(hub, {**mine, "spec": {**mine["spec"], "rules": [MAPS]}})
        assert _withheld(some) == [("web", "NotGranted")]


@virtual
async def test_the_first_placement_of_a_workspace_is_admitted_by_the_grants_there_are() -> None:
    town = Town()
    async with town.furnished():
        hub = await _own(town)
        await hub.own.create(LOCATION_GRANTS, await _grant(town, paths=["root:imw"], selector={}))
        found = await _changed(hub, OWN_PLACEMENT)
        assert found is not None
        assert [each.location for each in found.destinations_added] == ["florin"]
        assert _withheld(found) == []


@virtual
async def test_a_grant_that_lets_less_through_withholds_what_stays_as_it_is() -> None:
    town = Town()
    async with town.furnished():
        hub = await _own(town)
        await hub.own.create(EDGE_PLACEMENTS, OWN_PLACEMENT)
        # Without any grant nobody needs one; the first that enforces may let less through.
        first = await _changed(hub, await _grant(town, paths=["root:imw"], selector={}))
        assert first is None
        some = await _grant(town, paths=["root:imw"], selector={}, rules=[NOT_APPS])
        assert _withheld(await _changed(hub, some)) == [("web", "NotGranted")]
        wide = await _grant(town, paths=["root:imw"], selector={})
        await hub.own.create(LOCATION_GRANTS, wide)
        narrowed = await _changed(hub, some)
        assert _withheld(narrowed) == [("web", "NotGranted")]
        assert narrowed is not None
        [web] = narrowed.withheld
        assert [each.location for each in web.destinations] == ["florin"]
        assert "stays as it is until its removal is confirmed" in web.problem.message
        # And back: what was withheld would go.
        await hub.own.patch(LOCATION_GRANTS, "eu-only", {"spec": {"rules": [NOT_APPS]}})
        widened = await _changed(hub, wide)
        assert widened is not None
        assert [(each.item.name, each.fields) for each in widened.contents] == [
            ("web", ("it would be sent",))
        ]
        assert widened.withheld == ()
        # An edit that changes nothing of it is no news.
        assert await _changed(hub, some) is None


@virtual
async def test_what_grants_let_through_by_a_relabelled_location_is_seen() -> None:
    town = Town()
    async with town.furnished():
        hub = await _own(town)
        await hub.own.create(EDGE_PLACEMENTS, OWN_PLACEMENT)
        everywhere = await _grant(town, paths=["root:imw"], selector={}, rules=[MAPS])
        await hub.own.create(LOCATION_GRANTS, everywhere)
        gold = {"matchLabels": {"tier": "gold"}}
        more = await _grant(town, paths=["root:imw"], selector=gold)
        more["metadata"]["name"] = "gold"
        await hub.own.create(LOCATION_GRANTS, more)
        found = await _changed(hub, location("florin", {"env": "prod", "tier": "gold"}))
        assert found is not None
        assert [(each.item.name, each.fields) for each in found.contents] == [
            ("web", ("it would be sent",))
        ]


@virtual
async def test_a_held_destination_is_named_and_not_each_object_there() -> None:
    town = Town()
    async with town.furnished():
        hub = await _own(town)
        await hub.own.create(EDGE_PLACEMENTS, OWN_PLACEMENT)
        destination = {"cluster": town.imw, "locationName": "florin", "syncTargetName": "florin"}
        destination["syncTargetUID"] = town.uids["florin"]
        kind = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "SinglePlacementSlice"}
        labels = {"edge.kcp.io/source-placement": "own"}
        piece = {**kind, "metadata": {"name": "own", "labels": labels}}
        await hub.own.create(SINGLE_PLACEMENT_SLICES, {**piece, "destinations": [destination]})
        found = await _changed(hub, await _grant(town, paths=["root:other"], selector={}))
        assert found is not None
        assert [each.location for each in found.destinations_held] == ["florin"]
        assert found.withheld == ()


@virtual
async def test_a_thing_that_does_not_exist_has_no_answer() -> None:
    town = Town()
    async with town.furnished() as hub:
        lost: Raw = {"apiVersion": "scheduling.kcp.io/v1alpha1", "kind": "Location"}
        lost |= {"metadata": {"name": "nowhere", "labels": {"env": "prod"}}}
        inventory = town.reader("root:imw")
        with pytest.raises(Unanswered, match="there is no Location 'nowhere' in root:imw"):
            await foresee(inventory, [lost])
        with pytest.raises(Unanswered, match="there is no Location 'nowhere' in root:imw"):
            await foresee(inventory, [lost], delete=True)
        page: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
        page |= {"metadata": {"name": "page", "namespace": "typo"}}
        with pytest.raises(Unanswered, match="there is no Namespace 'typo' in root:wmw"):
            await foresee(hub, [page])
        # A Namespace is made of metadata alone; that it would be new is said.
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "typo"}}
        found = await foresee(hub, [space, page])
        assert found.created == ["Namespace 'typo'", "ConfigMap 'page'"]
        assert found.changes == []
    assert not town.writes


@virtual
async def test_an_edit_of_content_is_seen_at_every_destination() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        bigger = deployment("web")
        bigger["metadata"]["namespace"] = "shop"
        bigger["spec"]["replicas"] = 5
        foreseen = await foresee(hub, [bigger])
        text = changes_text(foreseen.changes, foreseen.path, foreseen.created)
        assert "~ object deployments.apps shop/web at 1 destination: florin" in text
        assert "      spec.replicas: added 5" in text
        assert foreseen.created == []


@virtual
async def test_a_customizer_is_seen_in_what_it_customizes() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        customizer = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "Customizer",
            "metadata": {
                "name": "c",
                "namespace": "shop",
                "annotations": {"edge.kcp.io/expand-parameters": "true"},
            },
            "replacements": [{"path": "$.spec.replicas", "value": "7"}],
        }
        await town.owner.create(CUSTOMIZERS, {**customizer, "replacements": []}, "shop")
        patch = {"metadata": {"annotations": {"edge.kcp.io/customizer": "c"}}}
        await town.owner.patch(DEPLOYMENTS, "web", patch, "shop")
        (found,) = await what_if(hub, [customizer])
        assert found.contents[0].fields == ("spec.replicas: added 7",)
        lacking = [{"path": "$.spec.replicas", "value": "%(replicas)"}]
        (found,) = await what_if(hub, [{**customizer, "replacements": lacking}])
        assert [each.problem.reason for each in found.withheld] == ["MissingParameter"]


@virtual
async def test_a_destination_to_be_added_says_what_goes_there_and_whose_names_are_taken() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        await town.workspace("root", "rival")
        rival = await town.cluster_of("root:rival")
        page: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"by": "wmw"}}
        await town.owner.create(CONFIG_MAPS, {**page, "metadata": {"name": "page"}}, "shop")
        theirs = {**page, "data": {"by": "rival"}, "metadata": {"name": "page"}}
        await town.project("guilder", CONFIG_MAPS, theirs, "shop")
        patch = {"metadata": {"annotations": {"edge.kcp.io/owner-workspace": rival}}}
        await town.mailbox("guilder").patch(CONFIG_MAPS, "page", patch, "shop")
        wider = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "p"},
            "spec": {
                "locationSelectors": [{}],
                "namespaceSelector": {"matchLabels": {"go": "yes"}},
            },
        }
        (found,) = await what_if(hub, [wider])
        assert "guilder" in {each.location for each in found.destinations_added}
        assert {each.name for each in found.arriving} >= {"shop", "web", "page"}
        taken = [each for each in found.withheld if each.problem.reason == "NameTaken"]
        assert [(each.item.name, {d.sync_target for d in each.destinations}) for each in taken] == [
            ("page", {"guilder"})
        ]
        assert "root:rival" in taken[0].problem.message


@virtual
async def test_what_the_server_would_refuse_or_complete_is_no_surprise() -> None:
    town = Town()
    async with town.furnished() as hub:
        await town.slice()
        service: Raw = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
        service["metadata"]["namespace"] = "shop"
        ports = [{"port": 80}]
        await town.owner.create(SERVICES, {**service, "spec": {"ports": ports}}, "shop")
        assert await what_if(hub, [{**service, "spec": {"ports": ports}}]) == [], "as it is"
        wrong = {"matchExpressions": [{"key": "go", "operator": "Never"}]}
        placement = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "EdgePlacement"}
        malformed: Raw = {**placement, "metadata": {"name": "p"}}
        malformed["spec"] = {"locationSelectors": [wrong]}
        with pytest.raises(Unanswered, match=r'EdgePlacement\.edge\.kcp\.io "p" is invalid'):
            await foresee(hub, [malformed])
    assert town.writes == 2  # the slice and the Service; asking wrote nothing


@virtual
async def test_what_guards_would_hold_is_said() -> None:
    town = Town()
    async with town.furnished() as hub:
        guard = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "PlacementGuard",
            "metadata": {"name": "own"},
            "spec": {"budgets": [{"of": "DestinationsRemoved", "max": 0}]},
        }
        await hub.own.create(PLACEMENT_GUARDS, guard)
        inventory = town.reader("root:imw")
        found = await foresee(inventory, [location("florin", {})], delete=True)
        [(ref, why)] = found.held
        assert ref.name == "p"
        assert why.startswith("PlacementGuard ./own: removals would come to 1 of")


@virtual
async def test_a_change_of_content_shows_the_rollout_it_would_start() -> None:
    town = Town()
    async with town.furnished() as hub:
        kind = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "p"}}
        canary = {"name": "canary", "selector": {"matchLabels": {"env": "prod"}}, "soak": "1h"}
        rollout = {**kind, "spec": {"waves": [canary], "judge": {"minReady": "30s"}}}
        edit = deployment("web")
        edit["metadata"]["namespace"] = "shop"
        edit["spec"]["replicas"] = 9
        # As a document beside the change, and as an object of the workspace.
        (found,) = await what_if(hub, [rollout, edit])
        await hub.own.create(ROLLOUTS, rollout)
        (again,) = await what_if(hub, [edit])
        assert found.rollout is not None
        assert found.rollout.waves == (again.rollout.waves if again.rollout else ())
        [wave] = found.rollout.waves
        assert (wave.name, wave.names, wave.soak) == ("canary", ("florin",), 3600)
        text = changes_text([again])
        assert "wave canary: 1: florin; at once, soaks 1h" in text
        assert "earliest end: 1h40s from now" in text
        # What is no content starts nothing.
        labels = {"metadata": {"name": "p", "labels": {"a": "b"}}}
        none = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "EdgePlacement", **labels}
        assert await what_if(hub, [none]) == []
        assert await what_if(hub, [rollout], delete=True) == []
