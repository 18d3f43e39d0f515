"""What is served: types, schemas and the facts discovery tells."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupVersionKind
from skerry.logic.machinery.builtin import builtin_resources, definitions, schema_of
from tests.kit.machinery.objects import RESOURCES, resource


def test_every_type_has_a_schema_with_its_kind_and_columns() -> None:
    for kind in builtin_resources():
        assert kind.schema.field("metadata") is not None or kind.info.verbs == ("create",)
        assert kind.schema.field("apiVersion") is not None
        assert kind.columns


def test_the_types_are_made_once() -> None:
    assert builtin_resources() is builtin_resources()
    assert definitions() is definitions()
    assert len(RESOURCES) == len(builtin_resources()) == 59


def test_definitions_are_found_for_every_group() -> None:
    crd = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert schema_of(crd).name.startswith("io.k8s.apiextensions-apiserver")
    assert schema_of(GroupVersionKind("autoscaling", "v1", "Scale")).name.endswith("v1.Scale")
    with pytest.raises(KeyError):
        schema_of(GroupVersionKind("", "v1", "Nonsense"))


def test_pods_have_the_subresources_of_a_real_server() -> None:
    assert [sub.name for sub in resource("pods").info.subresources] == [
        "attach",
        "binding",
        "ephemeralcontainers",
        "eviction",
        "exec",
        "log",
        "portforward",
        "proxy",
        "resize",
        "status",
    ]
    eviction = next(s for s in resource("pods").info.subresources if s.name == "eviction")
    assert eviction.kind == ("policy", "v1", "Eviction")


def test_namespaces_cannot_be_deleted_all_at_once() -> None:
    assert "deletecollection" not in resource("namespaces").info.verbs


@pytest.mark.parametrize(
    ("name", "group", "counts"),
    [
        ("deployments", "apps", True),
        ("configmaps", "", False),
        ("secrets", "", False),
        ("pods", "", False),
        ("services", "", False),
        ("ingresses", "networking.k8s.io", True),
        ("leases", "coordination.k8s.io", False),
        ("priorityclasses", "scheduling.k8s.io", True),
        ("roles", "rbac.authorization.k8s.io", False),
    ],
)
def test_generations_are_counted_where_kubernetes_counts_them(
    name: str, group: str, counts: bool
) -> None:
    assert resource(name, group).counts_generation is counts


def test_events_are_one_stored_type() -> None:
    core, new = resource("events"), resource("events", "events.k8s.io")
    assert core.stored_group == new.stored_group == ""
    assert core.storage_resource == new.storage_resource == "events"
    assert core.convert is None
    assert new.convert is not None


def test_workloads_can_be_scaled() -> None:
    for name in ("deployments", "replicasets", "statefulsets"):
        scale = resource(name, "apps").scale
        assert scale is not None
        assert scale.spec_replicas == "spec.replicas"
    assert resource("daemonsets", "apps").scale is None
