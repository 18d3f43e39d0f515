"""Stories of translation on a real hub; each defect of the first implementation has its own."""

from __future__ import annotations

import asyncio

from skerry.api.edge import CUSTOMIZERS, EDGE_PLACEMENTS, SYNCER_CONFIGS, Mailbox
from skerry.api.edge import SINGLE_PLACEMENT_SLICES as SLICES
from skerry.api.kcp.resources import API_BINDINGS, LOCATIONS, WORKSPACES
from skerry.api.objects import Object
from skerry.controllers.placement_translator.settings import TranslatorSettings
from tests.kit.chain.translator_hub import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PROVIDER,
    WIDGETS,
    Hub,
    config_map,
    customizer,
    deployment,
    widget_definition,
)
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual

# Long enough for every event to arrive, shorter than any timer that might cover for a lost one.
SOON = 0.1


def role(name: str, **labels: str) -> Object:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": [rule],
    }


def named(group: str, resource: str, *names: str) -> Object:
    return {"apiGroup": group, "resources": [resource], "resourceNames": list(names)}


ROLES = {
    "apiGroup": "rbac.authorization.k8s.io",
    "resources": ["clusterroles"],
    "labelSelectors": [{"matchLabels": {"go": "yes"}}],
}


@virtual
async def test_a_placed_namespace_arrives_with_everything_in_it() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await hub.namespace("shop")
        await hub.namespace("other", go="no")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}), "shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "other")
        await hub.place("all", "florin", "guilder")
        await asyncio.sleep(SOON)
        for edge in ("florin", "guilder"):
            assert await hub.found(edge, DEPLOYMENTS, "web", "shop")
            assert not await hub.found(edge, NAMESPACES, "other")
        await hub.assert_as_expected("florin", "guilder")


@virtual
async def test_a_copy_carries_the_content_and_nothing_of_the_source_itself() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop", go="yes", team="red")
        obj = config_map("page", {"k": "v"})
        obj["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["example.io/hold"]}
        source = await hub.put(CONFIG_MAPS, obj, "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", CONFIG_MAPS, "page", "shop")
        assert copy is not None
        assert copy["data"] == {"k": "v"}
        assert copy["metadata"]["labels"] == {"a": "b", "edge.kcp.io/projected": "yes"}
        assert "finalizers" not in copy["metadata"]
        assert copy["metadata"]["uid"] != source["metadata"]["uid"]
        assert {e["manager"] for e in copy["metadata"]["managedFields"]} == {"placement-translator"}
        space = await hub.found("florin", NAMESPACES, "shop")
        assert space is not None
        assert "team" not in space["metadata"]["labels"]


@virtual
async def test_the_example_scenario_gives_each_edge_its_syncer_config() -> None:
    hub = Hub()
    sets = {
        "c": [
            {
                "apiGroup": "group1.test",
                "resources": ["sprockets", "flanges"],
                "namespaces": ["orbital"],
                "names": ["george", "cosmo"],
            },
            {"apiGroup": "group2.test", "resources": ["cogs"], "names": ["William"]},
        ],
    }
    sets["s"] = [
        sets["c"][0],
        {"apiGroup": "group3.test", "resources": ["widgets"], "names": ["*"]},
    ]
    async with hub.running(["florin", "guilder"], ["wmw-c", "wmw-s"]), hub.translating():
        for letter, edges in (("c", ("florin", "guilder")), ("s", ("guilder",))):
            owner = f"wmw-{letter}"
            await hub.namespace(f"{letter}-stuff", owner)
            await hub.put(DEPLOYMENTS, deployment(f"{letter}d"), f"{letter}-stuff", owner)
            bindings = [named("apis.kcp.io", "apibindings", "bind-kube")]
            await hub.place(
                letter, *edges, owner=owner, upsync=sets[letter], nonNamespacedObjects=bindings
            )
        await asyncio.sleep(SOON)
        florin, guilder = await hub.config("florin"), await hub.config("guilder")
        assert florin["namespaceScope"]["namespaces"] == ["c-stuff"]
        assert guilder["namespaceScope"]["namespaces"] == ["c-stuff", "s-stuff"]
        assert florin["namespaceScope"]["resources"] == guilder["namespaceScope"]["resources"]
        carried = {
            f"{each['resource']}.{each['group']}" for each in florin["namespaceScope"]["resources"]
        }
        assert carried == {
            "configmaps.",
            "deployments.apps",
            "ingresses.networking.k8s.io",
            "leases.coordination.k8s.io",
            "limitranges.",
            "pods.",
            "resourcequotas.",
            "rolebindings.rbac.authorization.k8s.io",
            "roles.rbac.authorization.k8s.io",
            "secrets.",
            "serviceaccounts.",
            "services.",
        }
        assert "clusterScope" not in florin
        assert (await hub.found("florin", SYNCER_CONFIGS, "the-one") or {})["status"] == {}
        assert florin["upsync"] == sets["c"]
        assert guilder["upsync"] == [*sets["c"], sets["s"][1]]
        await hub.unplace("c", "wmw-c")
        await asyncio.sleep(SOON)
        assert await hub.config("florin") == {"namespaceScope": {}}
        assert await hub.copies("florin") == {}
        await hub.assert_as_expected("florin", "guilder")


@virtual
async def test_objects_created_changed_and_deleted_later_follow_at_once() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "1"}), "shop")
        await asyncio.sleep(SOON)
        assert (await hub.found("florin", CONFIG_MAPS, "page", "shop") or {})["data"] == {"k": "1"}
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "2"}), "shop")
        await asyncio.sleep(SOON)
        assert (await hub.found("florin", CONFIG_MAPS, "page", "shop") or {})["data"] == {"k": "2"}
        await hub.remove(CONFIG_MAPS, "page", "shop")
        await asyncio.sleep(SOON)
        assert not await hub.found("florin", CONFIG_MAPS, "page", "shop")
        await hub.assert_as_expected("florin")


