"""Grants and mailboxes: only granted kinds come in, what is there stays until confirmed."""

from __future__ import annotations

import pytest

from skerry.api.edge import LOCATION_GRANTS
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.kit import log
from tests.kit.chain.building import equal
from tests.kit.chain.translator_history import EDGES, OWNERS, History
from tests.kit.chain.translator_hub import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    WIDGET_DEFINITION,
    WIDGETS,
    Hub,
    config_map,
    deployment,
    widget_definition,
)
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import run_virtual, virtual
from tests.kit.sim.world import SEEDS

HISTORIES = SEEDS[: max(1, len(SEEDS) // 40)] if len(SEEDS) < 1000 else SEEDS
# Found wrong once: a SyncerConfig that did not hear of a namespace that was held, one whose create
# was lost, and a namespace that waited for a watch that was followed no longer.
FOUND_WRONG = (683, 152, 171)
EVENTS = GroupVersionResource("", "v1", "events")
WMW = "root:wmw"


def rule(groups: str, resources: str, scope: str = "Namespaced") -> Object:
    """A rule over words; ``core`` is the core group."""
    names = ["" if group == "core" else group for group in groups.split()]
    return {"apiGroups": names, "resources": resources.split(), "scope": scope}


APPS = [rule("apps", "deployments")]
ALL = [rule("*", "*", "*")]


async def furnish(hub: Hub) -> None:
    await hub.namespace("a")
    await hub.put(CONFIG_MAPS, config_map("x", {"k": "1"}), "a")
    await hub.put(DEPLOYMENTS, deployment("x"), "a")


async def there(hub: Hub, edge: str = "florin") -> set[str]:
    return {f"{item.resource}/{item.name}" for item in await hub.copies(edge)}


async def reported(hub: Hub, owner: str = "wmw") -> str:
    found = await hub.problems("p", owner)
    return "; ".join(f"{each['reason']}: {each['message']}" for each in found)


@virtual
async def test_only_granted_kinds_come_in() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.grant("only-apps", paths=[WMW], selector={}, rules=APPS)
        await hub.report()
        await furnish(hub)
        await hub.place("p", "florin")
        await hub.settle()
        assert await there(hub) == {"namespaces/a", "deployments/x", "apibindings/bind-kube"}
        text = await reported(hub)
        assert text.startswith("NotGranted: configmaps a/x is not granted by root:imw/only-")
        assert await hub.cluster_of("root:imw") not in text
        [refused] = (await hub.consent())["objects"]["refused"]
        assert refused == {"workspace": WMW, "objects": 1, "resources": ["configmaps"]}
        await hub.assert_as_expected("florin")


@virtual
async def test_who_refuses_is_reported_anew_when_grants_for_others_come_and_go() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.grant("g", paths=[WMW], selector={}, rules=APPS)
        await hub.report()
        await furnish(hub)
        await hub.place("p", "florin")
        await hub.settle()
        refusal = "NotGranted: configmaps a/x is not granted by "
        assert await reported(hub) == refusal + "root:imw/g"
        await hub.grant("h", paths=["root:others"], selector={}, rules=APPS)
        await hub.settle()
        assert await reported(hub) == refusal + "any grant of root:imw"
        await hub.at("root:imw").delete(LOCATION_GRANTS, "h")
        await hub.settle()
        assert await reported(hub) == refusal + "root:imw/g"


@virtual
async def test_what_is_there_stays_as_it_is_and_nothing_joins_it() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await furnish(hub)
        await hub.put(CONFIG_MAPS, config_map("gone", {"k": "1"}), "a")
        await hub.place("p", "florin")
        await hub.settle()
        before = await there(hub)
        await hub.grant("g", paths=[WMW], selector={}, rules=APPS)
        await hub.report()
        await hub.settle()
        assert await there(hub) == before
        await hub.put(CONFIG_MAPS, config_map("x", {"k": "2"}), "a")
        await hub.put(CONFIG_MAPS, config_map("new"), "a")
        await hub.remove(CONFIG_MAPS, "gone", "a")
        await hub.settle()
        kept = await hub.found("florin", CONFIG_MAPS, "x", "a")
        assert kept is not None
        assert kept["data"] == {"k": "1"}
        assert await there(hub) == before - {"configmaps/gone"}, "its owner may remove it"
        assert "stays as it is until its removal is confirmed" in await reported(hub)
        await hub.assert_as_expected("florin")


@virtual
async def test_a_confirmation_removes_exactly_the_objects_shown() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await furnish(hub)
        await hub.put(
            SECRETS, {"metadata": {"name": "s"}, "apiVersion": "v1", "kind": "Secret"}, "a"
        )
        await hub.place("p", "florin")
        await hub.settle()
        await hub.grant("g", paths=[WMW], selector={}, rules=APPS)
        await hub.report()
        await hub.settle()
        [held] = (await hub.consent())["objects"]["held"]
        assert (held["objects"], held["resources"]) == (2, ["configmaps", "secrets"])
        await hub.confirm("o-000000000000", "d-1")
        await hub.settle()
        assert "configmaps/x" in await there(hub)
        await hub.confirm(held["id"])
        await hub.settle()
        assert await there(hub) == {"namespaces/a", "deployments/x", "apibindings/bind-kube"}
        record = await hub.consent()
        assert record["confirmations"][0]["count"] == 2
        assert record["held"] == 0
        reasons = {event["reason"] for event in (await hub.at("root:imw").list(EVENTS)).items}
        assert {"RemovalHeld", "RemovalConfirmed", "ConfirmationIgnored"} <= reasons
        await hub.assert_as_expected("florin")


@virtual
async def test_the_same_objects_held_again_are_confirmed_again() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await furnish(hub)
        await hub.place("p", "florin")
        await hub.grant("g", paths=[WMW], selector={}, rules=APPS)
        await hub.report()
        for _ in range(2):
            await hub.grant("h", paths=[WMW], selector={}, rules=ALL)
            await hub.settle()
            assert "configmaps/x" in await there(hub)
            await hub.at("root:imw").delete(LOCATION_GRANTS, "h")
            await hub.settle()
            assert "configmaps/x" in await there(hub)
            [held] = (await hub.consent())["objects"]["held"]
            await hub.confirm(held["id"])
            await hub.settle()
            assert "configmaps/x" not in await there(hub)


@virtual
async def test_a_translator_that_leads_again_acts_on_no_confirmation_from_before() -> None:
    hub = Hub()
    async with hub.running(), hub.translating() as translator:
        await furnish(hub)
        await hub.place("p", "florin")
        await hub.settle()
        await hub.grant("g", paths=[WMW], selector={}, rules=APPS)
        await hub.report()
        await hub.settle()
        [held] = (await hub.consent())["objects"]["held"]
        # Taken, and not acted upon: leadership was lost at that moment.
        holds = translator.held.holds
        [group] = holds.groups(await hub.cluster_of("root:imw"))
        translator.held.release(holds.elements(group))
        await hub.lose_leadership(5)
        await hub.put(CONFIG_MAPS, config_map("x", {"k": "2"}), "a")
        await hub.settle()
        assert "configmaps/x" in await there(hub)
        assert (await hub.consent())["objects"]["held"] == [held]


@virtual
async def test_destinations_that_a_tenant_wrote_by_hand_bring_nothing_in() -> None:
    """Slices are the tenant's to write; what they say is no consent."""
    hub = Hub()
    async with hub.running(workloads=("wmw", "evil")), hub.translating():
        await furnish(hub)
        await hub.namespace("mine", "evil")
        await hub.put(CONFIG_MAPS, config_map("x", {"k": "evil"}), "mine", "evil")
        await hub.put(CONFIG_MAPS, config_map("x", {"k": "evil"}), "mine", "evil")
        await hub.grant("g", paths=[WMW], selector={}, rules=ALL)
        await hub.report()
        await hub.place("p", "florin")
        up = {"apiGroup": "", "resources": ["secrets"], "namespaces": ["*"], "names": ["*"]}
        await hub.place("p", "florin", owner="evil", upsync=[up])
        await hub.settle()
        assert not [item for item in await hub.copies("florin") if "mine" in item]
        config = await hub.config("florin")
        assert config["namespaceScope"]["namespaces"] == ["a"]
        assert "upsync" not in config
        record = await hub.consent()
        assert "objects" not in record, "whole destinations are the edge scheduler's to report"
        await hub.assert_as_expected("florin")


@virtual
async def test_a_granted_location_leads_only_to_its_own_sync_targets() -> None:
    """A slice written by hand may name a granted Location and another Location's SyncTarget."""
    hub = Hub()
    async with hub.running(edges=("florin", "guilder")), hub.translating():
        await furnish(hub)
        await hub.add_location("open", {"matchLabels": {"id": "florin"}})
        await hub.grant("g", paths=[WMW], names=["open"], rules=ALL)
        await hub.report()
        await hub.place("p", locations=[("florin", "open"), ("guilder", "open")])
        await hub.settle()
        assert "configmaps/x" in await there(hub, "florin")
        assert await there(hub, "guilder") == set()
        assert await hub.config("guilder") in ({}, {"namespaceScope": {}})
        targets = SYNC_TARGETS
        patch = {"metadata": {"labels": {"id": "florin"}}}
        await hub.at("root:imw").patch(targets, "guilder", patch)
        await hub.settle()
        assert "configmaps/x" in await there(hub, "guilder"), "now it is an instance"
        await hub.assert_as_expected("florin", "guilder")


@virtual
async def test_a_newer_object_of_somebody_not_granted_does_not_replace_a_granted_one() -> None:
    hub = Hub()
    async with hub.running(workloads=("wmw", "evil")), hub.translating():
        await furnish(hub)
        await hub.grant("g", paths=[WMW], selector={}, rules=ALL)
        await hub.report()
        await hub.place("p", "florin")
        await hub.namespace("a", "evil")
        await hub.put(CONFIG_MAPS, config_map("x", {"k": "evil"}), "a", "evil")
        await hub.place("p", "florin", owner="evil")
        await hub.settle()
        kept = await hub.found("florin", CONFIG_MAPS, "x", "a")
        assert kept is not None
        assert kept["data"] == {"k": "1"}
        await hub.assert_as_expected("florin")


@virtual
async def test_cluster_scoped_objects_need_a_rule_of_that_scope() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await furnish(hub)
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}
        await hub.put(CLUSTER_ROLES, {**role, "metadata": {"name": "r"}})
        await hub.put(DEFINITIONS, widget_definition())
        await hub.settle(1)
        widget = {"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await hub.put(WIDGETS, widget, "a")
        named = {
            "apiGroup": "rbac.authorization.k8s.io",
            "resources": ["clusterroles"],
            "resourceNames": ["r"],
        }
        await hub.grant("g", paths=[WMW], selector={}, rules=[rule("*", "*")])
        await hub.report()
        await hub.place("p", "florin", nonNamespacedObjects=[named])
        await hub.settle()
        found = await there(hub)
        assert not {"clusterroles/r", "customresourcedefinitions/widgets.example.io"} & found
        assert "widgets/w" not in found
        assert "clusterScope" not in await hub.config("florin")
        more = [
            rule("*", "*"),
            rule("apiextensions.k8s.io", "customresourcedefinitions", "Cluster"),
        ]
        await hub.grant("g", paths=[WMW], selector={}, rules=more)
        await hub.settle()
        found = await there(hub)
        assert {"customresourcedefinitions/widgets.example.io", "widgets/w"} <= found
        assert "clusterroles/r" not in found
        await hub.assert_as_expected("florin")


@virtual
async def test_labels_of_a_namespace_need_a_rule_for_namespaces() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.namespace("a", go="yes", tier="gold")
        named = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["a"]}
        await hub.grant("g", paths=[WMW], selector={}, rules=[rule("*", "*")])
        await hub.report()
        await hub.place("p", "florin", nonNamespacedObjects=[named])
        await hub.settle()
        made = await hub.found("florin", NAMESPACES, "a")
        assert made is not None
        assert "tier" not in made["metadata"]["labels"]
        wider = [rule("*", "*"), rule("core", "namespaces", "Cluster")]
        await hub.grant("g", paths=[WMW], selector={}, rules=wider)
        await hub.settle()
        made = await hub.found("florin", NAMESPACES, "a")
        assert made is not None
        assert made["metadata"]["labels"]["tier"] == "gold"
        await hub.grant("g", paths=[WMW], selector={}, rules=[rule("*", "*")])
        await hub.settle()
        made = await hub.found("florin", NAMESPACES, "a")
        assert made is not None
        assert made["metadata"]["labels"]["tier"] == "gold", "it stays as it is"
        await hub.assert_as_expected("florin")


@virtual
async def test_what_comes_up_is_cut_to_what_is_granted() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await furnish(hub)
        await hub.grant("g", paths=[WMW], selector={}, rules=[rule("group1.test", "sprockets")])
        await hub.report()
        up = {"apiGroup": "group1.test", "resources": ["sprockets", "flanges"], "names": ["*"]}
        await hub.place("p", "florin", upsync=[{**up, "namespaces": ["orbital"]}, up])
        await hub.settle()
        [left] = (await hub.config("florin"))["upsync"]
        assert (left["resources"], left["namespaces"]) == (["sprockets"], ["orbital"])
        await hub.assert_as_expected("florin")


@virtual
async def test_grants_that_observe_change_nothing_in_mailboxes_and_say_what_they_would() -> None:
    hub = Hub()
    async with hub.running(), hub.translating():
        await furnish(hub)
        await hub.place("p", "florin")
        await hub.settle()
        before = await hub.copies("florin")
        await hub.grant("g", mode="Observe", paths=[WMW], selector={}, rules=APPS)
        await hub.report("Observe")
        await hub.settle()
        assert await hub.copies("florin") == before
        assert not await reported(hub)
        [refused] = (await hub.consent())["objects"]["refused"]
        assert refused["resources"] == ["configmaps"]


@virtual
async def test_an_object_goes_by_the_locations_that_are_granted() -> None:
    """One mailbox may be reached by several Locations; one granted is enough, and customizes."""
    hub = Hub()
    async with hub.running(), hub.translating():
        await hub.add_location("alpha", env="alpha")
        await hub.add_location("beta", env="beta")
        await hub.namespace("a")
        await hub.put(CONFIG_MAPS, config_map("x", {"k": "%(env)"}, expand_parameters="true"), "a")
        ways = [("florin", "alpha"), ("florin", "beta")]
        await hub.place("p", locations=ways)
        await hub.grant("g", paths=[WMW], names=["beta"], rules=ALL)
        await hub.report()
        await hub.settle()
        made = await hub.found("florin", CONFIG_MAPS, "x", "a")
        assert made is not None
        assert made["data"] == {"k": "beta"}
        await hub.assert_as_expected("florin")


@virtual
async def test_nothing_is_let_in_or_taken_away_while_the_workspaces_have_not_been_read() -> None:
    """What is not known of a workspace is neither a label nor the lack of one."""
    hub = Hub()
    async with hub.running(edges=("florin", "guilder")):
        await furnish(hub)
        gold = {"metadata": {"labels": {"tier": "gold"}}}
        await hub.at("root").patch(WORKSPACES, "wmw", gold)
        await hub.grant("g", children=[("root", equal(tier="gold"))], selector={}, rules=ALL)
        await hub.report()
        await hub.place("p", "florin")
        async with hub.translating():
            await hub.settle()
        before = await there(hub)
        assert "configmaps/x" in before
        hub.workspaces_read_after_seconds = 500
        async with hub.translating():
            await hub.reslice("p", "florin", "guilder")
            await hub.settle()
            assert (await there(hub), await there(hub, "guilder")) == (before, set())
            await hub.settle(600)
            assert await there(hub, "guilder") == before


class GrantHistory(History):
    """A history in which grants come and go as well."""

    def __init__(self, hub: Hub, seed: int) -> None:
        super().__init__(hub, seed)
        self._deeds = (*self._deeds, *[self._grant] * 5, self._ungrant, self._confirm)

    async def _grant(self) -> None:
        rules = [
            ALL,
            APPS,
            [rule("*", "*")],
            [rule("core", "configmaps"), rule("*", "*", "Cluster")],
        ]
        await self._hub.grant(
            self._one(("g", "h")),
            mode=self._one(("Enforce", "Enforce", "Observe")),
            paths=[f"root:{owner}" for owner in self._some(OWNERS)],
            selector=self._one(({}, equal(env="prod"), None)),
            names=self._some(EDGES),
            rules=self._one(rules),
        )

    async def _ungrant(self) -> None:
        await self._hub.at("root:imw").delete(LOCATION_GRANTS, self._one(("g", "h")))

    async def _confirm(self) -> None:
        held = ((await self._hub.consent()).get("objects") or {}).get("held") or ()
        await self._hub.confirm(*(each["id"] for each in held))


async def _run(seed: int) -> None:
    hub = Hub(seed, Rates())
    async with hub.running(EDGES, OWNERS):
        history = GrantHistory(hub, seed)
        await hub.report("Observe")
        await history.begin()
        for _ in range(3):
            async with hub.translating():
                await history.happen(25)
            await history.happen(5)
        async with hub.translating():
            await history.happen(10)
            await history.tidy()
            await hub.settle(600)
            await hub.assert_as_expected(*EDGES)
        before = await hub.store.revision()
        async with hub.translating() as translator:
            await hub.settle()
            assert await hub.store.revision() == before, "a second pass wrote something"
            undefined = [WIDGET_DEFINITION not in await hub.copies(edge) for edge in EDGES]
            assert translator.tables.dirty.waiting == 0 or any(undefined)


@pytest.mark.parametrize("seed", sorted({*HISTORIES, *FOUND_WRONG}))
def test_mailboxes_end_up_as_the_reference_says_whatever_became_of_grants(seed: int) -> None:
    log.configure(verbosity=-1)
    run_virtual(_run(seed))


class Owners(GrantHistory):
    """Only grants and labels change, and nobody confirms anything."""

    def __init__(self, hub: Hub, seed: int) -> None:
        super().__init__(hub, seed)
        self._deeds = (self._grant, self._grant, self._ungrant, self._relabel_location, self._pause)


async def _nothing_goes(seed: int) -> None:
    hub = Hub(seed, Rates())
    async with hub.running(EDGES, OWNERS):
        history, seen = Owners(hub, seed), dict[str, dict[ObjectRef, bytes]]()
        await hub.report("Observe")
        await history.begin()
        async with hub.translating():
            await hub.settle()
        for _ in range(4):
            async with hub.translating():
                for _ in range(6):
                    await history.happen(2)
                    for edge in EDGES:
                        found = await hub.copies(edge)
                        assert seen.get(edge, {}).keys() <= found.keys()
                        seen[edge] = found
            await history.happen(2)


@pytest.mark.parametrize("seed", HISTORIES)
def test_no_history_of_grants_removes_a_copy_that_nobody_confirmed(seed: int) -> None:
    log.configure(verbosity=-1)
    run_virtual(_nothing_goes(seed))
