"""Every request that can be made of a resource: paths, names, bodies, answers."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupVersion
from skerry.logic.machinery.openapi.operations import (
    Operation,
    group_version_operation,
    operations,
    root_path,
)
from skerry.logic.machinery.openapi.parameters import PARAMETERS
from tests.kit.machinery.objects import RESOURCES, resource


def of(name: str, group: str = "") -> dict[tuple[str, str], Operation]:
    return {(each.method, each.path): each for each in operations(resource(name, group))}


@pytest.mark.parametrize(
    ("group", "version", "path", "name"),
    [
        ("", "v1", "/api/v1/", "getCoreV1APIResources"),
        ("apps", "v1", "/apis/apps/v1/", "getAppsV1APIResources"),
        (
            "rbac.authorization.k8s.io",
            "v1",
            "/apis/rbac.authorization.k8s.io/v1/",
            "getRbacAuthorizationV1APIResources",
        ),
        ("my-shop.com", "v1", "/apis/my-shop.com/v1/", "getMyShopComV1APIResources"),
    ],
)
def test_a_group_version_is_asked_for_by_its_path(
    group: str, version: str, path: str, name: str
) -> None:
    found = group_version_operation(GroupVersion(group, version))
    assert (found.path, found.id) == (path, name)
    assert f"{root_path(GroupVersion(group, version))}/" == path
    assert found.extensions() == {}


def test_a_namespaced_kind_is_also_listed_everywhere() -> None:
    found = of("configmaps")
    one = found["get", "/api/v1/namespaces/{namespace}/configmaps"]
    everywhere = found["get", "/api/v1/configmaps"]
    assert one.id == "listCoreV1NamespacedConfigMap"
    assert everywhere.id == "listCoreV1ConfigMapForAllNamespaces"
    assert ("post", "/api/v1/configmaps") not in found


def test_a_kind_of_the_cluster_has_no_namespace_in_its_paths() -> None:
    assert not any("namespaces/{namespace}" in path for _, path in of("nodes"))
    assert of("nodes")["get", "/api/v1/nodes"].id == "listCoreV1Node"


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("post", "", "createAppsV1NamespacedDeployment"),
        ("delete", "", "deleteAppsV1CollectionNamespacedDeployment"),
        ("get", "/{name}", "readAppsV1NamespacedDeployment"),
        ("put", "/{name}", "replaceAppsV1NamespacedDeployment"),
        ("patch", "/{name}", "patchAppsV1NamespacedDeployment"),
        ("delete", "/{name}", "deleteAppsV1NamespacedDeployment"),
        ("patch", "/{name}/status", "patchAppsV1NamespacedDeploymentStatus"),
        ("get", "/{name}/scale", "readAppsV1NamespacedDeploymentScale"),
    ],
)
def test_operations_are_named_as_in_kubernetes(method: str, path: str, name: str) -> None:
    base = "/apis/apps/v1/namespaces/{namespace}/deployments"
    assert of("deployments", "apps")[method, base + path].id == name


def test_kubectl_is_offered_strategic_merge_where_there_is_one() -> None:
    path = "/api/v1/namespaces/{namespace}/pods/{name}"
    assert "application/strategic-merge-patch+json" in of("pods")["patch", path].body_types


def test_streams_are_connected_to_and_logs_are_read() -> None:
    found = of("pods")
    base = "/api/v1/namespaces/{namespace}/pods/{name}"
    log = found["get", f"{base}/log"]
    assert (log.action, dict(log.responses)) == ("get", {"200": ""})
    assert found["post", f"{base}/exec"].action == "connect"
    assert found["get", f"{base}/proxy/{{path}}"].id.endswith("ProxyWithPath")


def test_articles_fit_their_nouns() -> None:
    assert of("events")["post", "/api/v1/namespaces/{namespace}/events"].description == (
        "create an Event"
    )


def test_no_two_requests_of_a_version_are_called_alike_and_all_parameters_are_known() -> None:
    for group, version in {(group, version) for group, version, _ in RESOURCES}:
        asked = [
            each
            for key, found in RESOURCES.items()
            if key[:2] == (group, version)
            for each in operations(found)
        ]
        assert len({each.id for each in asked}) == len(asked)
        assert all(name in PARAMETERS for each in asked for name in each.query)
