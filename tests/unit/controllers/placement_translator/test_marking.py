"""A move from one revision to another touches what differs between them, where it is made."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import Mailbox
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.revision.cut import USUAL
from skerry.logic.fleet.translation.categories import BINDINGS
from skerry.logic.fleet.translation.dirty import CONFIG
from tests.kit.chain.translator_world import (
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    ROLES,
    A,
    B,
    World,
    cluster_object,
)

COPY = {"edge.kcp.io/projected": "yes"}
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


# -- what the workspace has now ------------------------------------------------------------------


def live_world() -> tuple[World, ObjectRef]:
    """Return a workspace with two Namespaces of two ConfigMaps each, one of them placed."""
    world = World()
    for namespace, go in (("n", "yes"), ("m", "no")):
        world.put(NAMESPACES, cluster_object("one", namespace, labels={"go": go}))
        for name in "xy":
            world.put(CONFIG_MAPS, cluster_object("one", name, namespace, data={"k": "1"}))
    placement = world.place("one", "p", namespaceSelector=GO)
    world.slice(placement, *WAYS)
    world.reconcile()
    world.cuts.clear()
    return world, placement


def test_a_change_of_an_object_touches_its_row_in_every_mailbox_and_nothing_else() -> None:
    world, _ = live_world()
    world.put(CONFIG_MAPS, page("x", "2"))
    assert dirty(world, A) == dirty(world, B) == {item("x")}


def test_an_object_that_nobody_sends_touches_nothing() -> None:
    world, _ = live_world()
    world.put(CONFIG_MAPS, cluster_object("one", "x", "m", data={"k": "2"}))
    world.put(CONFIG_MAPS, cluster_object("two", "x", "n", data={"k": "2"}))
    assert dirty(world, A) == dirty(world, B) == set()


def test_what_is_in_no_namespace_touches_the_syncer_config_too() -> None:
    world, _ = live_world()
    role = ObjectRef("", *ROLES, "", "r")
    rule = {"apiGroup": ROLES.group, "resources": ["clusterroles"], "resourceNames": ["r"]}
    world.place("one", "p", namespaceSelector=GO, nonNamespacedObjects=[rule])
    world.put(ROLES, cluster_object("one", "r"))
    world.reconcile()
    world.put(ROLES, cluster_object("one", "r", rules=[{"verbs": ["get"]}]))
    assert dirty(world, A) == {role, CONFIG}


def test_a_namespace_that_is_chosen_touches_everything_in_it_and_nothing_in_others() -> None:
    world, _ = live_world()
    world.put(NAMESPACES, cluster_object("one", "m", labels={"go": "yes"}))
    within = {ObjectRef("", *CONFIG_MAPS, "m", name) for name in "xy"}
    assert dirty(world, A) == dirty(world, B) == {namespace_ref("m"), *within, CONFIG}


def test_a_namespace_that_is_only_named_touches_itself() -> None:
    world, _ = live_world()
    named = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
    world.place("one", "p", namespaceSelector=GO, nonNamespacedObjects=[named])
    assert namespace_ref("n") in dirty(world, A)
    world.reconcile()
    world.place("one", "p", namespaceSelector={"matchLabels": {"go": "never"}},
                nonNamespacedObjects=[named])  # fmt: skip
    assert dirty(world, A) >= {item("x"), item("y"), namespace_ref("n"), CONFIG}


def test_a_new_destination_gets_all_that_its_placement_sends_and_the_others_nothing() -> None:
    world, placement = live_world()
    world.slice(placement, WAYS[0])
    assert dirty(world, A) == set()
    assert dirty(world, B) == {item("x"), item("y"), namespace_ref("n"), CONFIG}
    world.reconcile()
    world.slice(placement, *WAYS)
    assert dirty(world, A) == set()
    assert dirty(world, B) == {item("x"), item("y"), namespace_ref("n"), CONFIG}


def test_what_is_marked_of_a_mailbox_that_is_not_there_is_marked_when_it_appears() -> None:
    world, _ = live_world()
    world.remove_mailbox(B)
    world.put(CONFIG_MAPS, page("x", "2"))
    world.queue.clear()
    world.handlers.mark(B, [item("y")])
    assert (dirty(world, B), world.queue) == (set(), set())
    world.add_mailbox(B)
    assert dirty(world, B) == {item("x"), item("y"), namespace_ref("n"), CONFIG}


def test_a_mailbox_that_appears_has_its_old_copies_looked_at_but_nobody_elses_objects() -> None:
    world, placement = live_world()
    world.unplace(placement)
    world.put(CONFIG_MAPS, cluster_object(CLUSTERS[B], "own", "n"))
    world.remove_mailbox(B)
    world.add_mailbox(B)
    assert {item("x"), item("y")} <= dirty(world, B)
    assert item("own") not in dirty(world, B)


def test_one_binding_touches_all_that_might_go_to_the_same_mailbox() -> None:
    def binding(cluster: str, name: str, export: str) -> ObjectRef:
        reference = {"reference": {"export": {"path": "root", "name": export}}}
        world.put(BINDINGS, cluster_object(cluster, name, spec=reference))
        return ObjectRef("", *BINDINGS, "", name)

    world, _ = live_world()
    rule = {"apiGroup": BINDINGS.group, "resources": ["apibindings"], "resourceNames": ["*"]}
    world.place("one", "p", namespaceSelector=GO, nonNamespacedObjects=[rule])
    first = binding("one", "first", "kube")
    world.reconcile()

    second = binding("one", "second", "kube")
    assert {first, second} <= dirty(world, A)
    world.reconcile()

    elsewhere = binding("two", "third", "kube")
    assert elsewhere not in dirty(world, A)
    world.put(CONFIG_MAPS, page("x", "2"))
    assert dirty(world, A) == {item("x")}, "other kinds have no rivals"


def test_what_is_selected_makes_a_placement_with_a_rollout_busy_and_where_it_goes_does_not() -> (
    None
):
    world, placement = live_world()
    world.activities.put(placement, USUAL)
    world.cuts.clear()
    world.slice(placement, WAYS[0])
    assert world.cuts == []
    world.put(NAMESPACES, cluster_object("one", "m", labels={"go": "yes"}))
    assert {each for each, _ in world.cuts} == {placement}


# -- some destinations at a revision -------------------------------------------------------------


def test_a_change_goes_where_nothing_is_fixed_yet_and_not_where_a_revision_is() -> None:
    world, placement = two_revisions()
    world.slice(placement, *WAYS, revisions={A: 1})
    world.reconcile()
    world.put(CONFIG_MAPS, page("z", "9"))
    assert (dirty(world, A), dirty(world, B)) == (set(), {item("z")})


def test_a_placement_without_revisions_is_sent_as_it_is_beside_one_with_them() -> None:
    world, placement = two_revisions()
    other = world.place("one", "other", namespaceSelector=GO)
    world.slice(other, WAYS[1])
    world.reconcile()
    world.put(CONFIG_MAPS, page("z", "9"))
    assert (dirty(world, A), dirty(world, B)) == (set(), {item("z")})
    assert placement != other


def test_revisions_that_differ_in_their_customizers_differ_in_every_object() -> None:
    world = World()
    world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
    customized = {"notes": {"edge.kcp.io/customizer": "c"}, "data": {"k": "1"}}
    world.put(CONFIG_MAPS, cluster_object("one", "x", "n", **customized))
    world.put(CONFIG_MAPS, page("y"))
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"a"'})
    placement = world.place("one", "p", namespaceSelector=GO)
    world.cut(placement)
    world.slice(placement, *WAYS, revisions={A: 1, B: 1})
    world.reconcile()
    world.customize("one", "n", "c", {"path": "$.data.k", "value": '"b"'})
    assert world.cut(placement) == 2
    world.reconcile()
    world.slice(placement, *WAYS, revisions={A: 2, B: 1})
    assert dirty(world, A) >= {item("x"), item("y"), namespace_ref("n"), CONFIG}
    assert dirty(world, B) == set()


def test_moving_on_from_a_revision_that_nobody_has_any_more_looks_at_the_whole_mailbox() -> None:
    world, placement = two_revisions()
    gone = world.revisions.pop(("one", "p-1"))
    world.handlers.revision_changed(gone, None)
    world.reconcile()
    # This copy is of no revision that is still there, nor of what the workspace has.
    world.put(CONFIG_MAPS, cluster_object(CLUSTERS[A], "left", "n", labels=COPY))
    world.reconcile()
    world.put(CONFIG_MAPS, cluster_object(CLUSTERS[A], "own", "n"))
    world.reconcile()
    world.slice(placement, *WAYS, revisions={A: 2, B: 1})
    assert dirty(world, A) >= {item("x"), item("y"), item("z"), item("new"), CONFIG}
    assert item("own") not in dirty(world, A)
    assert dirty(world, B) == set()


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 2)), min_size=1, max_size=6))
def test_whatever_moves_are_made_the_mailboxes_have_what_was_asked_for_in_the_end(
    moves: list[tuple[Mailbox, int]],
) -> None:
    world, placement = two_revisions()
    numbers = {A: 1, B: 1}
    for mailbox, number in moves:
        numbers[mailbox] = number
        world.slice(placement, *WAYS, revisions=numbers)
        world.reconcile()

        expected = world.expected()
        for each in (A, B):
            assert world.copies(each).keys() == expected.contents[each].keys()
            assert dirty(world, each) == set()
