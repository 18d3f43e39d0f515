"""What is read of objects, and what of them is worth a cache."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import SYNC_TARGET_NAME, TAINTS, edge_placement_ref, location_ref
from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.placement.records import (
    Destination,
    is_being_deleted,
    lean_location,
    lean_mailbox,
    lean_sync_target,
    location_of,
    placement_of,
    sync_target_of,
)
from skerry.logic.machinery.taints import Taint
from tests.kit.chain import building
from tests.kit.chain.building import equal

LONG = {"matchLabels": {"x" * 70: "y"}}


def test_a_destination_has_the_form_of_a_slice_and_knows_its_location() -> None:
    found = Destination("imw", "l", "t", "u")
    assert found.as_object() == {
        "cluster": "imw",
        "locationName": "l",
        "syncTargetName": "t",
        "syncTargetUID": "u",
    }
    assert found.location_ref == location_ref("imw", "l")


@pytest.mark.parametrize(
    ("ready", "unschedulable", "available"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_a_sync_target_is_available_if_it_is_ready_and_open(
    ready: bool, unschedulable: bool, available: bool
) -> None:
    obj = building.sync_target("t", {}, ready=ready, unschedulable=unschedulable)
    assert sync_target_of(obj).available is available


def test_a_location_with_an_unreadable_selector_has_errors_and_no_instances() -> None:
    found = location_of(building.location("l", {}, LONG))
    assert found.instances is None
    assert "spec.instanceSelector" in found.errors[0]
    assert location_of(building.location("l", {}, None)).errors == ()


def test_taints_of_a_location_are_read_from_its_annotation() -> None:
    found = location_of(building.location("l", {}, {}, taints="a=b:NoSchedule,nonsense"))
    assert found.taints == (Taint("a", "b", "NoSchedule"),)


def test_a_placement_has_each_selector_once_and_the_errors_of_all() -> None:
    found = placement_of(building.placement("p", equal(a="b"), equal(a="b"), LONG))
    assert found.ref == edge_placement_ref("wmw", "p")
    assert len(found.selectors) == 1
    assert found.errors[0].startswith("spec.locationSelectors[2]")


def test_what_cannot_be_satisfied_is_said_with_its_field() -> None:
    impossible: dict[str, Any] = {
        "matchLabels": {"env": "a"},
        "matchExpressions": [{"key": "env", "operator": "In", "values": ["b"]}],
    }
    found = placement_of(building.placement("p", impossible, locationWorkspaceSelector=impossible))
    assert found.unsatisfiable == (
        "spec.locationSelectors[0]: no value of label 'env' can satisfy it",
        "spec.locationWorkspaceSelector: no value of label 'env' can satisfy it",
    )


@pytest.mark.parametrize(
    ("lean", "read", "obj"),
    [
        (lean_location, location_of, building.location("l", {"a": "b"}, {}, taints="k:NoExecute")),
        (lean_location, location_of, building.location("l", {}, None)),
        (lean_sync_target, sync_target_of, building.sync_target("t", {"a": "b"}, ready=True)),
        (lean_sync_target, sync_target_of, building.sync_target("t", {}, unschedulable=True)),
    ],
)
def test_what_is_cached_reads_as_the_whole_object_would(lean: Any, read: Any, obj: Any) -> None:
    obj["metadata"]["annotations"]["somebody/else"] = "x" * 1000
    obj["metadata"]["managedFields"] = [{}]
    kept = lean(obj)
    assert read(kept) == read(obj)
    assert "managedFields" not in kept["metadata"]
    assert "somebody/else" not in kept["metadata"]["annotations"]
    assert TAINTS in kept["metadata"]["annotations"] or TAINTS not in obj["metadata"]["annotations"]


def test_an_object_with_a_deletion_timestamp_is_being_deleted() -> None:
    assert not is_being_deleted({"metadata": {}})
    assert is_being_deleted({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})


def test_of_a_mailbox_only_what_is_asked_about_is_kept() -> None:
    notes = {CLUSTER_ANNOTATION: "espw", SYNC_TARGET_NAME: "florin"}
    kept = {"name": "m", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "t"}
    metadata = {**kept, "labels": {"a": "b"}, "annotations": {**notes, "more": "x"}}
    lean = lean_mailbox({"metadata": metadata, "spec": {"cluster": "c", "URL": "u"}})
    assert lean == {"metadata": {**kept, "annotations": notes}, "spec": {"cluster": "c"}}
    assert lean_mailbox({"metadata": {"name": "m"}})["spec"] == {"cluster": ""}
