"""Field sets obey the laws of sets, and look like Kubernetes' FieldsV1."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.logic.machinery.apply.fieldset import (
    FieldSet,
    Path,
    canonical,
    difference,
    has,
    intersection,
    key_element,
    path_text,
    paths,
    recursive_difference,
    union,
    value_element,
)

ELEMENTS = st.sampled_from(
    [
        "f:a",
        "f:b",
        "f:spec",
        'k:{"name":"x"}',
        'k:{"port":443}',
        'k:{"port":80}',
        "v:1",
        'v:"y"',
        "i:2",
    ]
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
PATH_SETS = st.frozensets(PATHS, max_size=7)


def insert(fields: FieldSet, path: Path) -> FieldSet:
    added: FieldSet = {}
    for element in reversed(path):
        added = {element: added}
    return union(fields, added)


def set_of(members: frozenset[Path]) -> FieldSet:
    fields: FieldSet = {}
    for path in members:
        fields = insert(fields, path)
    return fields


def members(fields: FieldSet) -> frozenset[Path]:
    return frozenset(paths(fields))


@settings(max_examples=100, deadline=None)
@given(PATH_SETS)
def test_a_set_holds_exactly_the_paths_put_into_it(wanted: frozenset[Path]) -> None:
    fields = set_of(wanted)
    assert members(fields) == wanted
    assert all(has(fields, path) for path in wanted)
    assert not has(fields, ())


@settings(max_examples=100, deadline=None)
@given(PATH_SETS)
def test_a_set_survives_the_wire_unchanged(wanted: frozenset[Path]) -> None:
    fields = set_of(wanted)
    wire = orjson.dumps(fields)
    assert orjson.dumps(canonical(orjson.loads(wire))) == wire


@settings(max_examples=50, deadline=None)
@given(
    st.lists(PATHS, max_size=7).flatmap(
        lambda chosen: st.tuples(st.just(chosen), st.permutations(chosen))
    )
)
def test_the_encoding_depends_on_the_members_alone(orders: tuple[list[Path], list[Path]]) -> None:
    one, other = ({}, {})  # type: FieldSet, FieldSet
    for path in orders[0]:
        one = insert(one, path)
    for path in orders[1]:
        other = insert(other, path)
    assert orjson.dumps(one) == orjson.dumps(other)


Operation = Callable[[FieldSet, FieldSet], FieldSet]


@pytest.mark.parametrize(
    ("operation", "law"),
    [
        (union, frozenset.union),
        (difference, frozenset.difference),
        (intersection, frozenset.intersection),
    ],
)
@settings(max_examples=150, deadline=None)
@given(left=PATH_SETS, right=PATH_SETS)
def test_operations_are_those_of_sets_of_paths(
    operation: Operation, law: Any, left: frozenset[Path], right: frozenset[Path]
) -> None:
    ours, theirs = set_of(left), set_of(right)
    before = copy.deepcopy((ours, theirs))
    result = operation(ours, theirs)
    assert members(result) == law(left, right)
    assert orjson.dumps(result) == orjson.dumps(set_of(law(left, right))), "not canonical"
    assert (ours, theirs) == before, "an input was changed"


@settings(max_examples=100, deadline=None)
@given(PATH_SETS, PATH_SETS)
def test_recursive_difference_takes_what_is_below_along(
    left: frozenset[Path], right: frozenset[Path]
) -> None:
    expected = frozenset(
        path for path in left if not any(path[: len(gone)] == gone for gone in right)
    )
    result = recursive_difference(set_of(left), set_of(right))
    assert orjson.dumps(result) == orjson.dumps(set_of(expected))


@settings(max_examples=50, deadline=None)
@given(PATH_SETS)
def test_an_operation_that_changes_nothing_returns_its_input(wanted: frozenset[Path]) -> None:
    fields = set_of(wanted)
    assert union(fields, {}) is fields
    assert union(fields, fields) == fields
    assert difference(fields, {}) is fields
    assert recursive_difference(fields, {}) is fields


def test_elements_come_in_kubernetes_order() -> None:
    raw: FieldSet = {
        "i:1": {}, "v:true": {}, 'v:"b"': {}, "v:10": {}, "v:9": {}, 'k:{"port":443}': {},
        'k:{"port":80}': {}, 'k:{"name":"z"}': {}, "f:b": {}, "f:a": {}, "f:B": {},
    }  # fmt: skip
    assert list(canonical(raw)) == [
        "f:B", "f:a", "f:b", 'k:{"name":"z"}', 'k:{"port":80}', 'k:{"port":443}', "v:9", "v:10",
        'v:"b"', "v:true", "i:1",
    ]  # fmt: skip


def test_what_others_wrote_is_brought_into_our_form() -> None:
    raw: FieldSet = {
        "f:spec": {"f:b": {}, ".": {}, "f:a": {".": {}}},
        'k:{ "protocol": "TCP", "containerPort": 80.0 }': {},
        "x:future": {"f:a": {}},
    }
    assert canonical(raw) == {
        "f:spec": {".": {}, "f:a": {}, "f:b": {}},
        'k:{"containerPort":80,"protocol":"TCP"}': {},
    }
    assert list(canonical(raw)["f:spec"]) == [".", "f:a", "f:b"]


def test_two_spellings_of_one_element_are_one() -> None:
    raw: FieldSet = {'k:{"a":1}': {"f:x": {}}, 'k:{"a": 1}': {"f:y": {}}}
    assert canonical(raw) == {'k:{"a":1}': {"f:x": {}, "f:y": {}}}


@pytest.mark.parametrize(
    "raw",
    [[], {"f": {}}, {"spec": {}}, {"i:x": {}}, {"v:{": {}}, {"k:[]": {}}, {"k:x": {}}, {"f:a": 1}],
)
def test_what_is_no_field_set_is_refused(raw: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has a text of its own
        canonical(raw)


def test_endless_nesting_is_refused() -> None:
    raw: FieldSet = {}
    for _ in range(300):
        raw = {"f:a": raw}
    with pytest.raises(ValueError, match="nested deeper"):
        canonical(raw)


def test_paths_read_as_conflicts_show_them() -> None:
    path = (
        "f:spec",
        "f:containers",
        'k:{"name":"web"}',
        "f:ports",
        'k:{"containerPort":80,"protocol":"TCP"}',
    )
    assert path_text(path) == (
        '.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]'
    )
    assert path_text(("f:metadata", "f:finalizers", 'v:"x"')) == '.metadata.finalizers[="x"]'
    assert path_text(("i:3",)) == "[3]"


def test_keys_are_written_as_go_writes_them() -> None:
    assert key_element([("name", "a<b>&c")]) == 'k:{"name":"a\\u003cb\\u003e\\u0026c"}'
    assert key_element([("name", "ü\u2028")]) == 'k:{"name":"ü\\u2028"}'
    assert value_element(True) == "v:true"
    assert value_element(1) == "v:1"
    assert value_element(1.5) == "v:1.5"
    assert value_element([1, "<"]) == 'v:[1,"\\u003c"]'
    assert value_element(None) == "v:null"
