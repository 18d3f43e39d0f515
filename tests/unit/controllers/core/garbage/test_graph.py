"""Who owns whom: whatever comes in whatever order, dependents and presence are the objects'."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.controllers.core.garbage.graph import (
    FOREGROUND,
    ORPHAN,
    Graph,
    Node,
    NodeKey,
    OwnerRef,
    node_of,
    unpacked,
)
from tests.kit.machinery.objects import resource

PODS = resource("pods").info
UIDS = [f"00000000-0000-0000-0000-00000000000{n}" for n in range(4)]
UUID = "123e4567-e89b-12d3-a456-426614174000"


def key(uid: str) -> NodeKey:
    return NodeKey("", uid)


def node(uid: str, *owners: str, blocks: bool = False, **metadata: Any) -> Node:
    references = [
        {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": owner, "blockOwnerDeletion": blocks}
        for owner in owners
    ]
    return node_of(
        PODS,
        {"metadata": {"name": uid, "namespace": "n", "uid": uid, "ownerReferences": references,
                      **metadata}},
    )  # fmt: skip


def deleting(uid: str, *owners: str, finalizers: tuple[str, ...] = ()) -> Node:
    return node(uid, *owners, deletionTimestamp="now", finalizers=list(finalizers))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(UIDS),
        st.one_of(st.none(), st.tuples(st.sets(st.sampled_from(UIDS), max_size=2), st.booleans())),
    ),
    max_size=25,
)


@given(STEPS)
def test_the_graph_is_that_of_the_objects_that_are_there(
    steps: list[tuple[str, tuple[set[str], bool] | None]],
) -> None:
    graph, model = Graph(), dict[str, Node]()
    for uid, change in steps:
        if change is None:
            graph.remove(key(uid))
            model.pop(uid, None)
        else:
            owners, gone = change
            made = deleting(uid, *sorted(owners)) if gone else node(uid, *sorted(owners))
            graph.put(made)
            model[uid] = made
    assert len(graph) == len(model)
    for uid in UIDS:
        assert (graph.presence(key(uid)) is not None) == (uid in model)
        wanted = {other for other, each in model.items() if key(uid) in set(each.owner_keys())}
        assert {each.key.uid for each in graph.dependents(key(uid))} == wanted
    assert {unpacked(each).uid for each in graph.of_type(PODS.gvr)} == set(model)


def test_of_a_plain_object_only_its_presence_is_kept() -> None:
    graph = Graph()
    assert graph.put(node(UUID)) == set()
    assert graph.get(key(UUID)) is None
    found = graph.presence(key(UUID))
    assert found is not None
    assert (found.namespace, found.waits_for_dependents) == ("n", False)


def test_an_object_whose_owner_is_not_there_is_looked_at() -> None:
    graph = Graph()
    assert graph.put(node("child", "parent")) == {key("child")}
    graph.put(node("parent"))
    assert graph.put(node("child", "parent")) == set()


def test_when_an_owner_goes_its_dependents_are_looked_at() -> None:
    graph = Graph()
    graph.put(node("parent"))
    graph.put(node("child", "parent"))
    assert graph.remove(key("parent")) == {key("child")}
    assert graph.remove(key("parent")) == set()


def test_an_owner_that_waits_is_looked_at_when_a_dependent_goes_or_changes() -> None:
    graph = Graph()
    graph.put(node("child", "parent"))
    waiting = deleting("parent", finalizers=(FOREGROUND,))
    assert graph.put(waiting) == {key("parent"), key("child")}
    assert key("parent") in graph.put(node("child"))
    graph.put(node("child", "parent"))
    assert graph.remove(key("child")) == {key("parent")}


def test_what_deletion_waits_for() -> None:
    assert deleting("a", finalizers=(FOREGROUND,)).waits_for_dependents
    assert deleting("a", finalizers=(ORPHAN,)).orphans_dependents
    assert not node("a", finalizers=[FOREGROUND]).waits_for_dependents
    assert node("a", "o", blocks=True).blocks(key("o"))
    assert not node("a", "o").blocks(key("o"))
    assert not node("a", "o", blocks=True).blocks(key("other"))


@pytest.mark.parametrize("uid", [UUID, UUID.upper(), "not-a-uuid", "", "0" * 32, " " + UUID])
@pytest.mark.parametrize("cluster", ["", "root:team"])
def test_a_key_survives_being_packed(uid: str, cluster: str) -> None:
    graph = Graph()
    made = node(uid)
    graph.put(Node(NodeKey(cluster, uid), made.target, made.kind, (), False, frozenset()))
    (packed,) = graph.of_type(PODS.gvr)
    assert unpacked(packed) == NodeKey(cluster, uid)


def test_references_are_written_as_they_were_read() -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}
    assert OwnerRef.of(raw).raw() == raw
    assert OwnerRef.of({}).raw() == {"apiVersion": "", "kind": "", "name": "", "uid": ""}
