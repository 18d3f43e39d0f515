"""Which objects a placement sends on to the edge, and of which a status comes back."""

from __future__ import annotations

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.summary.selection import comes_back, reports_status, selection
from skerry.logic.fleet.translation.selected import what_of

WEB = {"app": "web"}
SELECTS = selection(
    what_of(
        {
            "spec": {
                "namespaceSelector": {"matchLabels": WEB},
                "nonNamespacedObjects": [
                    {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "resources": ["clusterroles"],
                        "resourceNames": ["reader"],
                    }
                ],
            }
        }
    )
)
POD = ObjectRef("", "", "pods", "shop", "web")


@pytest.mark.parametrize(
    ("ref", "labels", "within", "placed"),
    [
        (POD, {}, WEB, True),
        (POD, WEB, {}, False),
        (namespace_ref("shop"), WEB, {}, True),
        (namespace_ref("shop"), {}, {}, False),
        # Every cluster has its own; what is in it goes.
        (namespace_ref("default"), WEB, {}, False),
        (ObjectRef("", "", "pods", "default", "web"), {}, WEB, True),
        (ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "reader"), {}, {}, True),
        (ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "writer"), {}, {}, False),
        # Kinds of the center never travel, whatever their Namespace.
        (ObjectRef("", "edge.kcp.io", "customizers", "shop", "c"), {}, WEB, False),
    ],
)
def test_an_object_is_placed_by_its_namespace_or_by_name(
    ref: ObjectRef, labels: dict[str, str], within: dict[str, str], placed: bool
) -> None:
    assert SELECTS(ref, labels, within) is placed


def test_a_malformed_placement_places_nothing() -> None:
    assert not selection(None)(POD, {}, WEB)


@pytest.mark.parametrize(
    ("resource", "subresources", "reported"),
    [
        (GroupResource("apps", "deployments"), ["scale", "status"], True),
        (GroupResource("", "configmaps"), [], False),
        # The mailbox itself gives these a status, which is not the edge's.
        (GroupResource("", "namespaces"), ["status"], False),
    ],
)
def test_a_status_is_reported_of_kinds_that_have_one_at_the_edge(
    resource: GroupResource, subresources: list[str], reported: bool
) -> None:
    assert reports_status(resource, subresources) is reported


def test_what_a_quota_uses_at_an_edge_does_not_come_back() -> None:
    assert not comes_back(GroupResource("", "resourcequotas"))
    assert comes_back(GroupResource("apps", "deployments"))
