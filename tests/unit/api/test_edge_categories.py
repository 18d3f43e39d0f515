"""Which types of objects go to mailboxes and edges."""

from __future__ import annotations

import pytest

from skerry.api.edge import CENTRAL_GROUPS
from skerry.api.edge_categories import Category, category_of
from skerry.api.kinds import GroupResource


@pytest.mark.parametrize(
    ("group", "resource", "category"),
    [
        ("", "configmaps", Category.REGULAR),
        ("example.org", "widgets", Category.REGULAR),
        ("", "namespaces", Category.NATURED),
        ("rbac.authorization.k8s.io", "roles", Category.DENATURED),
        ("", "serviceaccounts", Category.DENATURED),
        ("apis.kcp.io", "apibindings", Category.MAILBOX_ONLY),
        ("apiregistration.k8s.io", "apiservices", Category.UNSUPPORTED),
        ("", "events", Category.NOT_FOR_EDGE),
        ("events.k8s.io", "events", Category.NOT_FOR_EDGE),
    ],
)
def test_a_type_has_the_category_the_edge_api_gives_it(
    group: str, resource: str, category: Category
) -> None:
    assert category_of(GroupResource(group, resource)) is category


@pytest.mark.parametrize("group", sorted(CENTRAL_GROUPS))
def test_nothing_of_a_central_group_leaves_the_hub(group: str) -> None:
    found = category_of(GroupResource(group, "whatever"))
    assert not found.to_mailbox
    assert not found.to_edge


def test_nothing_reaches_an_edge_that_is_not_in_its_mailbox() -> None:
    assert all(category.to_mailbox for category in Category if category.to_edge)
    assert Category.MAILBOX_ONLY.to_mailbox
    assert not Category.MAILBOX_ONLY.to_edge