# Defects of the first implementation (section 4.1 to 4.5 of its description), each absent here.


@virtual
async def test_a_deleted_namespace_leaves_mailbox_and_syncer_config() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        await hub.remove(NAMESPACES, "shop")
        await asyncio.sleep(SOON)
        assert not await hub.copies("florin")
        assert await hub.config("florin") == {"namespaceScope": {}}


@virtual
async def test_a_namespace_relabelled_out_leaves_with_its_objects() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        assert await hub.copies("florin")
        labels = {"metadata": {"labels": {"go": "no"}}}
        await hub.at("root:wmw").patch(NAMESPACES, "shop", labels)
        await asyncio.sleep(SOON)
        assert not await hub.copies("florin")
        assert await hub.config("florin") == {"namespaceScope": {}}
        await hub.at("root:wmw").patch(NAMESPACES, "shop", {"metadata": {"labels": {"go": "yes"}}})
        await asyncio.sleep(SOON)
        assert await hub.found("florin", CONFIG_MAPS, "page", "shop")


@virtual
async def test_a_cluster_scoped_object_relabelled_out_leaves() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.put(CLUSTER_ROLES, role("reader", go="yes"))
        await hub.place("all", "florin", nonNamespacedObjects=[ROLES])
        await asyncio.sleep(SOON)
        assert await hub.found("florin", CLUSTER_ROLES, "reader")
        assert [each["objects"] for each in (await hub.config("florin"))["clusterScope"]] == [
            ["reader"]
        ]
        await hub.put(CLUSTER_ROLES, role("reader", go="no"))
        await asyncio.sleep(SOON)
        assert not await hub.found("florin", CLUSTER_ROLES, "reader")
        assert "clusterScope" not in await hub.config("florin")


