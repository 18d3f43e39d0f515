from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.kit.invariant import InvariantError
from skerry.runtime.index import Index, Key, MutatedObject, by_namespace, key_of


def config_map(name: str, namespace: str = "default", **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def test_a_key_names_the_logical_cluster_where_there_is_one() -> None:
    obj = config_map("a")
    assert str(key_of(obj)) == "default/a"
    obj["metadata"]["annotations"] = {"kcp.io/cluster": "root"}
    assert str(key_of(obj)) == "root|default/a"
    assert str(Key("", "", "node")) == "node"


def test_objects_of_the_same_names_share_the_texts_of_their_keys() -> None:
    texts = (
        '{"metadata":{"name":"map-1","namespace":"shop","annotations":{"kcp.io/cluster":"c1"}}}',
        '{"metadata":{"name":"map-1","namespace":"shop","annotations":{"kcp.io/cluster":"c1"}}}',
    )
    one, other = (key_of(json.loads(text)) for text in texts)
    assert all(mine is theirs for mine, theirs in zip(one, other, strict=True))


def test_an_index_added_late_knows_what_is_there() -> None:
    index = Index()
    index.put(key_of(config_map("a")), config_map("a"))
    index.add_index("namespace", by_namespace)
    assert [obj["metadata"]["name"] for obj in index.by("namespace", ("", "default"))] == ["a"]
    assert list(index.values("namespace")) == [("", "default")]
    index.add_index("namespace", by_namespace)
    with pytest.raises(InvariantError):
        index.add_index("namespace", lambda _: ())


def test_a_reader_that_changes_an_object_is_found() -> None:
    index = Index(mutation_check=True)
    key = Key("", "default", "a")
    index.put(key, config_map("a"))
    index.check_unchanged()
    held = index.get(key)
    assert held is not None
    held["metadata"]["labels"]["mine"] = "now"
    with pytest.raises(MutatedObject, match="default/a"):
        index.check_unchanged()
    with pytest.raises(MutatedObject):
        index.remove(key)


def test_a_packed_index_hands_out_fresh_objects() -> None:
    index = Index(packed=True)
    key = Key("", "default", "a")
    index.put(key, config_map("a"))
    first = index.get(key)
    assert first is not None
    first["metadata"]["name"] = "changed"
    assert index.get(key) == config_map("a")


names = st.sampled_from("abcdef")
changes = st.lists(
    st.tuples(names, st.sampled_from(["x", "y"]), st.dictionaries(names, names) | st.none()),
    max_size=40,
)


@settings(max_examples=100)
@given(changes, st.booleans())
def test_indexes_equal_a_scan_of_everything(
    steps: list[tuple[str, str, dict[str, str] | None]], packed: bool
) -> None:
    index = Index(packed=packed, mutation_check=True)
    index.add_index("labels", lambda obj: obj["metadata"]["labels"].items())
    index.add_index("namespace", by_namespace)
    plain: dict[Key, Object] = {}
    for name, namespace, labels in steps:
        key = Key("", namespace, name)
        if labels is None:
            assert index.remove(key) == plain.pop(key, None)
        else:
            obj = config_map(name, namespace, **labels)
            assert index.put(key, obj) == plain.get(key)
            plain[key] = obj
    assert {key: index.get(key) for key in index} == plain
    assert len(index) == len(plain)
    for pair in {pair for obj in plain.values() for pair in obj["metadata"]["labels"].items()}:
        wanted = {key for key, obj in plain.items() if pair in obj["metadata"]["labels"].items()}
        found = index.keys_by("labels", pair)
        assert set(found) == wanted
        assert index.first("labels", pair) == (index.get(found[0]) if found else None)
    assert set(index.values("namespace")) == {("", key.namespace) for key in plain}
    index.check_unchanged()
