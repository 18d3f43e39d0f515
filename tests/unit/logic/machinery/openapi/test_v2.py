"""Swagger: one document of all resources, and the same as protobuf."""

from __future__ import annotations

from typing import Any

import orjson

from skerry.logic.machinery.builtin.definitions import definitions
from skerry.logic.machinery.openapi.v2 import (
    SWAGGER_PROTOBUF_TYPES,
    swagger,
    swagger_document,
    swagger_document_protobuf,
)
from skerry.logic.machinery.openapi.v2_protobuf import swagger_protobuf
from tests.kit.machinery.objects import resource

SERVED = [resource("configmaps"), resource("nodes")]
DOCUMENT: Any = swagger(SERVED, definitions(), "v9")


def test_it_says_which_server_and_holds_what_it_refers_to() -> None:
    assert DOCUMENT["info"]["version"] == "v9"
    assert "io.k8s.api.core.v1.ConfigMap" in DOCUMENT["definitions"]
    assert "io.k8s.api.core.v1.Pod" not in DOCUMENT["definitions"]
    assert list(DOCUMENT["definitions"]) == sorted(DOCUMENT["definitions"])


def test_parameters_of_the_path_stand_at_the_path() -> None:
    item = DOCUMENT["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]
    assert [p["name"] for p in item["parameters"]] == ["name", "namespace", "pretty"]
    assert [p.get("required", False) for p in item["parameters"]] == [True, True, False]


def test_a_body_is_required_but_for_deleting() -> None:
    item = DOCUMENT["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]
    put, delete = (item[method]["parameters"][0] for method in ("put", "delete"))
    assert put["in"] == delete["in"] == "body"
    assert put["required"] is True
    assert "required" not in delete
    assert "parameters" not in item["get"] or item["get"]["parameters"] == []


def test_every_operation_may_be_unauthorized() -> None:
    for item in DOCUMENT["paths"].values():
        for method, operation in item.items():
            if method != "parameters":
                assert operation["responses"]["401"] == {"description": "Unauthorized"}


def test_both_forms_say_the_same() -> None:
    assert orjson.loads(swagger_document(SERVED, definitions(), "v9")) == DOCUMENT
    assert swagger_document_protobuf(SERVED, definitions(), "v9") == swagger_protobuf(DOCUMENT)
    assert len(SWAGGER_PROTOBUF_TYPES) == 2