@virtual
async def test_an_edit_of_upsync_alone_arrives() -> None:
    hub = Hub()
    upsync = [{"apiGroup": "g", "resources": ["cogs"], "names": ["*"]}]
    async with hub.running(), hub.translating():
        await hub.place("all", "florin", namespaceSelector={"matchLabels": {"never": "matches"}})
        await asyncio.sleep(SOON)
        assert await hub.config("florin") == {"namespaceScope": {}}
        await hub.at("root:wmw").patch(EDGE_PLACEMENTS, "all", {"spec": {"upsync": upsync}})
        await asyncio.sleep(SOON)
        assert await hub.config("florin") == {"namespaceScope": {}, "upsync": upsync}


@virtual
async def test_a_changed_customizer_projects_again() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}, customizer="c"), "shop")
        await hub.put(CUSTOMIZERS, customizer("c", "$.data.k", '"at %(loc-name)"'), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", CONFIG_MAPS, "page", "shop") or {}
        assert copy["data"] == {"k": "at florin"}
        await hub.put(CUSTOMIZERS, customizer("c", "$.data.new", '"%(loc-name)!"'), "shop")
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", CONFIG_MAPS, "page", "shop") or {}
        assert copy["data"] == {"k": "v", "new": "florin!"}
        await hub.assert_as_expected("florin")


@virtual
async def test_a_changed_location_projects_again() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        obj = config_map("page", {"k": "%(env)"}, expand_parameters="true")
        await hub.put(CONFIG_MAPS, obj, "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        labels = {"metadata": {"labels": {"env": "prod"}}}
        await hub.at("root:imw").patch(LOCATIONS, "florin", labels)
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", CONFIG_MAPS, "page", "shop") or {}
        assert copy["data"] == {"k": "prod"}


@virtual
async def test_two_locations_of_one_sync_target_agree() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.add_location("deep")
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("plain", {"k": "v"}), "shop")
        own = config_map("own", {"k": "%(loc-name)"}, expand_parameters="true")
        await hub.put(CONFIG_MAPS, own, "shop")
        locations = [("florin", "florin"), ("florin", "deep")]
        await hub.place("all", "florin", locations=locations)
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", CONFIG_MAPS, "own", "shop") or {}
        assert copy["data"] == {"k": "deep"}
        assert (await hub.config("florin"))["namespaceScope"]["namespaces"] == ["shop"]
        await hub.settle()
        shown = (await hub.conditions("all"))["ConflictFree"]
        assert shown["status"] == "False"
        assert shown["reason"] == "LocationsDisagree"
        await hub.assert_as_expected("florin")


@virtual
async def test_a_shared_object_survives_the_deletion_by_one_owner() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]), hub.translating():
        for owner in ("one", "two"):
            await hub.namespace("shop", owner)
            await hub.put(CONFIG_MAPS, config_map("page", {"by": "all"}), "shop", owner)
            await hub.place("all", "florin", owner=owner)
        await asyncio.sleep(SOON)
        await hub.remove(CONFIG_MAPS, "page", "shop", "two")
        await asyncio.sleep(SOON)
        assert await hub.found("florin", CONFIG_MAPS, "page", "shop")
        await hub.unplace("all", "two")
        await asyncio.sleep(SOON)
        assert await hub.found("florin", CONFIG_MAPS, "page", "shop")
        await hub.unplace("all", "one")
        await asyncio.sleep(SOON)
        assert not await hub.copies("florin")


@virtual
async def test_no_fixed_sleep_stands_between_an_object_and_its_mailboxes() -> None:
    hub, edges = Hub(), [f"edge{number}" for number in range(20)]
    async with hub.running(edges), hub.translating():
        await hub.namespace("shop")
        await hub.place("all", *edges)
        await asyncio.sleep(SOON)
        await hub.put(CONFIG_MAPS, config_map("page"), "shop")
        await asyncio.sleep(0.001)
        for edge in edges:
            assert await hub.found(edge, CONFIG_MAPS, "page", "shop")


