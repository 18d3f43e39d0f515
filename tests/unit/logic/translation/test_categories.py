"""Which types travel, and which objects of them do not."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.logic.translation.categories import Category, category_of, is_system_object


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
