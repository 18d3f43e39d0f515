"""What placements select and where slices send it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import edge_placement_ref
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.tables.flow import Dataflow
from skerry.logic.fleet.translation.selected import (
    CHOSEN,
    NAMED,
    Malformed,
    UpsyncSet,
    deciding,
    derive_selected,
    placement_row,
    reference,
    selected,
    sends,
    what_of,
)
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


def test_a_malformed_selector_is_reported_by_its_path() -> None:
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


# -- the table ---------------------------------------------------------------------------------

GO = {"matchLabels": {"go": "yes"}}


@pytest.mark.parametrize(
    ("item", "labels", "why"),
    [
        (namespace_ref("n"), {"go": "yes"}, CHOSEN | NAMED),
        (namespace_ref("m"), {"go": "yes"}, CHOSEN),
        (namespace_ref("n"), {}, NAMED),
        (namespace_ref("m"), {}, None),
        (ROLE, {"go": "yes"}, None),
    ],
)
def test_a_namespace_is_chosen_by_labels_or_named_or_both(
    item: ObjectRef, labels: dict[str, str], why: int | None
) -> None:
    names = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
    what = _what(namespaceSelector=GO, nonNamespacedObjects=[names])
    assert selected(what, item, labels) == why


@pytest.mark.parametrize(
    ("item", "candidate", "why"),
    [
        (ObjectRef("", "", "configmaps", "n", "x"), namespace_ref("n"), CHOSEN),
        (namespace_ref("n"), namespace_ref("n"), CHOSEN),
        (ROLE, ROLE, NAMED),
    ],
)
def test_an_object_is_sent_with_its_namespace_and_a_cluster_scoped_one_by_name(
    item: ObjectRef, candidate: ObjectRef, why: int
) -> None:
    assert deciding(item) == (candidate, why)


def test_to_name_a_namespace_sends_neither_it_nor_what_is_in_it() -> None:
    names = {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["n"]}
    what = _what(namespaceSelector=GO, nonNamespacedObjects=[names, _entry(resourceNames=["*"])])
    inside = ObjectRef("", "", "configmaps", "n", "x")
    assert selected(what, namespace_ref("n"), {}) == NAMED
    assert not sends(what, namespace_ref("n"), {})
    assert not sends(what, inside, {})
    assert sends(what, namespace_ref("n"), {"go": "yes"})
    assert sends(what, inside, {"go": "yes"})
    assert sends(what, ROLE, {})
    assert not sends(Malformed("wrong"), ROLE, {})


def test_of_a_malformed_placement_nothing_is_known_to_be_selected() -> None:
    wrong = {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}
    row = placement_row({"spec": {"namespaceSelector": wrong}})
    assert isinstance(row, Malformed)
    assert "namespaceSelector" in row.message
    assert selected(row, namespace_ref("n"), {}) is None


ROWS = st.sampled_from(
    [
        Malformed("wrong"),
        what_of({"spec": {"namespaceSelector": GO}}),
        what_of({"spec": {"namespaceSelector": {"matchLabels": {"go": "never"}}}}),
        what_of({"spec": {"nonNamespacedObjects": [_entry(resourceNames=["*"])]}}),
    ]
)
PLACEMENTS = st.sampled_from([edge_placement_ref(c, n) for c in ("one", "two") for n in "pq"])
KEYS = st.tuples(
    st.sampled_from(["one", "two"]), st.sampled_from([namespace_ref("n"), namespace_ref("m"), ROLE])
)
LABELS = st.sampled_from([{}, {"go": "yes"}, {"go": "no"}])
CHANGES = st.one_of(
    st.tuples(st.just("placement"), PLACEMENTS, ROWS | st.none()),
    st.tuples(st.just("candidate"), KEYS, LABELS | st.none()),
)


@given(st.lists(CHANGES, max_size=25))
def test_after_every_change_the_table_is_what_the_inputs_alone_give(changes: list[Any]) -> None:
    flow = Dataflow()
    placements = flow.table("placements")
    candidates = flow.relation("candidates")
    table = derive_selected(flow, placements, candidates)
    for name, key, row in changes:
        source = placements if name == "placement" else candidates
        if row is None:
            source.drop(key)
        else:
            source.put(key, row)
        before = dict(table.items())
        settled = flow.settle()
        found = dict(table.items())
        assert found == reference(dict(placements.items()), dict(candidates.items()))
        changed = {change.key for change in settled.changes(table)}
        assert changed == {
            each for each in before.keys() | found.keys() if before.get(each) != found.get(each)
        }
