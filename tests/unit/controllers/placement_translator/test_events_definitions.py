"""Kinds that workspaces define for themselves: followed while they are there, and taken along."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.api.refs import ClusterName, ObjectRef
from skerry.controllers.placement_translator.decide import target_of
from skerry.logic.fleet.translation.categories import DEFINITIONS
from skerry.logic.fleet.translation.copies import digest
from skerry.logic.fleet.translation.sources import WatchKey, record_of
from skerry.logic.fleet.translation.workspaces import DEFINITION_WATCH, types_scope
from tests.kit.chain.translator_world import CLUSTERS, NAMESPACES, A, World, cluster_object

WIDGETS = GroupResource("example.io", "widgets")
WIDGET = ObjectRef("", *WIDGETS, "n", "w")
DEFINITION = ObjectRef("", *DEFINITIONS, "", "widgets.example.io")
P = edge_placement_ref("one", "p")
GO = {"matchLabels": {"go": "yes"}}
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


class Typed(World):
    """A workspace that defines the kind Widget, and a mailbox that serves what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"}))
        self.place("one", "p", namespaceSelector=GO)
        self.slice(P, (A, "florin"))

    def local(self, cluster: ClusterName) -> WatchKey:
        return WatchKey(cluster, "example.io", "v1", "widgets")

    def key(self, kind: GroupResource) -> WatchKey:
        return self.local(self._cluster) if kind == WIDGETS else super().key(kind)

    def define(self, cluster: ClusterName = "one") -> None:
        spec = {
            "group": "example.io",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        }
        found = cluster_object(cluster, "widgets.example.io", spec=spec, status=ESTABLISHED)
        found["kind"] = "CustomResourceDefinition"
        self.put(DEFINITIONS, found)
        self.sync()

    def undefine(self) -> None:
        self.remove(DEFINITIONS, "one", "widgets.example.io")
        for name in "wv":
            self.unmake(name)

    def make(self, name: str = "w", data: str = "1") -> None:
        self._cluster = "one"
        if self.local("one") in self.watches.keys:
            self.put(WIDGETS, cluster_object("one", name, "n", spec={"size": data}))

    def unmake(self, name: str = "w") -> None:
        self._cluster = "one"
        self.remove(WIDGETS, "one", name, "n")

    _cluster: ClusterName = "one"

    def _write(self, cluster: ClusterName, kind: GroupResource, obj: Object) -> None:
        """Take what is written as a server does: a status is its own to say."""
        super()._write(cluster, kind, {k: v for k, v in obj.items() if k != "status"})

    def settle(self) -> None:
        """Reconcile until nothing changes; the mailbox serves the kinds it was sent."""
        for _ in range(6):
            self._cluster = CLUSTERS[A]
            self.reconcile()
            rows = self.objects.get(DEFINITIONS, {})
            made = rows.get((CLUSTERS[A], "", "widgets.example.io"))
            if made is not None and "status" not in made:
                self.put(DEFINITIONS, {**made, "status": ESTABLISHED})
            if made is None:
                # A server deletes the objects of a kind that is defined no more.
                for name in "wv":
                    self.remove(WIDGETS, CLUSTERS[A], name, "n")
            self.sync()
        self._cluster = "one"


def test_a_definition_is_written_before_the_objects_that_need_it() -> None:
    world = Typed()
    world.define()
    assert world.local("one") in world.watches.keys
    world.make()
    world._cluster = CLUSTERS[A]
    written = [target_of(each).name for plan in world.reconcile() for each in plan]
    assert written.index(DEFINITION.name) < written.index(WIDGET.name)
    world.settle()
    assert {DEFINITION, WIDGET} <= world.copies(A).keys()


def test_a_definition_stays_as_long_as_one_object_needs_it() -> None:
    world = Typed()
    world.define()
    world.make("w")
    world.make("v")
    world.settle()
    world.unmake("w")
    world.settle()
    assert WIDGET not in world.copies(A)
    assert DEFINITION in world.copies(A)
    world.unmake("v")
    world.settle()
    assert DEFINITION not in world.copies(A)


def test_a_kind_that_is_defined_no_more_is_followed_no_more() -> None:
    world = Typed()
    world.define()
    world.make()
    world.settle()
    world.undefine()
    assert world.local("one") not in world.watches.keys
    world.settle()
    assert DEFINITION not in world.copies(A)
    world.define()
    world.make()
    world.settle()
    assert {DEFINITION, WIDGET} <= world.copies(A).keys()


def test_nothing_goes_while_definitions_are_read_anew() -> None:
    world = Typed()
    world.define()
    world.make()
    world.settle()
    before = world.copies(A)
    world.restart(DEFINITION_WATCH)
    assert not world.tables.dirty.scopes.is_complete(types_scope("one"))
    world.handlers.removed(
        world.tables.workspaces.definitions,
        record_of(DEFINITION_WATCH, world.objects[DEFINITIONS]["one", "", DEFINITION.name]),
    )
    world._cluster = CLUSTERS[A]
    world.reconcile()
    assert world.copies(A) == before


def test_a_workspace_without_placements_is_left_with_all_it_defined() -> None:
    world = Typed()
    world.define()
    world.make()
    world.settle()
    world.unplace(P)
    assert world.local("one") not in world.watches.keys
    world.settle()
    assert WIDGET not in world.copies(A)


STEPS: list[Callable[[Typed], object]] = [
    lambda world: world.define(),
    lambda world: world.undefine(),
    lambda world: world.make("w"),
    lambda world: world.make("w", "2"),
    lambda world: world.make("v"),
    lambda world: world.unmake("w"),
    lambda world: world.unmake("v"),
    lambda world: world.settle(),
    lambda world: world.slice(P),
    lambda world: world.slice(P, (A, "florin")),
    lambda world: world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "no"})),
    lambda world: world.put(NAMESPACES, cluster_object("one", "n", labels={"go": "yes"})),
]


@settings(max_examples=30)
@given(st.lists(st.sampled_from(STEPS), max_size=12))
def test_mailboxes_follow_every_sequence_of_definitions_and_objects(
    steps: list[Callable[[Typed], object]],
) -> None:
    world = Typed()
    world.define()
    world.make()
    for step in steps:
        step(world)
    world.settle()
    contents = world.expected().contents.get(A, {})
    wanted = {item: digest(item.group_resource, obj) for item, obj in contents.items()}
    assert world.copies(A) == wanted
