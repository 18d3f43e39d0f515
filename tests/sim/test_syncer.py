"""The syncer between a real engine as hub and one as edge, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skerry.api.edge import HEARTBEAT_LEASE, SYNCER_CONFIGS
from skerry.api.errors import NotFound
from skerry.api.kinds import GroupVersionResource
from skerry.logic.fleet.placement.heartbeat import LEASES
from skerry.logic.fleet.syncing.delivery import is_delivered
from skerry.runtime.client import Client, WriteOptions
from tests.kit.chain.syncer_world import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    SPEC,
    SyncerWorld,
    deployment,
)
from tests.kit.sim.loop import virtual

QUOTAS = GroupVersionResource("", "v1", "resourcequotas")
WIDGETS = GroupVersionResource("test.example", "v1", "widgets")
PERSON = WriteOptions(field_manager="a-person")


@pytest.fixture(autouse=True, params=["ours", "ordinary"])
def hub(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every story twice: with our extensions, and with a hub used as any Kubernetes server is."""
    SyncerWorld.ordinary = request.param == "ordinary"
    yield
    SyncerWorld.ordinary = False


def widget_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.example"},
        "spec": {
            "group": "test.example",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def widget(name: str, size: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "test.example/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


async def edit(client: Client, gvr: GroupVersionResource, name: str, patch: Any) -> None:
    await client.patch(gvr, name, patch, "shop", options=PERSON)


async def started(world: SyncerWorld) -> None:
    """Place one ConfigMap and one Deployment and let the syncer begin."""
    await world.configure()
    await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
    await world.put(DEPLOYMENTS, "web", deployment())
    world.start()
    await world.settle(20)
    assert await world.at_edge(DEPLOYMENTS, "web") is not None


@virtual
async def test_objects_of_the_mailbox_appear_at_the_edge_and_their_status_returns(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"index.html": "hello"}
        web = await world.at_edge(DEPLOYMENTS, "web")
        assert web is not None
        web["status"] = {"replicas": 1, "observedGeneration": 1}
        await world.edge.client.update_status(DEPLOYMENTS, web)
        await world.settle(5)
        seen_object = await world.in_hub(DEPLOYMENTS, "web")
        assert seen_object is not None
        assert seen_object["status"]["replicas"] == 1
        assert (await world.conditions())["Synced"]["status"] == "True"


@virtual
async def test_a_delivered_object_says_so_until_its_content_changes(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        for gvr, name in ((CONFIG_MAPS, "page"), (DEPLOYMENTS, "web")):
            seen_object = await world.in_hub(gvr, name)
            assert seen_object is not None
            assert is_delivered(seen_object)
        world.to_edge.sever()
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "new"}})
        await world.put(DEPLOYMENTS, "web", deployment(replicas=3))
        await asyncio.sleep(5)
        for gvr, name in ((CONFIG_MAPS, "page"), (DEPLOYMENTS, "web")):
            seen_object = await world.in_hub(gvr, name)
            assert seen_object is not None
            assert not is_delivered(seen_object)


@virtual
async def test_drift_in_our_fields_is_repaired_and_fields_of_others_are_left_alone(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        change = {
            "data": {"index.html": "vandal", "extra": "mine"},
            "metadata": {"labels": {"edge": "yes"}},
        }
        await edit(world.edge.client, CONFIG_MAPS, "page", change)
        await world.settle(2)
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"index.html": "hello", "extra": "mine"}
        assert page["metadata"]["labels"] == {"edge": "yes"}