@virtual
async def test_removals_of_labels_annotations_and_sections_are_propagated() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        obj = config_map("page", {"k": "v"})
        obj["metadata"] |= {"labels": {"a": "b"}, "annotations": {"note": "x"}}
        await hub.put(CONFIG_MAPS, {**obj, "binaryData": {"z": "eg=="}}, "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        assert "binaryData" in (await hub.found("florin", CONFIG_MAPS, "page", "shop") or {})
        bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": {}}
        await hub.put(CONFIG_MAPS, bare, "shop")
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", CONFIG_MAPS, "page", "shop") or {}
        assert copy["metadata"]["labels"] == {"edge.kcp.io/projected": "yes"}
        assert "note" not in copy["metadata"]["annotations"]
        assert "binaryData" not in copy
        await hub.assert_as_expected("florin")


@virtual
async def test_drift_in_a_mailbox_is_repaired_at_once() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}), "shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        mailbox = hub.mailbox("florin")
        unlabelled = {"metadata": {"labels": {"edge.kcp.io/projected": None}}}
        await mailbox.patch(CONFIG_MAPS, "page", {"data": {"k": "x", "l": "y"}}, "shop")
        await mailbox.delete(DEPLOYMENTS, "web", "shop")
        await asyncio.sleep(SOON)
        await hub.assert_as_expected("florin")
        await mailbox.patch(CONFIG_MAPS, "page", unlabelled, "shop")
        await mailbox.patch(SYNCER_CONFIGS, "the-one", {"spec": {"upsync": []}})
        await asyncio.sleep(SOON)
        await hub.assert_as_expected("florin")
        await mailbox.delete(SYNCER_CONFIGS, "the-one")
        await mailbox.delete(NAMESPACES, "shop")
        await hub.settle()
        await hub.assert_as_expected("florin")


@virtual
async def test_status_and_marks_of_the_syncer_are_left_alone() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        mailbox = hub.mailbox("florin")
        note = {"metadata": {"annotations": {"edge.kcp.io/applied": "1"}}}
        await mailbox.patch(DEPLOYMENTS, "web", note, "shop")
        status = {"status": {"replicas": 1}}
        await mailbox.patch(DEPLOYMENTS, "web", status, "shop", subresource="status")
        changed = deployment("web")
        changed["spec"]["replicas"] = 3
        await hub.put(DEPLOYMENTS, changed, "shop")
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", DEPLOYMENTS, "web", "shop") or {}
        assert copy["spec"]["replicas"] == 3
        assert copy["status"]["replicas"] == 1
        assert copy["metadata"]["annotations"]["edge.kcp.io/applied"] == "1"


@virtual
async def test_a_definition_goes_along_with_its_first_object_and_leaves_with_the_last() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await hub.namespace("shop")
        await hub.place("all", "florin", "guilder")
        await asyncio.sleep(SOON)
        assert not await hub.found("florin", API_BINDINGS, "bind-kube")
        await hub.put(DEFINITIONS, widget_definition())
        await asyncio.sleep(SOON)
        assert not await hub.found("florin", DEFINITIONS, "widgets.example.io")
        widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await hub.put(WIDGETS, {**widget, "spec": {"size": 3}}, "shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await asyncio.sleep(SOON)
        assert await hub.found("florin", API_BINDINGS, "bind-kube")
        assert (await hub.found("guilder", WIDGETS, "w", "shop") or {})["spec"] == {"size": 3}
        scope = (await hub.config("florin"))["clusterScope"]
        assert [(each["resource"], each["objects"]) for each in scope] == [
            ("customresourcedefinitions", ["widgets.example.io"])
        ]
        await hub.assert_as_expected("florin", "guilder")
        await hub.remove(WIDGETS, "w", "shop")
        await hub.remove(DEPLOYMENTS, "web", "shop")
        await hub.settle()
        assert not await hub.found("florin", DEFINITIONS, "widgets.example.io")
        assert not await hub.found("florin", API_BINDINGS, "bind-kube")
        await hub.assert_as_expected("florin", "guilder")


@virtual
async def test_what_an_upsynced_type_needs_is_there_before_its_objects() -> None:
    hub = Hub()
    upsync = [{"apiGroup": "apps", "resources": ["deployments"], "namespaces": ["*"]}]
    async with hub.running(), hub.translating():
        await hub.place("all", "florin", upsync=upsync)
        await asyncio.sleep(SOON)
        assert await hub.found("florin", API_BINDINGS, "bind-kube")
        await hub.assert_as_expected("florin")


@virtual
async def test_one_export_bound_under_two_names_is_bound_once() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]), hub.translating():
        for owner in ("one", "two"):
            await hub.namespace(f"shop-{owner}", owner)
        await hub.at("root:two").delete(API_BINDINGS, "bind-kube")
        await hub.bind("root:two", "a-kube", "root:compute", "kubernetes")
        for owner in ("one", "two"):
            await hub.put(DEPLOYMENTS, deployment("web"), f"shop-{owner}", owner)
            await hub.place("all", "florin", owner=owner)
        await asyncio.sleep(SOON)
        assert await hub.found("florin", API_BINDINGS, "a-kube")
        assert not await hub.found("florin", API_BINDINGS, "bind-kube")
        assert await hub.found("florin", DEPLOYMENTS, "web", "shop-one")
        await hub.unplace("all", "two")
        await hub.settle()
        assert not await hub.found("florin", API_BINDINGS, "a-kube")
        assert await hub.found("florin", API_BINDINGS, "bind-kube")
        assert await hub.found("florin", DEPLOYMENTS, "web", "shop-one")
        await hub.assert_as_expected("florin")


