"""Changes of what is sent make a placement with a Rollout busy; those of a status do not."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import CUT
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.revision.cut import Settle
from skerry.logic.fleet.translation.held import content_record
from skerry.logic.fleet.translation.workspaces import content_scope
from tests.kit.chain.translator_world import (
    CONFIG_MAPS,
    NAMESPACES,
    ROLES,
    A,
    World,
    cluster_object,
)

GO = {"matchLabels": {"go": "yes"}}


def page(data: str = "1", **more: Any) -> Any:
    return cluster_object("one", "x", "n", data={"k": data}, **more)


def quiet_world() -> tuple[World, ObjectRef]:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    world.put(CONFIG_MAPS, page())
    placement = world.place("one", "p", namespaceSelector=GO)
    world.handlers.rollout_changed(None, cluster_object("one", "p", spec={}))
    world.activities.quiet(placement)
    world.cuts.clear()
    return world, placement


def test_what_is_sent_and_differs_makes_it_busy() -> None:
    world, placement = quiet_world()
    world.put(CONFIG_MAPS, page("2"))
    assert world.cuts.pop() == (placement, 10.0)
    world.customize("one", "n", "c")
    assert world.cuts == []
    world.put(CONFIG_MAPS, page("2", notes={"edge.kcp.io/customizer": "c"}))
    world.cuts.clear()
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"y"'})
    assert world.cuts
    world.cuts.clear()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "no"}))
    assert world.cuts
    world.cuts.clear()
    world.place("one", "p", namespaceSelector={})
    assert world.cuts


def test_a_status_another_object_and_a_destination_do_not() -> None:
    world, placement = quiet_world()
    world.put(CONFIG_MAPS, page(status={"a": 1}))
    world.put(ROLES, cluster_object("one", "r"))
    world.slice(placement, (A, "florin"))
    world.put(CONFIG_MAPS, cluster_object("two", "x", "n", data={"k": "v"}))
    assert world.cuts == []


def test_a_rollout_says_how_long_to_wait_and_its_end_is_the_end_of_it() -> None:
    world, placement = quiet_world()
    spec = {"settle": {"mode": "Manual"}}
    asking = cluster_object("one", "p", spec=spec, notes={CUT: "now"})
    world.handlers.rollout_changed(None, asking)
    assert world.activities.settle(placement) == Settle(manual=True, asked="now")
    world.handlers.rollout_changed(asking, None)
    assert world.activities.settle(placement) is None
    world.put(CONFIG_MAPS, page("3"))
    assert world.activities.wait(placement) == 0


def test_a_revision_that_comes_after_its_slice_is_what_rows_waited_for() -> None:
    world, placement = quiet_world()
    world.slice(placement, (A, "florin"), revisions={A: 1})
    world.reconcile()
    assert world.copies(A) == {}
    world.cut(placement)
    world.reconcile()
    assert len(world.copies(A)) == 2


def test_what_is_no_object_changes_nothing() -> None:
    world, _ = quiet_world()
    world.handlers.rollout_changed(None, None)
    world.handlers.revision_changed(None, None)
    assert world.cuts == []


def test_a_revision_that_is_gone_is_cut_again_and_changes_no_copy() -> None:
    world, placement = quiet_world()
    number = world.cut(placement)
    world.slice(placement, (A, "florin"), revisions={A: number})
    world.reconcile()
    before = world.copies(A)
    [obj] = world.revisions.values()
    world.handlers.revision_changed(obj, None)
    assert [each for each, _ in world.cuts] == [placement]
    world.reconcile()
    assert world.copies(A) == before
    world.cuts.clear()
    world.handlers.revision_changed(obj, None)
    assert world.cuts == [], "it is gone already"


def test_a_content_that_is_not_there_is_known_not_to_be_until_it_is_read() -> None:
    world, placement = quiet_world()
    world.cut(placement)
    [(key, content)] = [each for each in world.contents.items() if "data" in each[1]]
    item = ObjectRef("", *CONFIG_MAPS, "n", "x")
    scope = content_scope(key[0], item, key[1])
    contents = world.tables.revisions.contents
    world.handlers.content_read(scope, None)
    world.handlers.content_read(scope, None)
    assert contents.is_absent(key)
    world.handlers.content_read(scope, content_record(key[0], item, key[1], content))
    assert not contents.is_absent(key)
