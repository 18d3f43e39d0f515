"""Pruning by structural schemas."""

from __future__ import annotations

from typing import Any

from skerry.api.schema import Schema
from skerry.logic.machinery.schema import prune, unknown_fields
from tests.kit.machinery.pruned import CRON
from tests.kit.machinery.schemas import builtin


def pruned(raw: dict[str, Any], value: Any) -> Any:
    prune(Schema(raw), value)
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


def test_an_embedded_resource_keeps_its_type_and_what_metadata_any_object_has() -> None:
    raw = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"x": 1, "name": "n"}, "spec": {"a": 1}}
    assert prune(Schema(raw), value) == ["metadata.x", "spec.a"]
    kept = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}, "spec": {}}
    assert value == kept


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