@virtual
async def test_a_namespace_with_something_foreign_in_it_stays_until_that_has_gone() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        mailbox = hub.mailbox("florin")
        await mailbox.create(CONFIG_MAPS, config_map("reported"), "shop")
        await hub.unplace("all")
        await asyncio.sleep(SOON)
        assert not await hub.found("florin", CONFIG_MAPS, "page", "shop")
        assert await hub.found("florin", CONFIG_MAPS, "reported", "shop")
        await mailbox.delete(CONFIG_MAPS, "reported", "shop")
        await asyncio.sleep(SOON)
        assert not await hub.copies("florin")


@virtual
async def test_particulars_of_a_namespace_travel_only_when_it_is_also_named() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop", go="yes", team="red")
        await hub.namespace("named-only", team="blue")
        names = [named("", "namespaces", "shop", "named-only")]
        await hub.place("all", "florin", nonNamespacedObjects=names)
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", NAMESPACES, "shop") or {}
        assert copy["metadata"]["labels"]["team"] == "red"
        assert not await hub.found("florin", NAMESPACES, "named-only")
        scope = (await hub.config("florin"))["clusterScope"]
        assert [each["objects"] for each in scope] == [["shop"]]
        await hub.assert_as_expected("florin")
        patch: Object = {"spec": {"nonNamespacedObjects": []}}
        await hub.at("root:wmw").patch(EDGE_PLACEMENTS, "all", patch)
        await asyncio.sleep(SOON)
        copy = await hub.found("florin", NAMESPACES, "shop") or {}
        assert "team" not in copy["metadata"]["labels"]


@virtual
async def test_a_missing_customizer_withholds_the_object_and_says_so() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}, customizer="c"), "shop")
        await hub.place("all", "florin")
        await hub.settle()
        assert not await hub.found("florin", CONFIG_MAPS, "page", "shop")
        (shown,) = await hub.problems("all")
        assert shown["reason"] == "CustomizerNotFound"
        assert shown["message"] == "configmaps shop/page is withheld: there is no Customizer shop/c"
        assert [each["reason"] for each in await hub.events()] == ["CustomizerNotFound"]
        await hub.put(CUSTOMIZERS, customizer("c", "$.data.k", '"new"'), "shop")
        await hub.settle()
        assert await hub.found("florin", CONFIG_MAPS, "page", "shop")
        assert not await hub.problems("all")


