"""What is known of one mailbox, and what is asked of the server before anything goes."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import MAILBOX_BINDING, SYNC_TARGET_NAME, Mailbox
from skerry.api.kcp.resources import API_BINDINGS, SYNC_TARGETS, WORKSPACES
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.mailbox.events import BY_UID, by_uid
from skerry.controllers.mailbox.observe import Observed, Observer, Provider
from skerry.runtime.client import Client
from tests.kit.caches import cache
from tests.kit.sim.twin import Twin, served

UID = "0e395079-f849-41e9-bd4f-0bcc07a16d3a"
MAILBOX = Mailbox("imw", UID)
PROVIDER = Provider("root:espw", "espw")


def kind(gvr: GroupVersionResource, name: str) -> Any:
    return served(gvr.group, gvr.version, gvr.resource, name, namespaced=False)


def target(uid: str = UID, name: str = "florin", **metadata: Any) -> Object:
    notes = {"kcp.io/cluster": "imw"}
    return {"metadata": {"name": name, "uid": uid, "annotations": notes, **metadata}}


def space(mark: str = "florin", content: str = "xq5f", **metadata: Any) -> Object:
    notes = {"kcp.io/cluster": "espw"} | ({SYNC_TARGET_NAME: mark} if mark else {})
    named = {"name": MAILBOX.workspace, "uid": "w", "annotations": notes, **metadata}
    return {"metadata": named, "spec": {"cluster": content}}


def binding(cluster: str = "xq5f") -> Object:
    return {"metadata": {"name": MAILBOX_BINDING, "annotations": {"kcp.io/cluster": cluster}}}


class Stage:
    """Caches, and the server behind them."""

    def __init__(self) -> None:
        types = [kind(SYNC_TARGETS, "SyncTarget"), kind(API_BINDINGS, "APIBinding")]
        self.twin = Twin(types=types)
        self.targets = cache(SYNC_TARGETS, indexes={BY_UID: by_uid})
        self.spaces, self.bindings = cache(WORKSPACES), cache(API_BINDINGS)

    async def on_server(self, gvr: GroupVersionResource, cluster: str, obj: Object) -> None:
        await Client(self.twin).for_cluster(cluster).create(gvr, obj)

    async def observe(self) -> Observed:
        self.twin.requests.clear()
        client = Client(self.twin)
        observer = Observer(PROVIDER, client, self.targets, self.spaces, self.bindings)
        return await observer.observe(MAILBOX)

    @property
    def asked(self) -> list[str]:
        return [path for _, path, _ in self.twin.requests]


async def test_what_the_caches_have_is_not_asked_for() -> None:
    stage = Stage()
    stage.targets.apply("ADDED", target())
    stage.spaces.apply("ADDED", space())
    stage.bindings.apply("ADDED", binding())
    found = await stage.observe()
    assert (found.sync_target, found.provider) == ("florin", PROVIDER)
    assert found.workspace == space()
    assert found.binding == binding()
    assert stage.asked == []


async def test_a_sync_target_that_is_being_deleted_counts_as_absent() -> None:
    stage = Stage()
    stage.targets.apply("ADDED", target(deletionTimestamp="t"))
    assert (await stage.observe()).sync_target is None


async def test_before_a_mailbox_goes_the_server_is_asked_for_its_sync_target() -> None:
    stage = Stage()
    stage.spaces.apply("ADDED", space(content=""))
    assert (await stage.observe()).sync_target is None
    assert len(stage.asked) == 1
    await stage.on_server(SYNC_TARGETS, "imw", target())
    # The twin gives objects a UID of its own, so this is another SyncTarget of the name.
    assert (await stage.observe()).sync_target is None
    stage.twin.objects[next(iter(stage.twin.objects))]["metadata"]["uid"] = UID
    assert (await stage.observe()).sync_target == "florin"


async def test_a_mailbox_without_its_mark_is_looked_for_among_all() -> None:
    stage = Stage()
    stage.spaces.apply("ADDED", space(mark="", content=""))
    for name in ("guilder", "florin"):
        await stage.on_server(SYNC_TARGETS, "imw", target(name=name))
    for place, obj in stage.twin.objects.items():
        obj["metadata"]["uid"] = UID if place.name == "florin" else "another"
    assert (await stage.observe()).sync_target == "florin"


async def test_nothing_is_asked_about_a_mailbox_that_is_not_there_or_going_already() -> None:
    stage = Stage()
    assert (await stage.observe()).workspace is None
    stage.spaces.apply("ADDED", space(deletionTimestamp="t"))
    assert (await stage.observe()).sync_target is None
    assert stage.asked == []


async def test_a_binding_that_no_cache_has_is_asked_for() -> None:
    stage = Stage()
    stage.targets.apply("ADDED", target())
    stage.spaces.apply("ADDED", space())
    assert (await stage.observe()).binding is None
    # Bound elsewhere: in nobody's view, yet there.
    await stage.on_server(API_BINDINGS, "xq5f", binding())
    found = await stage.observe()
    assert found.binding is not None
    assert found.binding["metadata"]["name"] == MAILBOX_BINDING


@pytest.mark.parametrize("content", ["", "xq5f"])
async def test_without_a_sync_target_or_content_no_binding_is_looked_for(content: str) -> None:
    stage = Stage()
    stage.spaces.apply("ADDED", space(content=content))
    if not content:
        stage.targets.apply("ADDED", target())
    stage.bindings.apply("ADDED", binding())
    assert (await stage.observe()).binding is None
