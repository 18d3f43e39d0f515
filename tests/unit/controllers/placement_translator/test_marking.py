"""A move from one revision to another touches what differs between them, where it is made."""

from __future__ import annotations

from typing import Any

from skerry.api.edge import Mailbox
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.dirty import CONFIG
from tests.kit.chain.translator_world import CONFIG_MAPS, NAMESPACES, A, B, World, cluster_object

GO = {"matchLabels": {"go": "yes"}}
WAYS = ((A, "florin"), (B, "guilder"))


def item(name: str) -> ObjectRef:
    return ObjectRef("", *CONFIG_MAPS, "n", name)


def page(name: str, data: str = "1") -> Any:
    return cluster_object("one", name, "n", data={"k": data})


def two_revisions() -> tuple[World, ObjectRef]:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    for name in "xyz":
        world.put(CONFIG_MAPS, page(name))
    placement = world.place("one", "p", namespaceSelector=GO)
    world.cut(placement)
    world.slice(placement, *WAYS, revisions={A: 1, B: 1})
    world.reconcile()
    world.put(CONFIG_MAPS, page("x", "2"))
    world.remove(CONFIG_MAPS, "one", "y", "n")
    world.put(CONFIG_MAPS, page("new"))
    world.cut(placement)
    return world, placement


def dirty(world: World, mailbox: Mailbox) -> set[ObjectRef]:
    return set(world.tables.dirty.of(mailbox))


def test_a_move_touches_the_difference_and_nobody_else() -> None:
    world, placement = two_revisions()
    assert (dirty(world, A), dirty(world, B)) == (set(), set())
    world.slice(placement, *WAYS, revisions={A: 2, B: 1})
    assert dirty(world, A) == {item("x"), item("y"), item("new"), CONFIG}
    assert dirty(world, B) == set()


def test_a_move_to_what_the_workspace_has_touches_everything() -> None:
    world, placement = two_revisions()
    world.slice(placement, *WAYS, revisions={B: 1})
    assert dirty(world, A) >= {item(name) for name in ("x", "y", "z", "new")}
    assert dirty(world, B) == set()
    world.reconcile()
    world.put(CONFIG_MAPS, page("z", "9"))
    assert (dirty(world, A), dirty(world, B)) == ({item("z")}, set())


def test_a_mailbox_that_appears_gets_what_its_revision_has() -> None:
    world, _ = two_revisions()
    world.remove_mailbox(A)
    world.add_mailbox(A)
    assert item("y") in dirty(world, A)
