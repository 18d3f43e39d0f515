"""One owner per name at an edge: stories of two workspaces that place the same name."""

from __future__ import annotations

from skerry.api.edge import HAND_OVER_TO, OWNER_WORKSPACE, WITHHELD_FROM
from skerry.api.objects import Object
from tests.kit.chain.translator_hub import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, Hub, config_map
from tests.kit.chain.translator_hub import deployment as deployed
from tests.kit.sim.loop import virtual

RULES = [{"apiGroups": ["*"], "resources": ["*"], "scope": "*"}]


async def placed(hub: Hub, owner: str, *edges: str) -> None:
    """Have a workspace place namespace ``shop`` with a ConfigMap ``page`` of its own."""
    await hub.namespace("shop", owner)
    await hub.put(CONFIG_MAPS, config_map("page", {"by": owner}), "shop", owner)
    await hub.place("all", *(edges or ("florin",)), owner=owner)
    await hub.settle()


async def page(hub: Hub, edge: str = "florin") -> Object:
    return await hub.found(edge, CONFIG_MAPS, "page", "shop") or {}


async def conflict(hub: Hub, owner: str) -> Object:
    found: Object = (await hub.conditions("all", owner))["ConflictFree"]
    return found


@virtual
async def test_the_first_workspace_keeps_a_name_and_the_newcomer_hears_whose_it_is() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]), hub.translating():
        await placed(hub, "one")
        before = await page(hub)
        await placed(hub, "two")
        after = await page(hub)
        assert after["data"] == {"by": "one"}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["metadata"]["annotations"][WITHHELD_FROM] == hub.clusters["two"]
        assert (await conflict(hub, "one"))["status"] == "True"
        assert await hub.events("one") == []
        shown = await conflict(hub, "two")
        assert (shown["status"], shown["reason"]) == ("False", "NameTaken")
        assert shown["message"] == (
            "configmaps shop/page is withheld: the name belongs to workspace root:one there"
        )
        assert not any(hub.clusters[name] in shown["message"] for name in ("one", "two"))
        assert {each["message"] for each in await hub.events("two")} == {shown["message"]}
        # The owner's later changes arrive, the newcomer's do not.
        await hub.put(CONFIG_MAPS, config_map("page", {"by": "one again"}), "shop", "one")
        await hub.put(CONFIG_MAPS, config_map("page", {"by": "two again"}), "shop", "two")
        await hub.settle()
        assert (await page(hub))["data"] == {"by": "one again"}
        # Equal contents are no conflict.
        await hub.put(CONFIG_MAPS, config_map("page", {"by": "one again"}), "shop", "two")
        await hub.settle()
        assert (await conflict(hub, "two"))["status"] == "True"
        assert WITHHELD_FROM not in (await page(hub))["metadata"]["annotations"]
        await hub.assert_as_expected("florin")


@virtual
async def test_an_owner_stays_one_through_restarts_and_whatever_is_read_first() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]):
        async with hub.translating():
            await placed(hub, "two")
        # Meanwhile both change, and the newcomer's cluster may come first by name.
        await hub.put(CONFIG_MAPS, config_map("page", {"by": "two, later"}), "shop", "two")
        await placed(hub, "one")
        async with hub.translating():
            await hub.settle()
            assert (await page(hub))["data"] == {"by": "two, later"}
            assert "root:two" in (await conflict(hub, "one"))["message"]
            await hub.assert_as_expected("florin")


@virtual
async def test_when_the_owners_object_goes_the_next_takes_over_and_the_copy_is_the_same() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]), hub.translating():
        await placed(hub, "one")
        await placed(hub, "two")
        uid = (await page(hub))["metadata"]["uid"]
        await hub.remove(CONFIG_MAPS, "page", "shop", "one")
        await hub.settle()
        found = await page(hub)
        assert (found["data"], found["metadata"]["uid"]) == ({"by": "two"}, uid)
        assert (await conflict(hub, "two"))["status"] == "True"
        # The name is the other's now: coming back does not take it.
        await hub.put(CONFIG_MAPS, config_map("page", {"by": "one"}), "shop", "one")
        await hub.settle()
        assert (await page(hub))["data"] == {"by": "two"}
        assert "root:two" in (await conflict(hub, "one"))["message"]
        # And so with a whole placement.
        await hub.unplace("all", owner="two")
        await hub.settle()
        found = await page(hub)
        assert (found["data"], found["metadata"]["uid"]) == ({"by": "one"}, uid)
        await hub.assert_as_expected("florin")


@virtual
async def test_an_owner_hands_over_once_and_the_copy_is_the_same() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]), hub.translating():
        await placed(hub, "one")
        await placed(hub, "two")
        uid = (await page(hub))["metadata"]["uid"]
        for giver, taker in (("one", "two"), ("two", "one")):
            patch = {"metadata": {"annotations": {HAND_OVER_TO: f"root:{taker}"}}}
            await hub.at(f"root:{giver}").patch(CONFIG_MAPS, "page", patch, "shop")
            await hub.settle()
            found = await page(hub)
            assert (found["data"], found["metadata"]["uid"]) == ({"by": taker}, uid)
            notes = found["metadata"]["annotations"]
            assert notes[OWNER_WORKSPACE] == hub.clusters[taker]
            assert HAND_OVER_TO not in notes
            assert (await conflict(hub, taker))["status"] == "True"
            assert f"root:{taker}" in (await conflict(hub, giver))["message"]
        # Both annotations are still there, and it stays where it is.
        version = (await page(hub))["metadata"]["resourceVersion"]
        await hub.settle(1)
        assert (await page(hub))["metadata"]["resourceVersion"] == version
        await hub.assert_as_expected("florin")


