"""What a person decides for an edge, over a real hub engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from skerry.api.edge import (
    ADOPT,
    APPROVE_DELETIONS,
    OWNER_WORKSPACE,
    SYNC_ERROR,
    SYNCER_CONFIGS,
    Mailbox,
)
from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.api.objects import Object
from skerry.app.edge_holds import (
    accept_store,
    adopt,
    approve_deletions,
    held_deletions,
    mailbox_client,
    refused_object,
    unknown_store,
)
from skerry.app.edge_identity import HubAccess, NoMailbox
from skerry.app.inventory import CommandFailed
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import ClientConfig
from tests.kit.chain.summarizer_hub import CONFIG_MAPS, NAMESPACES, PROVIDER, Hub
from tests.kit.sim.loop import virtual

QUESTION = "another store; annotate with edge.kcp.io/accept-store-identity=config:b"


class Town:
    """A hub with an inventory, one edge's mailbox, and an owner of something placed there."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.access = HubAccess(hub.client, ClientConfig(server="https://hub"), "https://hub", "")

    async def add_edge(self, inventory: str, name: str) -> None:
        await self.hub.workspace("root", inventory)
        target = {
            "apiVersion": "workload.kcp.io/v1alpha1",
            "kind": "SyncTarget",
            "metadata": {"name": name},
            "spec": {},
        }
        made = await self.hub.at(f"root:{inventory}").create(SYNC_TARGETS, target)
        cluster = await self.hub.cluster_of(f"root:{inventory}")
        workspace = Mailbox(cluster, made["metadata"]["uid"]).workspace
        await self.hub.workspace(PROVIDER, workspace)
        path = f"{PROVIDER}:{workspace}"
        await self.hub.bind(path, "bind-edge", PROVIDER, "edge.kcp.io")
        await self.hub.bind(path, "bind-kubernetes", "root:compute", "kubernetes")

    async def mailbox(self, imw: str = "") -> Client:
        return await mailbox_client(self.access, "florin", imw, PROVIDER)

    async def report(self, status: Object) -> None:
        mailbox = await self.mailbox()
        config = {
            "apiVersion": "edge.kcp.io/v1alpha1",
            "kind": "SyncerConfig",
            "metadata": {"name": "the-one"},
            "spec": {},
        }
        await mailbox.create(SYNCER_CONFIGS, config)
        await mailbox.patch(SYNCER_CONFIGS, "the-one", {"status": status}, subresource="status")

    async def annotations(self) -> dict[str, str]:
        config = await (await self.mailbox()).get(SYNCER_CONFIGS, "the-one")
        return dict(config["metadata"].get("annotations") or {})

    async def refuse(self, error: str, owner: str) -> None:
        """Place a ConfigMap of the owner's that the edge answers with *error*."""
        await self.hub.namespace("shop")
        await self.hub.owner.create(CONFIG_MAPS, {"metadata": {"name": "page"}}, "shop")
        mailbox = await self.mailbox()
        labels = {"edge.kcp.io/projected": "yes"}
        await mailbox.create(NAMESPACES, {"metadata": {"name": "shop", "labels": labels}})
        marks = {SYNC_ERROR: error, **({OWNER_WORKSPACE: owner} if owner else {})}
        copy = {"metadata": {"name": "page", "labels": labels, "annotations": marks}}
        await mailbox.create(CONFIG_MAPS, copy, "shop")


@asynccontextmanager
async def town() -> AsyncIterator[Town]:
    hub = Hub()
    async with hub.running([]):
        made = Town(hub)
        await made.add_edge("imw", "florin")
        yield made


@virtual
async def test_an_edge_is_found_in_any_workspace_unless_several_have_its_name() -> None:
    async with town() as here:
        assert (await here.mailbox()).cluster == (await here.mailbox("root:imw")).cluster
        with pytest.raises(NoMailbox, match="no workspace has a SyncTarget 'guilder'"):
            await mailbox_client(here.access, "guilder", "", PROVIDER)
        await here.add_edge("imw-2", "florin")
        with pytest.raises(NoMailbox, match="in root:imw, root:imw-2: name its workspace"):
            await here.mailbox()
        one, other = await here.mailbox("root:imw"), await here.mailbox("root:imw-2")
        assert one.cluster != other.cluster


