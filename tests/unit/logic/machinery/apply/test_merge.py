"""An applied configuration merged into an object, fields taken out, configurations refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.schema import Schema
from skerry.logic.machinery.apply.check import problem_text, problems
from skerry.logic.machinery.apply.merge import has_null, merged, without, without_nulls
from skerry.logic.machinery.apply.prune import with_declared
from skerry.logic.machinery.apply.typed import fields_of
from tests.kit.machinery.kinds import (
    deployment,
    deployment_schema,
    pod_schema,
    service_schema,
)


def merged_names(live: list[str], applied: list[str]) -> list[str]:
    """Return the order containers come in after an apply."""
    spec = merged(
        {"spec": {"containers": [{"name": name, "image": "x"} for name in live]}},
        {"spec": {"containers": [{"name": name} for name in applied]}},
        pod_schema(),
    )["spec"]
    return [container["name"] for container in spec["containers"]]


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ("ab", "ab", "ab"),
        ("ab", "ba", "ba"),
        ("abc", "b", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "dc", "abdc"),
        ("axbyc", "ba", "xbyca"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
    ],
)
def test_items_keep_the_live_order_as_far_as_the_applied_one_allows(
    live: str, applied: str, expected: str
) -> None:
    assert "".join(merged_names(list(live), list(applied))) == expected


LETTERS = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=6)


@settings(max_examples=60, deadline=None)
@given(LETTERS, LETTERS)
def test_merged_lists_hold_both_in_the_applied_order(live: list[str], applied: list[str]) -> None:
    found = merged_names(live, applied)
    assert sorted(found) == sorted({*live, *applied})
    assert [name for name in found if name in applied] == applied
    only_live = [name for name in live if name not in applied]
    assert [name for name in found if name in only_live] == only_live


def test_a_port_without_a_protocol_meets_its_live_self() -> None:
    live = {"spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}]}}
    applied = {"spec": {"ports": [{"port": 80, "name": "http"}]}}
    assert merged(live, applied, service_schema()) == {
        "spec": {"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000, "name": "http"}]}
    }


def test_sets_unite_and_atomic_lists_are_replaced() -> None:
    live = {"metadata": {"finalizers": ["a"]}, "spec": {"tolerations": [{"key": "a"}]}}
    applied = {"metadata": {"finalizers": ["b"]}, "spec": {"tolerations": [{"key": "b"}]}}
    assert merged(live, applied, pod_schema()) == {
        "metadata": {"finalizers": ["a", "b"]},
        "spec": {"tolerations": [{"key": "b"}]},
    }


def test_live_duplicates_make_room_for_what_is_applied() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]
    live = {"spec": {"containers": [{"name": "c", "env": env}]}}
    applied = {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "3"}]}]}}
    result = merged(live, applied, pod_schema())
    assert result["spec"]["containers"][0]["env"] == [{"name": "A", "value": "3"}, {"name": "B"}]


def test_live_duplicates_nobody_applies_stay() -> None:
    live = {"metadata": {"finalizers": ["a", "a", "b"]}}
    applied = {"metadata": {"finalizers": ["c"]}}
    result = merged(live, applied, pod_schema())
    assert result["metadata"]["finalizers"] == ["a", "a", "b", "c"]


@pytest.mark.parametrize(
    ("live", "applied"),
    [
        ({"a": {"b": 1}}, {"a": None}),
        ({"a": {"b": 1}}, {"a": {}}),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}),
        ({"a": 1}, {"a": 1.0}),
    ],
)
def test_what_changes_nothing_gives_back_the_live_object_itself(
    live: Object, applied: Object
) -> None:
    assert merged(live, applied, None) is live


def test_true_is_a_change_from_one() -> None:
    assert merged({"a": 1}, {"a": True}, None)["a"] is True


def test_merging_an_object_into_itself_is_the_object_itself() -> None:
    live = deployment()
    assert merged(live, copy.deepcopy(live), deployment_schema()) is live


def test_nulls_go_where_they_mean_absence_and_stay_where_they_are_values() -> None:
    raw = {
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "free": {"type": "string", "nullable": True},
            "list": {"type": "array", "items": {"properties": {"x": {"type": "string"}}}},
        },
    }
    value = {"plain": None, "free": None, "unknown": None, "list": [{"x": None}]}
    assert has_null(value)
    assert without_nulls(value, Schema(raw)) == {"free": None, "unknown": None, "list": [{}]}
    assert not has_null({"a": [{"b": 0}]})


def test_taking_out_every_field_leaves_nothing() -> None:
    obj = deployment()
    fields = with_declared(fields_of(obj, deployment_schema()), deployment_schema())
    assert without(obj, fields, deployment_schema()) is None


def test_taking_out_one_item_leaves_its_neighbours() -> None:
    obj = deployment()
    path: Any = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {}}}}}}
    result = without(obj, path, deployment_schema())
    names = [item["name"] for item in result["spec"]["template"]["spec"]["containers"]]
    assert names == ["sidecar"]
    assert obj == deployment()


def test_taking_out_what_is_not_there_is_no_change() -> None:
    obj = deployment()
    path: Any = {"f:spec": {"f:paused": {}}}
    assert without(obj, path, deployment_schema()) is obj


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"repicas": 1}, ".spec.repicas: field not declared in schema"),
        ({"replicas": "x"}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"replicas": True}, ".spec.replicas: expected numeric (int or float), got bool"),
        ({"paused": "x"}, ".spec.paused: expected boolean, got &{x}"),
        ({"template": []}, ".spec.template: expected map, got &{[]}"),
        (
            {"template": {"spec": {"nodeName": 5}}},
            ".spec.template.spec.nodeName: expected string, got &value.valueUnstructured{Value:5}",
        ),
        (
            {"template": {"spec": {"containers": {"a": 1}}}},
            ".spec.template.spec.containers: expected list, got &{map[a:1]}",
        ),
        (
            {"template": {"spec": {"containers": [{"image": "x"}]}}},
            (
                ".spec.template.spec.containers: element 0: "
                "associative list with keys has an element "
                'that omits key field "name" (and doesn\'t have default value)'
            ),
        ),
        (
            {"template": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}},
            '.spec.template.spec.containers: duplicate entries for key [name="a"]',
        ),
        (
            {"template": {"spec": {"containers": [{"name": "a", "x": 1}]}}},
            '.spec.template.spec.containers[name="a"].x: field not declared in schema',
        ),
        (
            {"template": {"spec": {"tolerations": [{"key": 1}]}}},
            (
                ".spec.template.spec.tolerations[0].key: "
                "expected string, got &value.valueUnstructured{Value:1}"
            ),
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": {}}}},
            ".spec.strategy.rollingUpdate.maxSurge: expected any scalar, got &{map[]}",
        ),
    ],
)
def test_what_the_schema_does_not_know_cannot_be_applied(spec: Object, expected: str) -> None:
    assert problems({"spec": spec}, deployment_schema()) == [expected]


def test_a_real_object_has_no_problems() -> None:
    assert problems(deployment(), deployment_schema()) == []
    assert problems({"anything": 1}, None) == []


def test_preserved_unknown_fields_may_be_applied_at_any_depth() -> None:
    raw = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"known": {"type": "object", "properties": {"a": {}}}},
            }
        },
    }
    applied = {"spec": {"other": 1, "known": {"b": 1}}}
    assert problems(applied, Schema(raw)) == []
    assert problems({"other": 1}, Schema(raw)) == [".other: field not declared in schema"]


def test_several_problems_are_one_text() -> None:
    found = problems({"spec": {"a": 1, "b": 1}}, deployment_schema())
    assert problem_text(found) == (
        "errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema"
    )