@virtual
async def test_each_edge_has_its_own_owner_and_everything_else_of_a_newcomer_arrives() -> None:
    hub = Hub()
    async with hub.running(["florin", "guilder"], workloads=["one", "two"]), hub.translating():
        await placed(hub, "one", "florin")
        await placed(hub, "two", "florin", "guilder")
        await hub.put(DEPLOYMENTS, deployed("web"), "shop", "two")
        await hub.settle()
        assert (await page(hub, "florin"))["data"] == {"by": "one"}
        assert (await page(hub, "guilder"))["data"] == {"by": "two"}
        for edge in ("florin", "guilder"):
            assert await hub.found(edge, DEPLOYMENTS, "web", "shop")
            assert await hub.found(edge, NAMESPACES, "shop")
        await hub.assert_as_expected("florin", "guilder")


@virtual
async def test_two_placements_of_one_workspace_are_no_rivals() -> None:
    hub = Hub()
    async with hub.running(workloads=["one"]), hub.translating():
        await placed(hub, "one")
        await hub.place("again", "florin", owner="one")
        await hub.settle()
        for name in ("all", "again"):
            assert (await hub.conditions(name, "one"))["ConflictFree"]["status"] == "True"
        await hub.unplace("all", owner="one")
        await hub.settle()
        assert (await page(hub))["data"] == {"by": "one"}


@virtual
async def test_a_namespace_is_shared_with_the_labels_of_the_first_who_named_it() -> None:
    hub = Hub()
    named = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["shop"]}
    async with hub.running(workloads=["one", "two"]), hub.translating():
        for owner in ("one", "two"):
            await hub.namespace("shop", owner, go="yes", team=owner)
            await hub.place("all", "florin", owner=owner, nonNamespacedObjects=[named])
            await hub.settle()
        space = await hub.found("florin", NAMESPACES, "shop") or {}
        assert space["metadata"]["labels"]["team"] == "one"
        shown = await conflict(hub, "two")
        assert (shown["status"], shown["reason"]) == ("False", "NamespaceShared")
        assert "root:one" in shown["message"]
        assert (await conflict(hub, "one"))["status"] == "True"
        await hub.unplace("all", owner="one")
        await hub.settle()
        space = await hub.found("florin", NAMESPACES, "shop") or {}
        assert space["metadata"]["labels"]["team"] == "two"


@virtual
async def test_copies_of_before_owners_were_recorded_stay_as_they_are() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]):
        async with hub.translating():
            await placed(hub, "one")
            await hub.put(CONFIG_MAPS, config_map("single", {"k": "v"}), "shop", "one")
            await hub.settle()
        # As the newest that won left it: the rival's content, and no word of an owner.
        await placed(hub, "two")
        for name, data in (("page", {"by": "two"}), ("single", {"k": "v"})):
            patch = {"metadata": {"annotations": {OWNER_WORKSPACE: None}}, "data": data}
            await hub.mailbox("florin").patch(CONFIG_MAPS, name, patch, "shop")
        before = await hub.found("florin", CONFIG_MAPS, "single", "shop") or {}
        async with hub.translating():
            await hub.settle()
            after = await page(hub)
            assert after["data"] == {"by": "two"}, "whose content is there keeps the name"
            assert after["metadata"]["annotations"][OWNER_WORKSPACE] == hub.clusters["two"]
            assert "root:two" in (await conflict(hub, "one"))["message"]
            single = await hub.found("florin", CONFIG_MAPS, "single", "shop") or {}
            assert single["metadata"] == before["metadata"], "nobody else wants it: not written"


@virtual
async def test_an_owner_without_its_grant_keeps_the_name_until_that_is_confirmed() -> None:
    hub = Hub()
    async with hub.running(workloads=["one", "two"]), hub.translating():
        for owner in ("one", "two"):
            await hub.grant(owner, paths=[f"root:{owner}"], selector={}, rules=RULES)
        await hub.report()
        await placed(hub, "one")
        await placed(hub, "two")
        uid = (await page(hub))["metadata"]["uid"]
        only_apps = [{"apiGroups": ["apps"], "resources": ["*"], "scope": "*"}]
        await hub.grant("one", paths=["root:one"], selector={}, rules=only_apps)
        await hub.settle()
        assert (await page(hub))["data"] == {"by": "one"}
        assert "root:one" in (await conflict(hub, "two"))["message"]
        [held] = (await hub.consent())["objects"]["held"]
        await hub.confirm(held["id"])
        await hub.settle()
        found = await page(hub)
        assert (found["data"], found["metadata"]["uid"]) == ({"by": "two"}, uid)
        assert (await conflict(hub, "two"))["status"] == "True"
        # It is granted again, and the name is another's by now.
        await hub.grant("one", paths=["root:one"], selector={}, rules=RULES)
        await hub.settle()
        assert (await page(hub))["data"] == {"by": "two"}
