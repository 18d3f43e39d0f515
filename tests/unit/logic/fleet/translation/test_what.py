"""What placements select and where slices send it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import Mailbox, location_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.what import UpsyncSet, what_of, where_of
from skerry.logic.machinery.selectors import SelectorError

ROLE = ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "reader")


def _what(**spec: Any) -> Any:
    return what_of({"spec": spec})


def _entry(**more: Any) -> dict[str, Any]:
    return {"apiGroup": ROLE.group, "resources": ["clusterroles"], **more}


def test_an_absent_namespace_selector_means_every_namespace() -> None:
    assert _what().namespaces.matches({})
    assert _what(namespaceSelector={}).namespaces.matches({"a": "b"})
    chosen = _what(namespaceSelector={"matchLabels": {"a": "b"}}).namespaces
    assert chosen.matches({"a": "b"})
    assert not chosen.matches({})


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        (_entry(resourceNames=["reader"]), True),
        (_entry(resourceNames=["other"]), False),
        (_entry(resourceNames=["*"]), True),
        (_entry(resourceNames=["*", "other"]), False),
        (_entry(), False),
        (_entry(resources=["*"], resourceNames=["*"]), True),
        (_entry(resources=["nodes"], resourceNames=["*"]), False),
        (_entry(apiGroup="", resourceNames=["*"]), False),
        (_entry(labelSelectors=[{}]), True),
        (_entry(labelSelectors=[{"matchLabels": {"go": "yes"}}]), True),
        (_entry(labelSelectors=[{"matchLabels": {"go": "no"}}]), False),
        (_entry(resourceNames=["x"], labelSelectors=[{"matchLabels": {"go": "yes"}}]), True),
    ],
)
def test_a_cluster_scoped_object_is_meant_by_name_or_by_label(
    entry: dict[str, Any], meant: bool
) -> None:
    assert _what(nonNamespacedObjects=[entry]).names(ROLE, {"go": "yes"}) is meant


def test_a_malformed_selector_is_told_by_its_path() -> None:
    wrong = {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}
    with pytest.raises(SelectorError, match=r"spec\.namespaceSelector"):
        _what(namespaceSelector=wrong)
    with pytest.raises(
        SelectorError, match=r"spec\.nonNamespacedObjects\[0\]\.labelSelectors\[0\]"
    ):
        _what(nonNamespacedObjects=[_entry(labelSelectors=[wrong])])


def test_an_upsync_set_covers_types_and_is_written_as_it_was() -> None:
    raw = {"apiGroup": "g", "resources": ["b", "a"], "namespaces": ["n"]}
    (found,) = _what(upsync=[raw]).upsync
    assert found.written() == raw
    assert found.covers("g", "a")
    assert not found.covers("", "a")
    assert UpsyncSet("g", ("*",), (), ()).covers("g", "anything")


def _destination(location: str, uid: str) -> dict[str, str]:
    return {
        "cluster": "imw",
        "locationName": location,
        "syncTargetName": "t",
        "syncTargetUID": uid,
    }


def test_all_slices_of_a_placement_count_and_one_mailbox_may_have_several_locations() -> None:
    slices = [
        {"destinations": [_destination("b", "1"), _destination("c", "2")]},
        {"destinations": [_destination("a", "1"), _destination("b", "1")]},
        {},
    ]
    assert where_of(slices) == {
        Mailbox("imw", "1"): (location_ref("imw", "a"), location_ref("imw", "b")),
        Mailbox("imw", "2"): (location_ref("imw", "c"),),
    }
