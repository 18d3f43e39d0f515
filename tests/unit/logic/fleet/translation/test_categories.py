"""Which types travel, and which objects of them do not."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import is_system_object
from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource
from skerry.logic.fleet.translation.categories import is_edge_object, is_never_copied

LEASES = GroupResource("coordination.k8s.io", "leases")


@pytest.mark.parametrize(
    ("group", "resource", "category"),
    [
        ("", "configmaps", Category.REGULAR),
        ("coordination.k8s.io", "leases", Category.REGULAR),
        ("example.io", "anything", Category.REGULAR),
        ("", "namespaces", Category.NATURED),
        ("apiextensions.k8s.io", "customresourcedefinitions", Category.NATURED),
        ("apis.kcp.io", "apibindings", Category.MAILBOX_ONLY),
        ("rbac.authorization.k8s.io", "clusterrolebindings", Category.DENATURED),
        ("", "serviceaccounts", Category.DENATURED),
        ("flowcontrol.apiserver.k8s.io", "flowschemas", Category.DENATURED),
        ("apiregistration.k8s.io", "apiservices", Category.UNSUPPORTED),
        ("edge.kcp.io", "customizers", Category.NOT_FOR_EDGE),
        ("tenancy.kcp.io", "workspaces", Category.NOT_FOR_EDGE),
        ("", "events", Category.NOT_FOR_EDGE),
        ("", "nodes", Category.NOT_FOR_EDGE),
        ("apps", "controllerrevisions", Category.NOT_FOR_EDGE),
    ],
)
def test_each_type_has_its_category(group: str, resource: str, category: Category) -> None:
    assert category_of(GroupResource(group, resource)) is category


def test_categories_say_how_far_objects_go() -> None:
    assert Category.DENATURED.to_mailbox
    assert Category.DENATURED.to_edge
    assert Category.MAILBOX_ONLY.to_mailbox
    assert not Category.MAILBOX_ONLY.to_edge
    assert not Category.UNSUPPORTED.to_mailbox
    assert not Category.NOT_FOR_EDGE.to_edge


def _named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def _binding(path: str, export: str) -> dict[str, Any]:
    return _named("b", spec={"reference": {"export": {"path": path, "name": export}}})


def _lease(namespace: str, name: str) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name}}


@pytest.mark.parametrize(
    ("resource", "obj", "system"),
    [
        ("secrets", _named("t", type="kubernetes.io/service-account-token"), True),
        ("secrets", _named("t", type="bootstrap.kubernetes.io/token"), True),
        ("secrets", _named("t", type="Opaque"), False),
        ("configmaps", _named("kube-root-ca.crt"), True),
        ("configmaps", _named("mine"), False),
        ("serviceaccounts", _named("default"), True),
        ("serviceaccounts", _named("mine"), False),
        ("pods", _named("default"), False),
    ],
)
def test_what_every_workspace_has_by_itself_is_never_copied(
    resource: str, obj: dict[str, Any], system: bool
) -> None:
    assert is_system_object(GroupResource("", resource), obj) is system


@pytest.mark.parametrize(
    ("path", "export", "system"),
    [
        ("root:espw", "edge.kcp.io", True),
        ("root", "tenancy.kcp.io", True),
        ("root", "apiresource.kcp.io", True),
        ("root:compute", "kubernetes", False),
    ],
)
def test_bindings_that_every_mailbox_has_are_never_copied(
    path: str, export: str, system: bool
) -> None:
    resource = GroupResource("apis.kcp.io", "apibindings")
    assert is_system_object(resource, _binding(path, export)) is system


@pytest.mark.parametrize(
    ("resource", "obj", "own"),
    [
        (GroupResource("", "secrets"), _named("t", type="edge.kcp.io/bootstrap-token"), True),
        (GroupResource("", "secrets"), _named("bootstrap-token-abc123", type="Opaque"), False),
        (LEASES, _lease("default", "syncer-heartbeat"), True),
        (LEASES, _lease("shop", "syncer-heartbeat"), False),
        (LEASES, _lease("default", "mine"), False),
        (GroupResource("", "configmaps"), _lease("default", "syncer-heartbeat"), False),
    ],
)
def test_what_a_mailbox_has_for_its_edge_is_never_copied(
    resource: GroupResource, obj: dict[str, Any], own: bool
) -> None:
    assert is_edge_object(resource, obj) is own
    assert is_never_copied(resource, obj) is own
