"""Keys of the store: an object's path and the prefixes that select many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.keys import ObjectKey, type_prefix

_segment = st.text("abcz09.-", min_size=1).filter(lambda text: text not in ("-", "core"))
_maybe = _segment | st.just("")
_keys = st.builds(ObjectKey, _maybe, _segment, _segment, _maybe, _segment)


@given(_keys)
def test_a_path_names_its_object_and_no_other(key: ObjectKey) -> None:
    assert ObjectKey.parse(key.path()) == key


@given(_keys)
def test_an_object_is_below_every_prefix_that_means_it(key: ObjectKey) -> None:
    path = key.path()
    assert path.startswith(type_prefix(key.group, key.resource))
    assert path.startswith(type_prefix(key.group, key.resource, key.cluster))
    assert path.startswith(
        type_prefix(key.group, key.resource, key.cluster, key.namespace, scoped=True)
    )


def test_cluster_scoped_objects_are_not_in_a_namespace() -> None:
    everywhere = type_prefix("", "pods", "root")
    unscoped = type_prefix("", "pods", "root", scoped=True)
    assert everywhere == "/core/pods/root/"
    assert unscoped == "/core/pods/root/-/"
    assert not ObjectKey("", "pods", "root", "ns", "a").path().startswith(unscoped)


def test_clusters_whose_names_begin_alike_do_not_share_a_prefix() -> None:
    other = ObjectKey("apps", "deployments", "root2", "ns", "web").path()
    assert not other.startswith(type_prefix("apps", "deployments", "root"))


def test_a_name_may_have_slashes() -> None:
    assert ObjectKey.parse("/core/things/root/-/a/b").name == "a/b"
