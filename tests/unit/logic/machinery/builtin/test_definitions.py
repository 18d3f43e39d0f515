"""The schemas of Kubernetes: found by kind, read once, absent for what is not Kubernetes'."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupVersionKind
from skerry.logic.machinery.builtin.catalogue import catalogue
from skerry.logic.machinery.builtin.definitions import (
    builtin_schema,
    common_descriptions,
    definition_name,
    definitions,
    schema_of,
)


@pytest.mark.parametrize(
    ("group", "version", "kind", "name"),
    [
        ("", "v1", "Pod", "io.k8s.api.core.v1.Pod"),
        ("apps", "v1", "Deployment", "io.k8s.api.apps.v1.Deployment"),
        ("networking.k8s.io", "v1", "Ingress", "io.k8s.api.networking.v1.Ingress"),
        ("rbac.authorization.k8s.io", "v1", "Role", "io.k8s.api.rbac.v1.Role"),
        (
            "apiregistration.k8s.io",
            "v1",
            "APIService",
            "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        ),
    ],
)
def test_a_definition_is_named_after_its_group(
    group: str, version: str, kind: str, name: str
) -> None:
    assert definition_name(GroupVersionKind(group, version, kind)) == name


def test_every_kind_that_is_served_has_a_schema() -> None:
    assert all("metadata" in schema_of(info.gvk).property_names for info in catalogue())


def test_what_is_not_kubernetes_has_none() -> None:
    nobody = GroupVersionKind("example.com", "v1", "Thing")
    assert builtin_schema(nobody) is None
    with pytest.raises(KeyError):
        schema_of(nobody)


def test_the_data_is_read_once() -> None:
    assert definitions() is definitions()
    pod = GroupVersionKind("", "v1", "Pod")
    assert builtin_schema(pod) is schema_of(pod)


def test_common_fields_are_described_in_kubernetes_words() -> None:
    said = common_descriptions()
    assert said["kind"].startswith("Kind is a string value representing the REST resource")
    assert said["list metadata"].startswith("Standard list metadata. More info: https://")
    assert "#" not in said["more"]
