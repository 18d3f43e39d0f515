from __future__ import annotations

from typing import Any

import pytest

from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.records import (
    location_terms,
    mailbox_cluster,
    shown_placement,
)


def workspace(name: str, cluster: str = "m1", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"cluster": cluster}}


MAILBOX = "imw1-mb-2b3f0a0e-5f4e-4c58-9d0c-0d7b5f0c2f11"


def test_a_mailbox_that_can_be_used_has_a_cluster() -> None:
    assert mailbox_cluster(workspace(MAILBOX)) == "m1"


@pytest.mark.parametrize(
    "found",
    [
        None,
        workspace("shop"),
        workspace(MAILBOX, deletionTimestamp="2030-01-01T00:00:00Z"),
        {"metadata": {"name": MAILBOX}},
    ],
)
def test_nothing_else_is_a_mailbox_that_can_be_used(found: dict[str, Any] | None) -> None:
    assert mailbox_cluster(found) == ""


def test_a_placement_is_shown_with_its_cluster() -> None:
    placement = ObjectRef("c1", "edge.kcp.io", "edgeplacements", "", "web")
    assert shown_placement(placement) == "c1:web"


def test_only_labels_and_annotations_of_a_location_are_its_terms() -> None:
    location = {"metadata": {"name": "l", "labels": {"a": "b"}}, "spec": {"x": 1}}
    changed = {"metadata": {"name": "l", "labels": {"a": "b"}}, "spec": {"x": 2}}
    assert location_terms(location) == location_terms(changed) == ({"a": "b"}, None)
