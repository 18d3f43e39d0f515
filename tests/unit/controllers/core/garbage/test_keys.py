"""One type's changes fed into the graph: what is listed, what is gone, and who is enqueued."""

from __future__ import annotations

from skerry.api.kinds import GroupVersionResource
from skerry.controllers.core.garbage.graph import Graph, Node, NodeKey, OwnerRef
from skerry.controllers.core.garbage.keys import Feed
from skerry.logic.machinery.plan import Target

PODS = GroupVersionResource("", "v1", "pods")


def node(uid: str, owner: str = "") -> Node:
    owners = (OwnerRef("apps/v1", "ReplicaSet", owner, f"u-{owner}", False, True),) if owner else ()
    key = NodeKey("", f"u-{uid}")
    return Node(key, Target(PODS, uid, "shop"), "Pod", owners, False, frozenset())


class Stage:
    def __init__(self) -> None:
        self.graph, self.added = Graph(), list[NodeKey]()
        self.feed = Feed(self.graph, PODS, self.added.append)

    def count(self) -> int:
        return len(list(self.graph.of_type(PODS)))


async def test_a_list_takes_out_what_it_does_not_show() -> None:
    stage = Stage()
    assert not stage.feed.synced.is_set()
    await stage.feed.replace([node("a"), node("b")])
    assert stage.feed.synced.is_set()
    assert stage.count() == 2
    await stage.feed.replace([node("b")])
    assert stage.count() == 1
    await stage.feed.clear()
    assert stage.count() == 0


async def test_a_dependent_of_nobody_known_is_enqueued_and_so_are_those_of_what_goes() -> None:
    stage = Stage()
    stage.feed.apply("ADDED", node("child", "parent"))
    assert NodeKey("", "u-child") in stage.added
    stage.feed.apply("ADDED", node("parent"))
    stage.added.clear()
    stage.feed.apply("DELETED", node("parent"))
    assert NodeKey("", "u-child") in stage.added
