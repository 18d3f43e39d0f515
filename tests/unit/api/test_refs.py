"""The one identity of an object, and its text in records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref

words = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
local_refs = st.builds(
    ObjectRef, st.just(""), words | st.just(""), words, words | st.just(""), words
)

DEPLOYMENTS = GroupResource("apps", "deployments")
WEB = {"metadata": {"name": "web", "namespace": "shop", "annotations": {"kcp.io/cluster": "c1"}}}


@given(local_refs)
def test_the_text_of_a_reference_reads_back(ref: ObjectRef) -> None:
    assert ObjectRef.parse(ref.text) == ref


def test_an_object_of_a_hub_is_known_by_its_cluster_and_locally_without() -> None:
    assert ObjectRef.of(DEPLOYMENTS, WEB) == ObjectRef("c1", "apps", "deployments", "shop", "web")
    assert ObjectRef.local(DEPLOYMENTS, WEB) == ObjectRef.of(DEPLOYMENTS, WEB).at("")


def test_an_object_without_annotations_is_in_the_cluster_talked_about() -> None:
    nodes = GroupResource("", "nodes")
    assert ObjectRef.of(nodes, {"metadata": {"name": "n"}}) == ObjectRef("", "", "nodes", "", "n")


def test_messages_name_an_object_without_its_cluster() -> None:
    ref = ObjectRef.of(DEPLOYMENTS, WEB)
    assert str(ref) == "deployments.apps shop/web"
    assert ref.qualified_name == "c1|web"
    assert ref.at("").qualified_name == "web"
    assert str(namespace_ref("shop", "c1")) == "namespaces shop"
