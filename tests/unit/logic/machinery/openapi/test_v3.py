"""OpenAPI v3: a document for each group version, known by a hash of what it is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from skerry.api.kinds import GroupVersion, ResourceInfo
from skerry.api.schema import Schema
from skerry.logic.machinery.builtin.definitions import definitions
from skerry.logic.machinery.openapi.v3 import (
    document_path,
    fingerprint,
    group_version_document,
    index,
)
from skerry.logic.machinery.resource import Resource
from tests.kit.machinery.objects import resource

SERVED = [resource("configmaps"), resource("nodes"), resource("deployments", "apps")]


def widget(**schema: Any) -> Resource:
    info = ResourceInfo("x.io", "v1", "widgets", "Widget", True)
    return Resource(info, Schema({"type": "object", **schema}), "v1", custom=True)


def document(group: str = "", version: str = "v1") -> Any:
    return orjson.loads(group_version_document(group, version, SERVED, definitions(), "v9"))


def test_a_document_has_the_resources_of_its_version_alone() -> None:
    core, apps = document(), document("apps")
    assert "/api/v1/nodes" in core["paths"]
    assert not any("deployments" in path for path in core["paths"])
    assert "io.k8s.api.apps.v1.Deployment" in apps["components"]["schemas"]
    assert "io.k8s.api.core.v1.Node" not in apps["components"]["schemas"]


def test_a_list_can_be_watched_and_a_delete_needs_no_body() -> None:
    paths = document()["paths"]
    listing = paths["/api/v1/nodes"]["get"]["responses"]["200"]["content"]
    assert "application/json;stream=watch" in listing
    one = paths["/api/v1/nodes/{name}"]
    assert one["put"]["requestBody"]["required"] is True
    assert "required" not in one["delete"]["requestBody"]
    assert one["get"]["tags"] == ["core_v1"]


def test_the_index_names_documents_with_their_hashes() -> None:
    path = document_path(GroupVersion("apps", "v1"))
    assert path == "apis/apps/v1"
    found = index({path: "H", "api/v1": "G"}, "/clusters/root")
    assert list(found["paths"]) == ["api/v1", "apis/apps/v1"]
    assert found["paths"][path] == {
        "serverRelativeURL": "/clusters/root/openapi/v3/apis/apps/v1?hash=H"
    }


def test_the_hash_changes_exactly_with_the_document() -> None:
    def of(*resources: Resource, server: str = "v9") -> str:
        return fingerprint("x.io", "v1", resources, server)

    one = widget()
    assert of(one) == of(widget())
    assert of(one) == of(*SERVED, one)
    assert of(one) != of(widget(description="other"))
    assert of(one) != of(one, server="v10")
    assert of(one) != of(replace(one, info=replace(one.info, namespaced=False)))
    assert of() != of(one)


def test_the_order_of_resources_does_not_matter() -> None:
    other = replace(widget(), info=replace(widget().info, resource="gadgets", kind="Gadget"))
    assert fingerprint("x.io", "v1", [widget(), other]) == fingerprint(
        "x.io", "v1", [other, widget()]
    )
