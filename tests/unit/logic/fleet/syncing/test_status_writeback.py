"""What the mailbox does not yet say about an object at the edge."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.edge import CAUSE
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.delivery import content_mark
from skerry.logic.fleet.syncing.outcome import APPLIED, GONE, ORPHANED, SyncOutcome
from skerry.logic.fleet.syncing.present import OURS
from skerry.logic.fleet.syncing.recorded import DownsyncRecord
from skerry.logic.fleet.syncing.status_writeback import (
    MARKED,
    RETURNED,
    WritebackObserved,
    status_writeback,
)
from skerry.logic.fleet.syncing.wanted import Desired, Options
from skerry.logic.machinery.plan import Patch

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
REF = ObjectRef("", "apps", "deployments", "shop", "web")
REJECTED = SyncOutcome("Failed", "Rejected", "no room")


def copy(replicas: int = 1, status: Object | None = None, **annotations: str) -> Object:
    obj: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "m1",
            "generation": replicas,
            "annotations": {
                f"edge.kcp.io/{k.replace('_', '-')}": v for k, v in annotations.items()
            },
        },
        "spec": {"replicas": replicas},
    }
    return obj if status is None else {**obj, "status": status}


def bare() -> Object:
    """A copy without annotations."""
    made = copy()
    del made["metadata"]["annotations"]
    return made


def live(status: Object | None = None, uid: str = "e1") -> Object:
    obj: Object = {"metadata": {"name": "web", "namespace": "shop", "uid": uid}, OURS: "x"}
    return obj if status is None else {**obj, "status": status}


def recorded(obj: Object, **fields: Any) -> DownsyncRecord:
    wish = Desired.of("v1", obj)
    return DownsyncRecord(wish, **({"edge_uid": "e1", "applied": wish.digest} | fields))


def observed(**fields: Any) -> WritebackObserved:
    """Return an object that was delivered, marked so, and whose status has returned."""
    mark = content_mark(copy())
    known: dict[str, Any] = {
        "ref": REF,
        "gvr": DEPLOYMENTS,
        "copy": copy(status={"replicas": 1}, applied=mark),
        "live": live({"replicas": 1}),
        "record": recorded(copy()),
        "outcome": APPLIED,
    }
    return WritebackObserved(**(known | fields))


def patches(o: WritebackObserved) -> dict[str, Patch]:
    return {action.reason: action for action in status_writeback(o) if isinstance(action, Patch)}


def test_a_mailbox_that_says_it_all_is_left_alone() -> None:
    assert not status_writeback(observed())


def test_a_delivery_is_marked_on_this_very_object() -> None:
    mark = patches(observed(copy=copy(status={"replicas": 1})))[MARKED]
    assert mark.quiet
    assert mark.patch["metadata"] == {
        "uid": "m1",
        "annotations": {"edge.kcp.io/applied": content_mark(copy())},
    }


def test_a_mark_waits_until_the_present_content_was_applied() -> None:
    newer = copy(3, status={"replicas": 1})
    assert MARKED not in patches(observed(copy=newer))
    assert MARKED not in patches(observed(copy=newer, record=None))


def test_a_create_only_object_is_delivered_whatever_its_content() -> None:
    wish = Desired("v1", {}, "m1", 1, Options(create_only=True))
    record = DownsyncRecord(wish, edge_uid="e1")
    assert MARKED in patches(observed(copy=copy(3), record=record))


def test_a_failure_is_reported_without_a_record() -> None:
    mark = patches(observed(outcome=REJECTED, record=None))[MARKED]
    assert mark.patch["metadata"]["annotations"] == {
        "edge.kcp.io/sync-error": "Rejected: no room",
    }


@pytest.mark.parametrize(
    "outcome",
    [GONE, ORPHANED, SyncOutcome("Held", "HubAway"), SyncOutcome("Held", "NoSyncerConfig")],
)
def test_a_hub_that_was_not_heard_is_reported_nothing(outcome: SyncOutcome) -> None:
    assert MARKED not in patches(observed(copy=copy(), outcome=outcome))


def test_a_status_returns_whole_and_only_to_the_object_it_is_of() -> None:
    patch = patches(observed(live=live({"replicas": 2})))[RETURNED]
    assert (patch.kind, patch.subresource, patch.quiet) == ("json", "status", True)
    assert patch.patch == [
        {"op": "test", "path": "/metadata/uid", "value": "m1"},
        {"op": "add", "path": "/status", "value": {"replicas": 2}},
    ]


def test_a_status_without_a_part_of_its_own_is_patched_in_the_object() -> None:
    o = observed(live=live({"replicas": 2}), has_status=False)
    assert patches(o)[RETURNED].subresource == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"live": None},
        {"live": live()},
        {"live": live({"replicas": 2}, uid="another")},
        {"live": live({"replicas": 2}), "record": None},
    ],
)
def test_no_status_returns_but_that_of_our_object(fields: dict[str, Any]) -> None:
    assert RETURNED not in patches(observed(**fields))


def test_marks_come_before_the_status_where_there_is_nothing_to_add_them_to() -> None:
    o = observed(copy=bare(), live=live({"replicas": 2}))
    assert [action.reason for action in status_writeback(o)] == [MARKED, RETURNED]


def test_marks_go_along_with_a_status_in_one_write() -> None:
    known = copy(sync_error="Rejected: no room")
    o = observed(copy=known, live=live({"replicas": 2}), cause="OOMKilled: x")
    (action,) = status_writeback(o)
    assert isinstance(action, Patch)
    assert action.patch[2:] == [
        {"op": "remove", "path": "/metadata/annotations/edge.kcp.io~1sync-error"},
        {
            "op": "add",
            "path": "/metadata/annotations/edge.kcp.io~1applied",
            "value": content_mark(copy()),
        },
        {"op": "add", "path": "/metadata/annotations/edge.kcp.io~1cause", "value": "OOMKilled: x"},
    ]


@pytest.mark.parametrize(
    ("reported", "cause", "wanted"),
    [
        ("", "OOMKilled: x", {CAUSE: "OOMKilled: x"}),
        ("OOMKilled: x", "OOMKilled: x", None),
        ("OOMKilled: x", "Error: y", {CAUSE: "Error: y"}),
        ("OOMKilled: x", "", {CAUSE: None}),
        ("OOMKilled: x", None, None),
        ("", "", None),
    ],
)
def test_a_cause_is_written_when_it_changes_and_removed_when_all_is_well(
    reported: str, cause: str | None, wanted: dict[str, str | None] | None
) -> None:
    known = copy(status={"replicas": 1}, applied=content_mark(copy()))
    if reported:
        known["metadata"]["annotations"][CAUSE] = reported
    found = patches(observed(copy=known, cause=cause))
    written = {reason: patch.patch["metadata"]["annotations"] for reason, patch in found.items()}
    assert written == ({} if wanted is None else {MARKED: wanted})


def test_carrying_out_the_plan_leaves_nothing_to_write() -> None:
    for outcome in (APPLIED, REJECTED):
        o = observed(copy=bare(), live=live({"replicas": 2}), outcome=outcome)
        found = patches(o)
        notes = {
            name: text
            for name, text in found[MARKED].patch["metadata"]["annotations"].items()
            if text is not None
        }
        after = copy(status={"replicas": 2})
        after["metadata"]["annotations"] = notes
        assert not status_writeback(observed(copy=after, live=o.live, outcome=outcome))