@virtual
async def test_what_is_held_is_shown_and_approved_by_its_id() -> None:
    async with town() as here:
        with pytest.raises(CommandFailed, match="nothing was ever placed at edge florin") as failed:
            await held_deletions(await here.mailbox(), "florin")
        assert failed.value.code == 6
        names = ["configmaps/shop/a", "configmaps/shop/b"]
        await here.report({"heldDeletions": {"count": 60, "approve": "0a1b", "names": names}})
        mailbox = await here.mailbox()
        with pytest.raises(CommandFailed, match="60 deletions with id 0a1b, not 0000") as failed:
            await held_deletions(mailbox, "florin", "0000")
        assert failed.value.code == 6
        held = await held_deletions(mailbox, "florin", "0a1b")
        assert (held.count, held.objects) == (60, tuple(names))
        assert held.as_json(approved=False)["id"] == "0a1b"
        await approve_deletions(mailbox, held)
        assert (await here.annotations())[APPROVE_DELETIONS] == "0a1b"


@virtual
async def test_nothing_held_and_a_known_store_are_exit_code_six() -> None:
    async with town() as here:
        await here.report({"conditions": []})
        mailbox = await here.mailbox()
        with pytest.raises(CommandFailed, match="edge florin holds no deletions"):
            await held_deletions(mailbox, "florin")
        with pytest.raises(CommandFailed, match="edge florin knows the store") as failed:
            await unknown_store(mailbox, "florin")
        assert failed.value.code == 6


@virtual
async def test_a_store_is_accepted_by_the_name_the_edge_gave_it() -> None:
    async with town() as here:
        changed = {
            "type": "HubIdentityChanged",
            "status": "True",
            "reason": "OtherStore",
            "message": QUESTION,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        await here.report({"conditions": [changed]})
        mailbox = await here.mailbox()
        store, question = await unknown_store(mailbox, "florin")
        assert (store, question) == ("config:b", QUESTION)
        await accept_store(mailbox, store)
        assert (await here.annotations())["edge.kcp.io/accept-store-identity"] == "config:b"


@virtual
async def test_adopting_annotates_the_owners_object_and_not_its_copy() -> None:
    async with town() as here:
        owner = await here.hub.cluster_of("root:wmw")
        await here.refuse("NotOurs: somebody else's", owner)
        mailbox = await here.mailbox()
        refused = await refused_object(mailbox, "florin", "cm/page", "shop")
        assert refused.text == "configmaps shop/page"
        assert await adopt(here.access, refused) == "root:wmw"
        source = await here.hub.owner.get(CONFIG_MAPS, "page", "shop")
        assert source["metadata"]["annotations"][ADOPT] == "true"


@virtual
async def test_what_is_not_refused_as_somebody_elses_is_not_adopted() -> None:
    async with town() as here:
        await here.refuse("Rejected: too long", "")
        mailbox = await here.mailbox()
        for words, namespace, code in (
            ("cm/page", "shop", 6),
            ("cm/other", "shop", 5),
            ("cm", "shop", 2),
            ("cm/page", "", 2),
            ("nonsense/page", "shop", 2),
        ):
            with pytest.raises(CommandFailed) as failed:
                await refused_object(mailbox, "florin", words, namespace)
            assert failed.value.code == code, words


@virtual
async def test_a_copy_of_nobody_is_not_adopted() -> None:
    async with town() as here:
        await here.refuse("NotOurs: somebody else's", "")
        refused = await refused_object(await here.mailbox(), "florin", "configmaps/page", "shop")
        with pytest.raises(CommandFailed, match="nobody knows whose"):
            await adopt(here.access, refused)
