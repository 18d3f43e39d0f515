"""Lists that are sets or maps: no member, and no key, stands twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.schema import Schema
from skerry.logic.machinery.schema.findings import Finding
from skerry.logic.machinery.schema.lists import (
    by_key,
    identity,
    key_of,
    repetitions,
    uniqueness_rule,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


def map_of(*keys: str) -> Schema:
    return Schema(
        {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(keys),
        }
    )


def found(schema: Schema, value: list[Any]) -> list[str]:
    findings: list[Finding] = []
    uniqueness_rule(schema)(value, (None, "rows"), findings)
    return [finding.error.field for finding in findings]


@given(JSON, JSON)
def test_values_have_one_identity_exactly_when_they_are_equal(one: Any, other: Any) -> None:
    # Python takes True for 1; JSON does not.
    same = repr(one) == repr(other) or (one == other and _kinds(one) == _kinds(other))
    assert (identity(one) == identity(other)) is same


def _kinds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kinds(inner) for key, inner in value.items()}
    return list(map(_kinds, value)) if isinstance(value, list) else type(value)


def test_every_place_of_a_repetition_is_found_and_the_first_is_none() -> None:
    assert repetitions([1, True, 1, {"a": 1}, {"a": 1}, 1]) == {2, 4, 5}


@pytest.mark.parametrize(
    ("value", "fields"),
    [([], []), ([1, 2], []), ([1, 2, 1, 1], ["rows[2]"]), ([{"a": 1}, {"a": 1}], ["rows[1]"])],
)
def test_a_set_reports_the_first_repetition_of_each_value(
    value: list[Any], fields: list[str]
) -> None:
    assert found(Schema({"type": "array", "x-kubernetes-list-type": "set"}), value) == fields


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ([{"k": 1, "v": 1}, {"k": 2, "v": 1}], []),
        ([{"k": 1, "v": 1}, {"k": 1, "v": 2}], ["rows[1]"]),
        ([{"v": 1}, {"v": 2}], ["rows[1]"]),
        ([{"k": [1]}, {"k": [1]}], ["rows[1]"]),
        ([{"k": 1}, 7, {"k": 1}], ["rows[1]"]),
    ],
)
def test_a_map_reports_a_key_that_repeats_and_what_is_no_object(
    value: list[Any], fields: list[str]
) -> None:
    assert found(map_of("k"), value) == fields


def test_several_keys_count_together() -> None:
    schema = map_of("port", "protocol")
    rows = [
        {"port": 1, "protocol": "TCP"},
        {"port": 1, "protocol": "UDP"},
        {"port": 1, "protocol": "TCP"},
    ]
    assert found(schema, rows) == ["rows[2]"]


def test_members_are_found_by_key_the_first_of_equals() -> None:
    rows = [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": 2}]
    assert list(by_key(rows, ("k",)).values()) == [rows[0], rows[2]]
    assert by_key(None, ("k",)) == {}
    assert key_of("x", ("k",)) == {}
