"""What tools keep of a source stays there: their notes, and Helm's records of releases."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import EDGE_PLACEMENTS
from tests.kit.chain.translator_hub import CONFIG_MAPS, SECRETS, Hub, config_map
from tests.kit.sim.loop import virtual

NOTES = {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:shop/page"}
COPY = {"edge.kcp.io/projected": "yes"}


def noted(labels: dict[str, str] | None = None) -> dict[str, Any]:
    page = config_map("page", {"k": "v"})
    return {**page, "metadata": {"name": "page", "annotations": NOTES, "labels": labels or {}}}


def release(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, **metadata},
        "type": "helm.sh/release.v1",
        "data": {"release": "SDRz"},
    }


@virtual
async def test_a_copy_made_with_notes_of_tools_is_rewritten_once_and_remains_itself() -> None:
    hub = Hub()
    async with hub.running():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, noted(), "shop")
        await hub.place("p", "florin")
        async with hub.translating():
            await hub.settle()
        mailbox = hub.mailbox("florin")
        made = await mailbox.get(CONFIG_MAPS, "page", "shop")
        assert not NOTES.keys() & made["metadata"].get("annotations", {}).keys()
        # As an earlier version left it.
        patch = {"metadata": {"annotations": NOTES}}
        before = await mailbox.patch(CONFIG_MAPS, "page", patch, "shop")
        async with hub.translating():
            await hub.settle()
            after = await mailbox.get(CONFIG_MAPS, "page", "shop")
            assert not NOTES.keys() & after["metadata"].get("annotations", {}).keys()
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}), "shop")
            await hub.put(CONFIG_MAPS, noted(), "shop")
            await hub.settle()
            last = await mailbox.get(CONFIG_MAPS, "page", "shop")
            assert last["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
            await hub.assert_as_expected("florin")


@virtual
async def test_release_records_do_not_travel_and_those_that_did_go_with_their_sources() -> None:
    hub = Hub()
    async with hub.running():
        await hub.namespace("shop")
        await hub.put(CONFIG_MAPS, config_map("page", {"k": "v"}), "shop")
        for name in ("r.v1", "r.v2", "r.v3"):
            await hub.put(SECRETS, release(name), "shop")
        await hub.place("p", "florin")
        mailbox = hub.mailbox("florin")
        async with hub.translating():
            await hub.settle()
            assert not await secrets(hub)
        # As an earlier version left them.
        for name in ("r.v1", "r.v2"):
            await mailbox.create(SECRETS, release(name, labels=COPY), "shop")
        async with hub.translating():
            await hub.settle()
            assert await secrets(hub) == {"r.v1", "r.v2"}
            await hub.remove(SECRETS, "r.v1", "shop")
            await hub.settle()
            assert await secrets(hub) == {"r.v2"}
        await hub.remove(SECRETS, "r.v2", "shop")
        async with hub.translating():
            await hub.settle()
            assert not await secrets(hub)
            await hub.assert_as_expected("florin")


@virtual
async def test_copies_of_release_records_go_when_they_are_placed_no_more() -> None:
    hub = Hub()
    async with hub.running():
        await hub.namespace("shop")
        await hub.put(SECRETS, release("r.v1"), "shop")
        await hub.place("p", "florin")
        async with hub.translating():
            await hub.settle()
            await hub.mailbox("florin").create(SECRETS, release("r.v1", labels=COPY), "shop")
            await hub.settle()
            assert await secrets(hub) == {"r.v1"}
            spec = {"spec": {"namespaceSelector": {"matchLabels": {"go": "no"}}}}
            await hub.at("root:wmw").patch(EDGE_PLACEMENTS, "p", spec)
            await hub.settle()
            assert not await secrets(hub)


async def secrets(hub: Hub) -> set[str]:
    return {item.name for item in await hub.copies("florin") if item.resource == "secrets"}
