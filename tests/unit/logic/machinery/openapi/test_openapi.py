"""OpenAPI documents hold together and say what kubectl looks for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
import pytest

from skerry.api.kinds import GroupVersion, GroupVersionKind, ResourceInfo, Subresource
from skerry.api.schema import Schema
from skerry.logic.machinery.builtin import builtin_resources, definitions
from skerry.logic.machinery.discovery import groups
from skerry.logic.machinery.openapi import (
    document_path,
    fingerprint,
    group_version_document,
    index,
    swagger_document,
    swagger_document_protobuf,
)
from skerry.logic.machinery.resource import Resource
from skerry.wire.protobuf import read_fields

KIND = GroupVersionKind("example.com", "v1", "Widget")
WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A widget.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}]},
                "note": {"type": "string", "nullable": True, "description": "Free text."},
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "string"}},
                },
                "object": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "items": {"type": "string", "default": "x"}},
            },
        }
    },
}


def widget(schema: dict[str, Any] = WIDGET_SCHEMA, version: str = "v1") -> Resource:
    scale = GroupVersionKind("autoscaling", "v1", "Scale")
    info = ResourceInfo(
        "example.com",
        version,
        "widgets",
        "Widget",
        True,
        subresources=(
            Subresource("status", KIND, ("get", "patch", "update")),
            Subresource("scale", scale, ("get", "patch", "update")),
        ),
    )
    return Resource(info, Schema(schema), "v1", custom=True)


def resources() -> list[Resource]:
    return [*builtin_resources(), widget()]


@cache
def document(group: str, version: str) -> Any:
    return orjson.loads(group_version_document(group, version, resources(), definitions()))


@cache
def swagger() -> Any:
    return orjson.loads(swagger_document(resources(), definitions()))


SERVED = [(group, version) for group, found in groups(resources()).items() for version in found]


def everything_in(value: Any) -> Iterator[dict[str, Any]]:
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            yield found
            pending.extend(found.values())
        elif isinstance(found, list):
            pending.extend(found)


def references_in(value: Any) -> set[str]:
    return {each["$ref"] for each in everything_in(value) if isinstance(each.get("$ref"), str)}


def operations_of(found: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in found["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield path, method, operation


@pytest.mark.parametrize(("group", "version"), SERVED)
def test_every_reference_of_a_document_is_answered_in_it(group: str, version: str) -> None:
    found = document(group, version)
    names = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    assert references_in(found) <= names


@pytest.mark.parametrize(("group", "version"), SERVED)
def test_no_trace_of_the_source_notation_is_left(group: str, version: str) -> None:
    for node in everything_in(document(group, version)["components"]["schemas"]):
        assert not isinstance(node.get("type"), list)


@pytest.mark.parametrize(("group", "version"), SERVED)
def test_operations_have_names_of_their_own(group: str, version: str) -> None:
    names = [
        operation["operationId"] for _, _, operation in operations_of(document(group, version))
    ]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("group", "version"), SERVED)
def test_patches_report_kind_and_field_validation(group: str, version: str) -> None:
    for path, method, operation in operations_of(document(group, version)):
        if method != "patch" or operation["x-kubernetes-action"] == "connect":
            continue
        names = {parameter["name"] for parameter in operation["parameters"]}
        assert {"fieldValidation", "fieldManager", "force", "dryRun"} <= names, path
        assert set(operation["x-kubernetes-group-version-kind"]) == {"group", "version", "kind"}


@pytest.mark.parametrize(
    ("group", "version", "path", "method", "name"),
    [
        (
            "apps",
            "v1",
            "/namespaces/{namespace}/deployments",
            "post",
            "createAppsV1NamespacedDeployment",
        ),
        ("apps", "v1", "/deployments", "get", "listAppsV1DeploymentForAllNamespaces"),
        (
            "apps",
            "v1",
            "/namespaces/{namespace}/deployments",
            "delete",
            "deleteAppsV1CollectionNamespacedDeployment",
        ),
        (
            "apps",
            "v1",
            "/namespaces/{namespace}/deployments/{name}/scale",
            "put",
            "replaceAppsV1NamespacedDeploymentScale",
        ),
        ("", "v1", "/nodes/{name}", "get", "readCoreV1Node"),
        (
            "",
            "v1",
            "/namespaces/{namespace}/pods/{name}/exec",
            "post",
            "connectCoreV1PostNamespacedPodExec",
        ),
        ("", "v1", "/namespaces/{namespace}/pods/{name}/log", "get", "readCoreV1NamespacedPodLog"),
        (
            "rbac.authorization.k8s.io",
            "v1",
            "/clusterroles",
            "get",
            "listRbacAuthorizationV1ClusterRole",
        ),
        (
            "example.com",
            "v1",
            "/namespaces/{namespace}/widgets/{name}",
            "patch",
            "patchExampleComV1NamespacedWidget",
        ),
    ],
)
def test_operations_are_called_as_in_kubernetes(
    group: str, version: str, path: str, method: str, name: str
) -> None:
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    assert document(group, version)["paths"][root + path][method]["operationId"] == name


def test_built_in_kinds_offer_strategic_merge_and_custom_ones_do_not() -> None:
    def body_types(group: str, path: str) -> set[str]:
        operation = document(group, "v1")["paths"][path]["patch"]
        return set(operation["requestBody"]["content"])

    built_in = body_types("apps", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
    custom = body_types("example.com", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}")
    assert built_in - custom == {"application/strategic-merge-patch+json"}
    assert "application/apply-patch+yaml" in custom


def test_text_beside_a_reference_is_kept_with_its_patch_strategy() -> None:
    schemas = document("apps", "v1")["components"]["schemas"]
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}
    ]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"


def test_special_types_are_written_as_kubernetes_does() -> None:
    schemas = document("apps", "v1")["components"]["schemas"]
    int_or_string = schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert int_or_string["format"] == "int-or-string"
    assert int_or_string["oneOf"] == [{"type": "integer"}, {"type": "string"}]
    quantity = schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity["oneOf"] == [{"type": "string"}, {"type": "number"}]
    old = swagger()["definitions"]
    assert old["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["type"] == "string"
    assert old["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"


def test_api_version_and_kind_are_open_texts() -> None:
    pod = document("", "v1")["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert "enum" not in pod["properties"]["kind"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]


# ---- custom kinds -----------------------------------------------------------------------------


def test_a_custom_kind_is_an_object_like_any_other() -> None:
    schemas = document("example.com", "v1")["components"]["schemas"]
    found = schemas["com.example.v1.Widget"]
    assert list(found["properties"]) == ["spec", "apiVersion", "kind", "metadata"]
    assert found["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]
    listed = schemas["com.example.v1.WidgetList"]
    assert listed["properties"]["items"]["items"] == {
        "$ref": "#/components/schemas/com.example.v1.Widget"
    }
    assert "io.k8s.api.autoscaling.v1.Scale" in schemas


def test_an_embedded_object_has_the_fields_every_object_has() -> None:
    spec = document("example.com", "v1")["components"]["schemas"]["com.example.v1.Widget"]
    embedded = spec["properties"]["spec"]["properties"]["object"]
    assert set(embedded["properties"]) == {"apiVersion", "kind", "metadata"}


def test_the_schema_of_the_definition_is_not_changed() -> None:
    before = orjson.dumps(WIDGET_SCHEMA)
    document.cache_clear()
    document("example.com", "v1")
    assert orjson.dumps(WIDGET_SCHEMA) == before


def test_the_old_document_leaves_out_what_it_cannot_say() -> None:
    spec = swagger()["definitions"]["com.example.v1.Widget"]["properties"]["spec"]["properties"]
    assert spec["size"] == {"type": "integer", "minimum": 1}
    assert spec["port"] == {"x-kubernetes-int-or-string": True}
    assert spec["note"] == {"description": "Free text."}
    # Known fields, or even a type, would have kubectl refuse what the server takes.
    assert spec["open"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert spec["map"]["additionalProperties"] == {"type": "string"}
    assert spec["list"]["items"] == {"type": "string"}


def test_a_kind_that_takes_anything_stays_open_in_the_old_document() -> None:
    raw = {"type": "object", "description": "x", "x-kubernetes-preserve-unknown-fields": True}
    found = orjson.loads(swagger_document([widget(raw)], definitions()))
    schema = found["definitions"]["com.example.v1.Widget"]
    assert schema.keys() == {"type", "x-kubernetes-group-version-kind"}


def test_the_fields_of_every_object_are_described_as_kubernetes_does() -> None:
    fields = swagger()["definitions"]["com.example.v1.Widget"]["properties"]
    assert fields["apiVersion"]["description"].startswith("APIVersion defines the versioned schema")
    assert fields["kind"]["description"].startswith("Kind is a string value representing the REST")
    assert fields["metadata"]["description"].startswith("Standard object's metadata. More info: ")


# ---- hashes and the index ---------------------------------------------------------------------


def test_the_index_names_every_document_with_its_hash() -> None:
    hashes = {
        document_path(GroupVersion("", "v1")): "AB",
        document_path(GroupVersion("apps", "v1")): "CD",
    }
    assert index(hashes)["paths"] == {
        "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=AB"},
        "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=CD"},
    }
    prefixed = index(hashes, "/clusters/root")["paths"]["api/v1"]["serverRelativeURL"]
    assert prefixed == "/clusters/root/openapi/v3/api/v1?hash=AB"


def test_the_hash_changes_with_the_schema_and_with_nothing_else() -> None:
    old = fingerprint("example.com", "v1", [widget()])
    assert len(old) == 128
    assert fingerprint("example.com", "v1", [widget()]) == old
    assert fingerprint("example.com", "v1", [*builtin_resources(), widget()]) == old
    changed = {**WIDGET_SCHEMA, "description": "Another."}
    assert fingerprint("example.com", "v1", [widget(changed)]) != old
    assert fingerprint("example.com", "v1", [widget()], "v1.33.0") != old
    assert fingerprint("example.com", "v2", [widget()]) != old


def test_a_document_is_the_same_bytes_each_time() -> None:
    first = group_version_document("apps", "v1", resources(), definitions())
    again = group_version_document("apps", "v1", list(reversed(resources())), definitions())
    assert first == again


def test_documents_know_their_server() -> None:
    found = group_version_document("apps", "v1", resources(), definitions(), "v1.32.4")
    assert orjson.loads(found)["info"] == {"title": "Kubernetes", "version": "v1.32.4"}


# ---- the old document -------------------------------------------------------------------------


def test_every_reference_of_the_old_document_is_answered_in_it() -> None:
    names = {f"#/definitions/{name}" for name in swagger()["definitions"]}
    assert references_in(swagger()) <= names


def test_the_old_document_has_the_same_operations() -> None:
    old = {(path, method) for path, method, _ in operations_of(swagger())}
    new = {
        (path, method)
        for group, version in SERVED
        for path, method, _ in operations_of(document(group, version))
    }
    assert old == new


def message(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, _, value in read_fields(data):
        found.setdefault(number, []).append(value)
    return found


def named(data: bytes, number: int) -> dict[str, bytes]:
    entries = [message(each) for each in message(data)[number]]
    return {entry[1][0].decode(): entry[2][0] for entry in entries}


def test_the_protobuf_form_has_every_path_and_definition() -> None:
    found = message(swagger_document_protobuf(resources(), definitions()))
    assert found[1] == [b"2.0"]
    assert set(named(found[8][0], 2)) == set(swagger()["paths"])
    assert set(named(found[9][0], 1)) == set(swagger()["definitions"])


def test_the_protobuf_form_reports_the_kind_of_a_definition_as_yaml() -> None:
    found = message(swagger_document_protobuf(resources(), definitions()))
    schema = named(found[9][0], 1)["com.example.v1.Widget"]
    extensions = named(schema, 31)
    assert orjson.loads(message(extensions["x-kubernetes-group-version-kind"])[2][0]) == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]
    properties = named(message(schema)[25][0], 1)
    spec = named(message(properties["spec"])[25][0], 1)
    assert message(message(spec["size"])[22][0])[1] == [b"integer"]


def test_the_protobuf_form_reports_how_a_kind_is_patched() -> None:
    found = message(swagger_document_protobuf(resources(), definitions()))
    path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    patch = message(message(named(found[8][0], 2)[path])[8][0])
    assert b"application/merge-patch+json" in patch[7]
    assert b"application/strategic-merge-patch+json" not in patch[7]
    assert patch[5] == [b"patchExampleComV1NamespacedWidget"]


def test_the_protobuf_form_keeps_limits_and_choices() -> None:
    limited = widget(
        {
            "type": "object",
            "properties": {
                "color": {"type": "string", "enum": ["red", "blue"], "maxLength": 4},
                "share": {"type": "number", "maximum": 0.5},
                "free": {"type": "object", "additionalProperties": True},
            },
        }
    )
    found = message(swagger_document_protobuf([limited], definitions()))
    schema = named(found[9][0], 1)["com.example.v1.Widget"]
    properties = {name: message(each) for name, each in named(message(schema)[25][0], 1).items()}
    assert [message(each)[2] for each in properties["color"][20]] == [[b'"red"'], [b'"blue"']]
    assert properties["color"][11] == [4]
    assert struct.unpack("<d", properties["share"][7][0]) == (0.5,)
    assert message(properties["free"][21][0]) == {2: [1]}
