"""What definitions are called: as in Kubernetes for its own kinds, backwards for others."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupVersionKind, Subresource
from skerry.logic.machinery import crd
from skerry.logic.machinery.builtin import builtin_resources
from skerry.logic.machinery.openapi.names import (
    definition_of,
    list_definition_of,
    subresource_definition,
)
from skerry.logic.machinery.resource import Resource

BUILT_IN = {
    (each.info.group, each.info.version, each.info.kind): each for each in builtin_resources()
}


def widgets() -> Resource:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "Widgets"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "shop.example.com", "names": names, "scope": "Cluster", "versions": [version]}
    [found] = crd.resources_of({"metadata": {"name": "widgets.shop.example.com"}, "spec": spec})
    return found


@pytest.mark.parametrize(
    ("group", "version", "kind", "name"),
    [
        ("", "v1", "Pod", "io.k8s.api.core.v1.Pod"),
        ("apps", "v1", "Deployment", "io.k8s.api.apps.v1.Deployment"),
        ("rbac.authorization.k8s.io", "v1", "Role", "io.k8s.api.rbac.v1.Role"),
        ("networking.k8s.io", "v1", "Ingress", "io.k8s.api.networking.v1.Ingress"),
        (
            "apiextensions.k8s.io", "v1", "CustomResourceDefinition",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        ),
    ],
)  # fmt: skip
def test_built_in_kinds_bear_the_names_of_kubernetes(
    group: str, version: str, kind: str, name: str
) -> None:
    resource = BUILT_IN[group, version, kind]
    assert definition_of(resource) == name
    assert list_definition_of(resource) == f"{name}List"


def test_a_custom_kind_has_its_group_backwards_and_its_own_list() -> None:
    assert definition_of(widgets()) == "com.example.shop.v1.Widget"
    assert list_definition_of(widgets()) == "com.example.shop.v1.Widgets"


def test_a_subresource_speaks_its_own_kind_or_that_of_the_resource() -> None:
    resource = BUILT_IN["apps", "v1", "Deployment"]
    status = Subresource("status", resource.info.gvk, ("get",))
    scale = Subresource("scale", GroupVersionKind("autoscaling", "v1", "Scale"), ("get",))
    assert subresource_definition(resource, status) == "io.k8s.api.apps.v1.Deployment"
    assert subresource_definition(resource, scale) == "io.k8s.api.autoscaling.v1.Scale"
