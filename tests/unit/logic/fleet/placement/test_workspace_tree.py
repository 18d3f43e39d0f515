"""Paths follow from Workspace objects, in whatever order those come and go."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kcp.resources import workspace_ref
from skerry.logic.fleet.placement.workspace_tree import WorkspaceTree
from skerry.logic.machinery.workspaces.names import home_cluster_name

_clusters = st.sampled_from(("root", "a", "b", "c"))
_names = st.sampled_from(("x", "y"))
_labels = st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=1)
_deeds = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _clusters, _names, st.sampled_from("abc"), _labels),
        st.tuples(st.just("remove"), _clusters, _names),
    ),
    max_size=15,
)


@given(_deeds)
def test_positions_are_those_of_a_tree_made_afresh_and_every_change_is_reported(deeds: Any) -> None:
    tree, objects = WorkspaceTree(), {}
    for kind, parent, name, *rest in deeds:
        before = {cluster: tree.position(cluster) for cluster in "abc"}
        ref = workspace_ref(parent, name)
        if kind == "put":
            changed, objects[ref] = tree.put(ref, *rest), tuple(rest)
        else:
            changed = tree.remove(ref)
            objects.pop(ref, None)
        for cluster, position in before.items():
            assert tree.position(cluster) == position or cluster in changed
        afresh = WorkspaceTree()
        for where in sorted(objects, reverse=True):
            afresh.put(where, *objects[where])
        assert all(tree.position(c) == afresh.position(c) for c in "abc")


def test_a_child_known_before_its_parent_gets_its_path_with_it() -> None:
    tree = WorkspaceTree()
    tree.put(workspace_ref("org", "team"), "team", {"tier": "gold"})
    assert tree.path("team") == ""
    assert tree.put(workspace_ref("root", "org"), "org", {}) == {"org", "team"}
    assert tree.position("team") == ("root:org:team", "root:org", {"tier": "gold"})
    assert tree.remove(workspace_ref("root", "org")) == {"org", "team"}
    assert tree.path("team") == ""


def test_a_cluster_claimed_twice_has_no_path_and_neither_has_what_is_below() -> None:
    tree = WorkspaceTree()
    tree.put(workspace_ref("root", "org"), "org", {})
    tree.put(workspace_ref("org", "team"), "team", {})
    tree.put(workspace_ref("root", "mallory"), "org", {})
    assert tree.path("org") == tree.path("team") == ""
    tree.remove(workspace_ref("root", "mallory"))
    assert tree.path("team") == "root:org:team"


def test_workspaces_that_contain_each_other_have_no_path() -> None:
    tree = WorkspaceTree()
    tree.put(workspace_ref("a", "b"), "b", {})
    tree.put(workspace_ref("b", "a"), "a", {})
    assert tree.path("a") == tree.path("b") == ""


def test_a_home_is_known_by_its_users_name() -> None:
    tree = WorkspaceTree()
    home = home_cluster_name("alice")
    tree.put(workspace_ref(home, "lab"), "lab", {})
    assert tree.know_home("user:alice:lab") == {home, "lab"}
    assert tree.path("lab") == "user:alice:lab"
    assert tree.know_home("user:alice") == set()
    assert tree.know_home("root:alice") == set()