@virtual
async def test_without_strictness_what_cannot_be_customized_is_shipped_as_it_is() -> None:
    hub = Hub()
    lenient = TranslatorSettings(strict_customization=False, withhold_denatured=False)
    async with hub.running(), hub.translating(lenient):
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}, customizer="c"), "shop")
        await hub.place("all", "florin")
        await hub.settle()
        assert await hub.found("florin", CONFIG_MAPS, "page", "shop")
        assert await hub.problems("all")
        await hub.assert_as_expected("florin", strict=False)


@virtual
async def test_kinds_that_would_act_on_a_foreign_hub_are_withheld_there() -> None:
    hub = Hub()
    async with hub.running(), hub.translating(TranslatorSettings()):
        await hub.put(CLUSTER_ROLES, role("reader", go="yes"))
        await hub.place("all", "florin", nonNamespacedObjects=[ROLES])
        await hub.settle()
        assert not await hub.found("florin", CLUSTER_ROLES, "reader")
        assert (await hub.problems("all"))[0]["reason"] == "KindWithheld"
        await hub.assert_as_expected("florin", withhold_denatured=True)


@virtual
async def test_a_restart_takes_nothing_back_that_is_still_to_be_reported() -> None:
    """Reading takes a while; until it is done, nothing is known of problems and nothing is said."""
    hub = Hub(rates=Rates(0.0, 0.0, 0.0, 0.0, max_delay_seconds=2.0))
    async with hub.running():
        await hub.put(CLUSTER_ROLES, role("reader", go="yes"))
        async with hub.translating(TranslatorSettings()):
            await hub.place("all", "florin", nonNamespacedObjects=[ROLES])
            await asyncio.sleep(100)
        assert (await hub.problems("all"))[0]["reason"] == "KindWithheld"
        revision = await hub.store.revision()
        async with hub.translating(TranslatorSettings()):
            await asyncio.sleep(100)
        assert await hub.store.revision() == revision


@virtual
async def test_copies_wait_for_a_namespace_that_is_still_going_away() -> None:
    """kcp takes seconds over a namespace and refuses meanwhile; its end is an event to wait for."""
    hub = Hub()
    async with hub.running(), hub.translating() as translator:
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        hold = {"metadata": {"finalizers": ["example.io/hold"]}}
        await hub.mailbox("florin").patch(NAMESPACES, "shop", hold)
        await hub.reslice("all")
        await asyncio.sleep(SOON)
        await hub.reslice("all", "florin")
        await hub.settle()
        assert not await hub.found("florin", CONFIG_MAPS, "page", "shop")
        assert (await hub.problems("all"))[0]["reason"] == "NamespaceTerminating"
        assert [event["reason"] for event in await hub.events()] == ["NamespaceTerminating"]
        assert translator.tables.dirty.waiting == 0
        await hub.mailbox("florin").patch(NAMESPACES, "shop", {"metadata": {"finalizers": []}})
        await asyncio.sleep(SOON)
        await hub.assert_as_expected("florin")


@virtual
async def test_a_malformed_choice_changes_nothing_and_is_reported() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        config = await hub.config("florin")
        # What is wrong with a key here is beyond what schemas can say.
        patch = {"spec": {"namespaceSelector": {"matchLabels": {"a b": "c"}}}}
        await hub.at("root:wmw").patch(EDGE_PLACEMENTS, "all", patch)
        await hub.settle()
        assert await hub.found("florin", CONFIG_MAPS, "page", "shop")
        assert await hub.config("florin") == config
        assert (await hub.problems("all"))[0]["reason"] == "InvalidSelector"


@virtual
async def test_a_slice_deleted_by_hand_takes_nothing_away() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        await hub.remove(SLICES, "all")
        await asyncio.sleep(SOON)
        assert await hub.found("florin", NAMESPACES, "shop")