@virtual
async def test_an_object_removed_at_the_edge_comes_back(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.edge.client.delete(CONFIG_MAPS, "page", "shop")
        await world.settle(2)
        assert await world.at_edge(CONFIG_MAPS, "page") is not None


@virtual
async def test_a_label_removed_at_the_source_is_removed_at_the_edge(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.put(CONFIG_MAPS, "page", {"data": {"a": "1", "b": "2"}}, labels={"x": "y"})
        await world.settle(2)
        await world.put(CONFIG_MAPS, "page", {"data": {"a": "1"}})
        await world.settle(2)
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"a": "1"}
        assert "labels" not in page["metadata"]


@virtual
async def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.settle(30)
        before = {
            name: (await world.at_edge(gvr, name) or {})["metadata"]["resourceVersion"]
            for gvr, name in ((CONFIG_MAPS, "page"), (DEPLOYMENTS, "web"))
        }
        await world.settle(3600)
        for gvr, name in ((CONFIG_MAPS, "page"), (DEPLOYMENTS, "web")):
            live = await world.at_edge(gvr, name)
            assert live is not None
            assert live["metadata"]["resourceVersion"] == before[name]


@virtual
async def test_an_object_that_leaves_the_mailbox_leaves_the_edge(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.hub.client.delete(CONFIG_MAPS, "page", "shop")
        await world.settle(2)
        assert await world.at_edge(CONFIG_MAPS, "page") is None
        assert await world.at_edge(DEPLOYMENTS, "web") is not None


@virtual
async def test_an_object_deleted_while_the_syncer_was_down_leaves_the_edge(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.kill()
        await world.hub.client.delete(CONFIG_MAPS, "page", "shop")
        world.start()
        await world.settle(20)
        assert await world.at_edge(CONFIG_MAPS, "page") is None


@virtual
async def test_what_the_config_no_longer_names_leaves_the_edge(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.configure({"namespaceScope": {}})
        await world.settle(5)
        assert await world.names_at_edge(CONFIG_MAPS) == set()
        assert await world.names_at_edge(DEPLOYMENTS) == set()


@virtual
async def test_a_deleted_config_deletes_nothing(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.hub.client.delete(SYNCER_CONFIGS, "the-one")
        await world.hub.client.delete(CONFIG_MAPS, "page", "shop")
        await world.settle(600)
        assert await world.at_edge(CONFIG_MAPS, "page") is not None


@virtual
async def test_a_namespace_with_an_edge_users_object_stays(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        mine = {"metadata": {"name": "mine"}, "data": {}}
        await world.edge.client.create(CONFIG_MAPS, mine, "shop")
        await world.configure({"namespaceScope": {}})
        await world.settle(300)
        place = await world.edge.client.get(NAMESPACES, "shop")
        assert "deletionTimestamp" not in place["metadata"]
        assert await world.names_at_edge(CONFIG_MAPS) == {"mine"}
        conditions = await world.conditions()
        assert "configmaps/shop/mine" in conditions["namespaces/shop"]["message"]
        # All that is wanted is there; that something was left behind is another matter.
        assert conditions["Synced"]["status"] == "True"
        await world.edge.client.delete(CONFIG_MAPS, "mine", "shop")
        await world.settle(300)
        place = await world.edge.client.get(NAMESPACES, "shop")
        assert "deletionTimestamp" in place["metadata"]


@virtual
async def test_what_was_left_at_the_edge_on_purpose_is_not_held_against_it(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        orphaned = {"edge.kcp.io/orphan-on-delete": "true"}
        await world.put(CONFIG_MAPS, "kept", {"data": {"a": "1"}}, annotations=orphaned)
        await world.settle(10)
        await world.hub.client.delete(CONFIG_MAPS, "kept", "shop")
        await world.settle(10)
        await edit(world.edge.client, CONFIG_MAPS, "kept", {"data": {"b": "2"}})
        await world.settle(10)
        assert "configmaps/shop.kept" not in await world.conditions()
        await world.kill()
        world.start()
        await world.settle(30)
        assert "configmaps/shop.kept" not in await world.conditions()
        assert await world.names_at_edge(CONFIG_MAPS) == {"page", "kept"}


@virtual
async def test_a_namespace_that_was_there_before_us_is_never_deleted(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.edge.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await started(world)
        await world.configure({"namespaceScope": {}})
        await world.settle(300)
        place = await world.edge.client.get(NAMESPACES, "shop")
        assert "deletionTimestamp" not in place["metadata"]


# Options of an object's owner.


@virtual
async def test_an_object_that_was_there_before_us_is_left_alone_until_adopted(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.edge.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        theirs = {"metadata": {"name": "page"}, "data": {"index.html": "theirs"}}
        await world.edge.client.create(CONFIG_MAPS, theirs, "shop")
        await started(world)
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"index.html": "theirs"}
        seen_object = (await world.conditions())["configmaps/shop.page"]
        assert seen_object["reason"] == "NotOurs"
        adopt = {"edge.kcp.io/adopt": "true"}
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}}, annotations=adopt)
        await world.settle(5)
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"index.html": "hello"}
        assert "configmaps/shop.page" not in await world.conditions()
        await world.hub.client.delete(CONFIG_MAPS, "page", "shop")
        await world.settle(5)
        assert await world.at_edge(CONFIG_MAPS, "page") is not None


@virtual
async def test_a_create_only_object_is_neither_changed_nor_deleted(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        once = {"edge.kcp.io/create-only": "true"}
        await world.put(CONFIG_MAPS, "seed", {"data": {"a": "1"}}, annotations=once)
        await world.settle(2)
        await edit(world.edge.client, CONFIG_MAPS, "seed", {"data": {"a": "edge"}})
        await world.put(CONFIG_MAPS, "seed", {"data": {"a": "2"}}, annotations=once)
        await world.settle(2)
        live = await world.at_edge(CONFIG_MAPS, "seed")
        assert live is not None
        assert live["data"] == {"a": "edge"}
        await world.hub.client.delete(CONFIG_MAPS, "seed", "shop")
        await world.settle(2)
        assert await world.at_edge(CONFIG_MAPS, "seed") is not None


@virtual
async def test_an_object_to_be_orphaned_stays_when_the_mailbox_drops_it(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        stay = {"edge.kcp.io/orphan-on-delete": "true"}
        await world.put(CONFIG_MAPS, "stay", {"data": {"a": "1"}}, annotations=stay)
        await world.settle(2)
        await world.hub.client.delete(CONFIG_MAPS, "stay", "shop")
        await world.settle(2)
        assert await world.at_edge(CONFIG_MAPS, "stay") is not None


@virtual
async def test_a_change_of_an_immutable_field_is_reported_and_recreated_only_on_request(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.put(CONFIG_MAPS, "fixed", {"data": {"a": "1"}, "immutable": True})
        await world.settle(5)
        first = await world.at_edge(CONFIG_MAPS, "fixed")
        assert first is not None
        world.to_edge.sever()  # so that only the end of the change is seen there
        await world.hub.client.delete(CONFIG_MAPS, "fixed", "shop")
        await world.put(CONFIG_MAPS, "fixed", {"data": {"a": "2"}, "immutable": True})
        await asyncio.sleep(3)
        world.to_edge.restore()
        await world.settle(90)
        live = await world.at_edge(CONFIG_MAPS, "fixed")
        assert live is not None
        assert live["data"] == {"a": "1"}
        assert (await world.conditions())["configmaps/shop.fixed"]["reason"] == "ImmutableField"
        again = {"edge.kcp.io/recreate": "true"}
        await world.put(
            CONFIG_MAPS, "fixed", {"data": {"a": "2"}, "immutable": True}, annotations=again
        )
        await world.settle(30)
        live = await world.at_edge(CONFIG_MAPS, "fixed")
        assert live is not None
        assert live["data"] == {"a": "2"}
        assert live["metadata"]["uid"] != first["metadata"]["uid"]


@virtual
async def test_what_every_cluster_makes_for_itself_is_not_carried(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.put(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "the hub's"}})
        token = {"type": "bootstrap.kubernetes.io/token", "stringData": {}}
        await world.put(SECRETS, "bootstrap-token-abc", token)
        await world.settle(5)
        assert await world.at_edge(CONFIG_MAPS, "kube-root-ca.crt") is None
        assert await world.at_edge(SECRETS, "bootstrap-token-abc") is None


@virtual
async def test_an_object_the_edge_rejects_delays_no_other_and_is_named(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        # The hub here takes what an edge of another make refuses: a definition in the way.
        config = {**SPEC, "clusterScope": [
            {"group": CRDS.group, "resource": CRDS.resource, "apiVersion": "v1"}
        ]}  # fmt: skip
        await world.configure(config)
        broken = widget_definition()
        await world.hub.client.create(CRDS, broken)
        await world.edge.client.create(CRDS, {**broken, "spec": {**broken["spec"], "names": {
            **broken["spec"]["names"], "kind": "Gadget", "listKind": "GadgetList"}}})  # fmt: skip
        await world.put(CONFIG_MAPS, "later", {"data": {"a": "1"}})
        await world.settle(30)
        assert await world.at_edge(CONFIG_MAPS, "later") is not None
        conditions = await world.conditions()
        kind = "customresourcedefinitions.apiextensions.k8s.io/widgets.test.example"
        assert conditions[kind]["status"] == "False"
        assert conditions["Synced"]["status"] == "False"


@virtual
async def test_a_rejected_object_that_is_withdrawn_is_no_longer_held_against_the_edge(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/secrets": "0"}}}
        await world.edge.client.create(QUOTAS, quota, "shop")
        await world.put(SECRETS, "key", {"data": {}})
        await world.settle(10)
        assert (await world.conditions())["secrets/shop.key"]["reason"] == "Rejected"
        await world.hub.client.delete(SECRETS, "key", "shop")
        await world.settle(10)
        assert (await world.conditions())["Synced"]["status"] == "True"


# Kinds that come and go.


@virtual
async def test_instances_follow_their_definition_to_the_edge(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.hub.client.create(CRDS, widget_definition())
        await asyncio.sleep(1)
        scope = {
            "namespaceScope": {
                "namespaces": ["shop"],
                "resources": [{"group": "test.example", "resource": "widgets", "apiVersion": "v1"}],
            },
            "clusterScope": [
                {
                    "group": CRDS.group,
                    "resource": CRDS.resource,
                    "apiVersion": "v1",
                    "objects": ["widgets.test.example"],
                }
            ],
        }
        await world.configure(scope)
        await world.put(WIDGETS, "one", {"spec": {"size": 3}})
        world.start()
        await world.settle(60)
        live = await world.at_edge(WIDGETS, "one")
        assert live is not None
        assert live["spec"] == {"size": 3}
        assert await world.at_edge(CRDS, "syncerconfigs.edge.kcp.io", "") is None


@virtual
async def test_a_kind_the_edge_lacks_is_named_and_picked_up_when_it_appears(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await world.hub.client.create(CRDS, widget_definition())
        await asyncio.sleep(1)
        resources = [{"group": "test.example", "resource": "widgets", "apiVersion": "v1"}]
        await world.configure({"namespaceScope": {"namespaces": ["shop"], "resources": resources}})
        await world.put(WIDGETS, "one", {"spec": {"size": 3}})
        world.start()
        await world.settle(60)
        seen_object = (await world.conditions())["widgets.test.example/shop.one"]
        assert seen_object["reason"] == "KindUnknown"
        await world.edge.client.create(CRDS, widget_definition())
        await world.settle(5)
        assert await world.at_edge(WIDGETS, "one") is not None


@virtual
async def test_edge_born_objects_come_up_with_status_and_go_with_their_original(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {
            "apiGroup": "test.example",
            "resources": ["*"],
            "namespaces": ["*"],
            "names": ["*"],
        }
        await world.configure({"upsync": [rule]})
        world.start()
        await world.settle(10)
        await world.edge.client.create(CRDS, widget_definition())
        await world.hub.client.create(CRDS, widget_definition())
        await asyncio.sleep(1)
        await world.edge.client.create(NAMESPACES, {"metadata": {"name": "orbital"}})
        await world.edge.client.create(WIDGETS, widget("george"), "orbital")
        await world.settle(10)
        copy = await world.in_hub(WIDGETS, "george", "orbital")
        assert copy is not None
        assert copy["spec"] == {"size": 1}
        assert copy["metadata"]["annotations"]["edge.kcp.io/upsynced"] == "true"
        live = await world.edge.client.get(WIDGETS, "george", "orbital")
        live["status"] = {"phase": "Spinning"}
        await world.edge.client.update_status(WIDGETS, live)
        await world.edge.client.patch(WIDGETS, "george", {"spec": {"size": 2}}, "orbital")
        await world.settle(10)
        copy = await world.in_hub(WIDGETS, "george", "orbital")
        assert copy is not None
        assert copy["spec"] == {"size": 2}
        assert copy["status"] == {"phase": "Spinning"}
        await world.edge.client.delete(WIDGETS, "george", "orbital")
        await world.settle(10)
        assert await world.in_hub(WIDGETS, "george", "orbital") is None


@virtual
async def test_an_upsync_kind_nobody_serves_is_no_error_but_is_reported_once(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {"apiGroup": "group2.test", "resources": ["cogs"], "names": ["William"]}
        await world.configure({**SPEC, "upsync": [rule]})
        await world.put(CONFIG_MAPS, "page", {"data": {}})
        world.start()
        await world.settle(60)
        conditions = await world.conditions()
        assert conditions["KindsUnknown"]["message"] == "cogs.group2.test"
        assert conditions["Synced"]["status"] == "True"


@virtual
async def test_an_upsync_leaves_a_mailbox_object_of_the_same_name_alone(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["lab"], "names": ["*"]}
        await world.configure({"upsync": [rule]})
        await world.put(CONFIG_MAPS, "shared", {"data": {"of": "hub"}}, namespace="lab")
        world.start()
        await world.edge.client.create(NAMESPACES, {"metadata": {"name": "lab"}})
        edge_born = {"metadata": {"name": "shared"}, "data": {"of": "edge"}}
        await world.edge.client.create(CONFIG_MAPS, edge_born, "lab")
        await world.settle(20)
        kept = await world.in_hub(CONFIG_MAPS, "shared", "lab")
        assert kept is not None
        assert kept["data"] == {"of": "hub"}
        assert (await world.conditions())["configmaps/lab.shared"]["reason"] == "MailboxNotOurs"


@virtual
async def test_edge_born_objects_come_up_from_the_midst_of_what_was_placed(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["*"], "names": ["*"]}
        await world.configure({**SPEC, "upsync": [rule]})
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        world.start()
        await world.settle(10)
        born = {"metadata": {"name": "report"}, "data": {"visitors": "7"}}
        await world.edge.client.create(CONFIG_MAPS, born, "shop")
        await world.settle(10)
        copy = await world.in_hub(CONFIG_MAPS, "report")
        assert copy is not None
        assert copy["data"] == {"visitors": "7"}
        page = await world.in_hub(CONFIG_MAPS, "page")
        assert page is not None
        assert "edge.kcp.io/upsynced" not in page["metadata"].get("annotations", {})
        assert (await world.conditions())["Synced"]["status"] == "True"
        await world.edge.client.delete(CONFIG_MAPS, "report", "shop")
        await world.settle(10)
        assert await world.in_hub(CONFIG_MAPS, "report") is None
        assert await world.at_edge(CONFIG_MAPS, "page") is not None


@virtual
async def test_a_placed_object_in_the_place_of_a_report_is_a_wish(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["*"], "names": ["*"]}
        await world.configure({**SPEC, "upsync": [rule]})
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        world.start()
        await world.settle(10)
        born = {"metadata": {"name": "taken"}, "data": {"of": "edge"}}
        await world.edge.client.create(CONFIG_MAPS, born, "shop")
        await world.settle(10)
        assert await world.in_hub(CONFIG_MAPS, "taken") is not None
        projected = {"edge.kcp.io/projected": "yes"}
        await world.put(CONFIG_MAPS, "taken", {"data": {"of": "hub"}}, labels=projected)
        await world.settle(10)
        assert (await world.conditions())["configmaps/shop.taken"]["reason"] == "NotOurs"
        live = await world.at_edge(CONFIG_MAPS, "taken")
        assert live is not None
        assert live["data"] == {"of": "edge"}
        # The edge's own goes: the wish stays where it is, and comes down.
        await world.edge.client.delete(CONFIG_MAPS, "taken", "shop")
        await world.settle(120)
        live = await world.at_edge(CONFIG_MAPS, "taken")
        assert live is not None
        assert live["data"] == {"of": "hub"}
        assert (await world.conditions())["Synced"]["status"] == "True"


@virtual
async def test_what_we_placed_once_is_not_taken_for_edge_born_when_its_record_is_lost(
    tmp_path: Path,
) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["*"], "names": ["*"]}
        await world.configure({**SPEC, "upsync": [rule]})
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "hello"}})
        world.start()
        await world.settle(10)
        await world.kill()
        (tmp_path / "one.journal").unlink()
        await world.hub.client.delete(CONFIG_MAPS, "page", "shop")
        world.start()
        await world.settle(30)
        assert await world.at_edge(CONFIG_MAPS, "page") is not None
        assert await world.in_hub(CONFIG_MAPS, "page") is None


@virtual
async def test_what_every_cluster_makes_for_itself_does_not_come_up(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        rule = {
            "apiGroup": "",
            "resources": ["configmaps", "secrets"],
            "namespaces": ["lab"],
            "names": ["*"],
        }
        await world.configure({"upsync": [rule]})
        world.start()
        await world.edge.client.create(NAMESPACES, {"metadata": {"name": "lab"}})
        token = {
            "metadata": {
                "name": "token",
                "annotations": {"kubernetes.io/service-account.name": "default"},
            },
            "type": "kubernetes.io/service-account-token",
            "data": {"token": "c2VjcmV0"},
        }
        await world.edge.client.create(SECRETS, token, "lab")
        root = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "x"}}
        await world.edge.client.create(CONFIG_MAPS, root, "lab")
        seen = {"metadata": {"name": "seen"}, "data": {"a": "b"}}
        await world.edge.client.create(CONFIG_MAPS, seen, "lab")
        await world.settle(20)
        assert await world.in_hub(CONFIG_MAPS, "seen", "lab") is not None
        assert await world.in_hub(SECRETS, "token", "lab") is None
        assert await world.in_hub(CONFIG_MAPS, "kube-root-ca.crt", "lab") is None


# Signs of life.


@virtual
async def test_the_heartbeat_renews_one_lease_and_the_config_rarely(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        times: set[str] = set()
        shown: set[str] = set()
        for _ in range(20):
            await asyncio.sleep(30)
            lease = await world.hub.client.get(LEASES, HEARTBEAT_LEASE, "default")
            times.add(lease["spec"]["renewTime"])
            config = await world.hub.client.get(SYNCER_CONFIGS, "the-one")
            shown.add(config["status"]["lastSyncerHeartbeatTime"])
        assert len(times) >= 19
        assert 1 <= len(shown) <= 4


@virtual
async def test_of_an_edge_that_does_not_answer_there_is_no_sign_of_life(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)

    async def renewed() -> str:
        lease = await world.hub.client.get(LEASES, HEARTBEAT_LEASE, "default")
        return str(lease["spec"]["renewTime"])

    async with world.running():
        await started(world)
        world.to_edge.sever()
        await asyncio.sleep(60)
        last = await renewed()
        await asyncio.sleep(300)
        assert await renewed() == last
        world.to_edge.restore()
        await asyncio.sleep(40)
        assert await renewed() > last


@virtual
async def test_two_syncers_for_one_edge_agree_on_one(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        other = world.start("two")
        await world.settle(120)
        assert other.session is None
        assert world.running_syncers["one"].session is not None
        await world.kill("one")
        await world.put(CONFIG_MAPS, "page", {"data": {"index.html": "by the other"}})
        await world.settle(120)
        assert other.session is not None
        page = await world.at_edge(CONFIG_MAPS, "page")
        assert page is not None
        assert page["data"] == {"index.html": "by the other"}


@virtual
async def test_a_config_that_covers_more_brings_what_was_there_already(tmp_path: Path) -> None:
    world = SyncerWorld(tmp_path)
    async with world.running():
        await started(world)
        await world.put(CONFIG_MAPS, "other", {"data": {"a": "1"}}, namespace="bar")
        await world.settle(5)
        with pytest.raises(NotFound):
            await world.edge.client.get(CONFIG_MAPS, "other", "bar")
        scope = {**SPEC["namespaceScope"], "namespaces": ["shop", "bar"]}
        await world.configure({"namespaceScope": scope})
        await world.settle(5)
        assert await world.at_edge(CONFIG_MAPS, "other", "bar") is not None
