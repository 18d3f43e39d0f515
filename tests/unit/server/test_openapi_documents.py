"""OpenAPI documents by the form they are asked in."""

from __future__ import annotations

import orjson

from skerry.logic.machinery.builtin.definitions import definitions
from skerry.logic.machinery.openapi import swagger_document_protobuf
from skerry.server.openapi_documents import document
from tests.kit.machinery.objects import resource

SERVED = [resource("configmaps"), resource("deployments", "apps")]


def test_each_form_is_its_own() -> None:
    swagger = orjson.loads(document("swagger", "", "", SERVED))
    assert swagger["swagger"] == "2.0"
    assert document("swagger-protobuf", "", "", SERVED) == swagger_document_protobuf(
        SERVED, definitions()
    )
    v3 = orjson.loads(document("v3", "apps", "v1", SERVED))
    assert v3["openapi"].startswith("3.")


def test_only_the_form_in_parts_leaves_others_out() -> None:
    whole = orjson.loads(document("swagger", "", "", SERVED))["paths"]
    apps = orjson.loads(document("v3", "apps", "v1", SERVED))["paths"]
    assert any("configmaps" in path for path in whole)
    assert not any("configmaps" in path for path in apps)
