"""Stored bytes: the object comes back whole, with its revision where it belongs."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from skerry.server.codec import decode, encode, metadata_of, wire

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
metadata = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=10)},
    optional={
        "namespace": st.text(max_size=5),
        "labels": st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
        "uid": st.text(max_size=5),
        "resourceVersion": st.text(max_size=5),
        "annotations": st.just({"trap": '"metadata":{"resourceVersion":"7"}'}),
    },
)
# Groups and kinds whose text looks like what the codec searches for.
names = st.sampled_from(["v1", "apps/v1", '"metadata":{', "Pod"])
objects = st.builds(
    lambda api, kind, meta, rest: {**rest, "apiVersion": api, "kind": kind, "metadata": meta},
    names,
    names,
    metadata,
    st.dictionaries(st.sampled_from(["spec", "status", "data", "zzz"]), values, max_size=3),
)


@given(objects, st.integers(1, 2**62))
def test_an_object_comes_back_at_its_revision(obj: dict[str, Any], revision: int) -> None:
    wanted = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
    stored = encode(obj)
    assert decode(stored, revision) == wanted
    assert orjson.loads(wire(stored, revision)) == wanted


@given(objects)
def test_the_bytes_do_not_depend_on_the_revision_or_the_order_of_the_head(
    obj: dict[str, Any],
) -> None:
    turned = {key: obj[key] for key in sorted(obj)}
    turned = {**turned, "metadata": {**obj["metadata"], "resourceVersion": "other"}}
    head = ("apiVersion", "kind", "metadata")
    same_order = {k: turned[k] for k in [*head, *(k for k in obj if k not in head)]}
    assert encode(same_order) == encode(obj)


@given(objects)
def test_metadata_can_be_had_without_the_rest(obj: dict[str, Any]) -> None:
    found = metadata_of(encode(obj))
    assert found.name == obj["metadata"]["name"]
    assert found.namespace == obj["metadata"].get("namespace", "")
    assert (found.labels or {}) == obj["metadata"].get("labels", {})
