"""Pruning and defaulting of structural schemas."""

from __future__ import annotations

from typing import Any

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import apply_defaults, prune, unknown_fields
from tests.kit.machinery.schemas import CRON_TAB, builtin

CRON = Schema(CRON_TAB)


def pruned(raw: dict[str, Any], value: Any) -> Any:
    prune(Schema(raw), value)
    return value


def defaulted(raw: dict[str, Any], value: Any) -> Any:
    apply_defaults(Schema(raw), value)
    return value


def test_unknown_fields_go_and_their_paths_are_reported() -> None:
    value = {"spec": {"foo": 1, "env": [{"name": "a", "bar": 2}], "free": {"any": {"x": 1}}}}
    paths = prune(CRON, value)
    assert paths == ["spec.env[0].bar", "spec.foo"]
    assert value == {"spec": {"env": [{"name": "a"}], "free": {"any": {"x": 1}}}}
    assert unknown_fields(paths) == [
        'unknown field "spec.env[0].bar"',
        'unknown field "spec.foo"',
    ]


def test_declared_fields_below_preserved_ones_are_still_pruned() -> None:
    raw = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    assert pruned(raw, {"known": {"a": "1", "b": 2}, "other": {"b": 2}}) == {
        "known": {"a": "1"},
        "other": {"b": 2},
    }


def test_an_embedded_resource_keeps_its_type_and_metadata() -> None:
    raw = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"x": 1}, "spec": {"a": 1}, "b": 1}
    assert pruned(raw, value) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"x": 1},
        "spec": {},
    }


def test_values_of_free_maps_are_pruned_by_their_own_schema() -> None:
    raw = {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    schema = Schema(raw)
    value = {"k": {"a": "1", "b": 2}}
    assert prune(schema, value) == ["k.b"]
    assert value == {"k": {"a": "1"}}


def test_raw_types_of_built_in_kinds_keep_everything() -> None:
    pod = builtin().get("io.k8s.api.core.v1.Pod")
    value = {
        "metadata": {"managedFields": [{"fieldsV1": {"f:spec": {"f:x": {}}}}]},
        "spec": {"containers": [{"name": "a", "imagee": "b"}]},
    }
    assert prune(pod, value) == ["spec.containers[0].imagee"]
    assert value["metadata"] == {"managedFields": [{"fieldsV1": {"f:spec": {"f:x": {}}}}]}


def test_recursive_definitions_are_pruned_to_any_depth() -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    props = builtin().get(name)
    value = {"properties": {"a": {"properties": {"b": {"tpye": "string", "type": "string"}}}}}
    assert prune(props, value) == ["properties.a.properties.b.tpye"]


def test_defaults_reach_nested_objects_and_items() -> None:
    value: dict[str, Any] = {"spec": {"env": [{"name": "a"}]}}
    apply_defaults(CRON, value)
    assert value["spec"]["replicas"] == 1
    assert value["spec"]["env"] == [{"name": "a", "value": "none"}]


def test_a_missing_object_is_not_created_for_the_defaults_inside() -> None:
    value: dict[str, Any] = {}
    apply_defaults(CRON, value)
    assert value == {}


def test_a_defaulted_object_receives_the_defaults_inside_it() -> None:
    inner = {
        "type": "object",
        "default": {},
        "properties": {"b": {"type": "string", "default": "x"}},
    }
    assert defaulted({"type": "object", "properties": {"a": inner}}, {}) == {"a": {"b": "x"}}


def test_no_two_objects_share_a_default() -> None:
    raw = {"type": "object", "properties": {"a": {"type": "array", "default": [], "items": {}}}}
    schema = Schema(raw)
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    apply_defaults(schema, first)
    apply_defaults(schema, second)
    first["a"].append(1)
    assert second == {"a": []}


def test_null_gives_way_to_the_default_or_to_nothing_unless_it_is_allowed() -> None:
    raw = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "string"},
            "c": {"type": "string", "nullable": True, "default": "x"},
            "d": {"type": "object", "additionalProperties": {"type": "string"}},
            "e": {"type": "object", "additionalProperties": True},
        },
    }
    value = {"a": None, "b": None, "c": None, "d": {"k": None}, "e": {"k": None}, "f": None}
    assert defaulted(raw, value) == {
        "a": "x",
        "c": None,
        "d": {},
        "e": {"k": None},
        "f": None,
    }


def test_null_items_take_the_default_of_items() -> None:
    raw = {"type": "array", "items": {"type": "string", "default": "x"}}
    assert defaulted(raw, ["a", None]) == ["a", "x"]
    assert defaulted({"type": "array", "items": {"type": "string"}}, [None]) == [None]
