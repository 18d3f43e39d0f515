"""The mailbox as last heard: which types are followed, what is held, and when it is complete."""

from __future__ import annotations

import asyncio
from typing import Any

from skerry.api.kinds import GroupResource, GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.edge.syncer.tables.mailbox import WatchedMailbox, slim
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin

MAPS = GroupVersionResource("", "v1", "configmaps")
SECRETS = GroupVersionResource("", "v1", "secrets")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
PAGE = ObjectRef("", "", "configmaps", "shop", "page")


def followed(*types: GroupVersionResource) -> dict[GroupResource, GroupVersionResource]:
    return {gvr.group_resource: gvr for gvr in types}


class Stage:
    """A mailbox on a twin, and what it sent."""

    def __init__(self) -> None:
        self.client = Client(Twin(clock=LoopClock()), clock=LoopClock())
        self.mailbox = WatchedMailbox(InformerFactory(self.client, ids=SeededIds(0)))
        self.changed: list[tuple[ObjectRef, bool]] = []
        self.completed: list[str] = []
        self.mailbox.changed.connect(
            lambda ref, _old, new: self.changed.append((ref, new is not None))
        )
        self.mailbox.completed.connect(lambda kind: self.completed.append(kind.resource))

    async def put(self, gvr: GroupVersionResource, name: str) -> Object:
        obj: Object = {"metadata": {"name": name, "namespace": "shop"}, "data": {}}
        return await self.client.create(gvr, obj)


async def staged() -> Stage:
    stage = Stage()
    await stage.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await stage.put(MAPS, "page")
    return stage


@virtual
async def test_a_type_is_complete_once_read_and_then_every_change_is_sent() -> None:
    stage = await staged()
    kind = MAPS.group_resource
    stage.mailbox.follow(followed(MAPS))
    assert not stage.mailbox.synced(kind)
    task = asyncio.get_running_loop().create_task(stage.mailbox.run())
    await asyncio.sleep(1)
    assert stage.completed == ["configmaps"]
    assert stage.mailbox.synced(kind)
    assert stage.mailbox.get(PAGE) is not None
    assert list(stage.mailbox.refs()) == [PAGE]
    before = stage.mailbox.revision(kind)
    await stage.put(MAPS, "other")
    await stage.client.delete(MAPS, "page", "shop")
    await asyncio.sleep(1)
    other = PAGE._replace(name="other")
    assert stage.changed == [(PAGE, True), (other, True), (PAGE, False)]
    assert stage.mailbox.revision(kind) > before
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_types_are_taken_up_and_given_up_while_it_runs() -> None:
    stage = await staged()
    await stage.put(SECRETS, "key")
    task = asyncio.get_running_loop().create_task(stage.mailbox.run())
    await asyncio.sleep(0)
    stage.mailbox.follow(followed(MAPS, SECRETS))
    await asyncio.sleep(1)
    assert sorted(stage.completed) == ["configmaps", "secrets"]
    assert stage.mailbox.followed(MAPS.group_resource) == MAPS
    stage.mailbox.follow(followed(SECRETS))
    stage.changed.clear()
    await stage.put(MAPS, "later")
    await asyncio.sleep(1)
    assert stage.changed == []
    assert stage.mailbox.followed(MAPS.group_resource) is None
    assert stage.mailbox.get(PAGE) is None
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_another_version_of_a_type_is_read_anew() -> None:
    stage = Stage()
    kind = GroupResource("test.example", "widgets")
    old, new = (GroupVersionResource(*kind[:1], version, kind[1]) for version in ("v1", "v2"))
    stage.mailbox.follow({kind: old})
    stage.mailbox.follow({kind: new})
    assert stage.mailbox.followed(kind) == new


def test_of_a_type_nobody_follows_nothing_is_known() -> None:
    mailbox, kind = Stage().mailbox, MAPS.group_resource
    assert (mailbox.followed(kind), mailbox.synced(kind), mailbox.revision(kind)) == (
        None,
        False,
        0,
    )
    assert mailbox.get(PAGE) is None
    assert list(mailbox.refs()) == []


def test_what_servers_note_for_themselves_is_not_kept() -> None:
    notes = {"kcp.io/cluster": "xq5f", "a": "b"}
    metadata: dict[str, Any] = {"name": "n", "managedFields": [1], "annotations": notes}
    kept = slim({"metadata": metadata, "data": {}})
    assert kept == {"metadata": {"name": "n", "annotations": {"a": "b"}}, "data": {}}
    assert metadata["managedFields"] == [1], "the original is left as it is"
    assert slim({"metadata": {"name": "n"}}) == {"metadata": {"name": "n"}}