@virtual
async def test_destinations_come_and_go() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]), hub.translating():
        await hub.namespace("shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        await hub.reslice("all", "guilder")
        await asyncio.sleep(SOON)
        assert not await hub.copies("florin")
        assert await hub.found("guilder", DEPLOYMENTS, "web", "shop")
        await hub.assert_as_expected("florin", "guilder")


@virtual
async def test_a_mailbox_made_after_its_placement_is_filled_when_it_appears() -> None:
    hub = Hub()
    async with hub.running([]), hub.translating():
        await hub.namespace("shop")
        await hub.put(DEPLOYMENTS, deployment("web"), "shop")
        await hub.add_target("florin")
        await hub.place("all", "florin")
        await asyncio.sleep(SOON)
        await hub.add_edge("florin")
        await hub.settle()
        assert await hub.found("florin", DEPLOYMENTS, "web", "shop")
        name = Mailbox(await hub.cluster_of("root:imw"), hub.uids["florin"]).workspace
        await hub.at(PROVIDER).delete(WORKSPACES, name)
        await hub.settle()
        await hub.workspace(PROVIDER, name)
        hub.clusters["florin"] = await hub.cluster_of(f"{PROVIDER}:{name}")
        await hub.bind(hub.clusters["florin"], "bind-edge", PROVIDER, "edge.kcp.io")
        await hub.settle()
        await hub.assert_as_expected("florin")


@virtual
async def test_what_became_stale_while_nobody_looked_is_removed_at_the_next_start() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"]):
        async with hub.translating():
            await hub.put(DEFINITIONS, widget_definition())
            await hub.namespace("shop")
            widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
            await asyncio.sleep(SOON)
            await hub.put(WIDGETS, widget, "shop")
            await hub.put(DEPLOYMENTS, deployment("web"), "shop")
            await hub.place("all", "florin", "guilder")
            await hub.settle()
            assert await hub.found("florin", WIDGETS, "w", "shop")
        await hub.unplace("all")
        async with hub.translating():
            await hub.settle()
            await hub.assert_as_expected("florin", "guilder")
            assert not await hub.copies("florin")


@virtual
async def test_a_second_start_writes_nothing() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"], ["one", "two"]):
        async with hub.translating():
            for owner in ("one", "two"):
                await hub.namespace("shop", owner)
                await hub.put(DEPLOYMENTS, deployment("web"), "shop", owner)
                own = config_map("own", {"k": "%(loc-name)"}, expand_parameters="true")
                await hub.put(CONFIG_MAPS, own, "shop", owner)
                await hub.place("all", "florin", "guilder", owner=owner)
            await hub.settle()
        before = await hub.store.revision()
        async with hub.translating():
            await hub.settle()
            assert await hub.store.revision() == before


@virtual
async def test_leadership_lost_in_the_middle_of_work_loses_no_work() -> None:
    edges = [f"edge{number}" for number in range(20)]
    for moment in range(1, 12):
        hub = Hub(moment, Rates(0, 0, 0, 0, 0.05))
        async with hub.running(edges), hub.translating():
            await hub.namespace("shop")
            await hub.place("all", *edges)
            await asyncio.sleep(1)
            await hub.put(CONFIG_MAPS, config_map("page"), "shop")
            await asyncio.sleep(moment * 0.02)
            await hub.lose_leadership(0.5)
            await hub.settle()
            for edge in edges:
                assert await hub.found(edge, CONFIG_MAPS, "page", "shop")


@virtual
async def test_an_object_that_a_mailbox_refuses_blocks_no_other_and_is_reported() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("bad", {"k": "v"}, customizer="c"), "shop")
        label = "$.metadata.labels.m"
        await hub.put(CUSTOMIZERS, customizer("c", label, '"not a label!"'), "shop")
        await hub.put(CONFIG_MAPS, config_map("good"), "shop")
        await hub.place("all", "florin")
        await hub.settle()
        assert await hub.found("florin", CONFIG_MAPS, "good", "shop")
        assert (await hub.problems("all"))[0]["reason"] == "Refused"
        await hub.put(CONFIG_MAPS, config_map("later"), "shop")
        await asyncio.sleep(SOON)
        assert await hub.found("florin", CONFIG_MAPS, "later", "shop")
        await hub.put(CUSTOMIZERS, customizer("c", label, '"fine"'), "shop")
        await hub.settle()
        await hub.assert_as_expected("florin")
        assert not await hub.problems("all")
