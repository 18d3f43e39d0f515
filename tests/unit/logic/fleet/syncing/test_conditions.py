"""The state of an edge, for people."""

from __future__ import annotations

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.conditions import (
    MAX_OBJECTS,
    Standing,
    conditions,
    report,
    same_conditions,
)
from skerry.logic.fleet.syncing.outcome import SyncOutcome
from skerry.logic.machinery.plan import Patch


def test_conditions_keep_their_times_and_their_number() -> None:
    troubled = {
        ObjectRef("", "", "configmaps", "n", f"c{i:03}"): SyncOutcome("Failed", "Rejected", "no")
        for i in range(150)
    }
    first = conditions(Standing(3, troubled), [], "t1")
    assert len(first) == 6 + MAX_OBJECTS
    later = conditions(Standing(3, troubled), first, "t2")
    assert same_conditions(first, later)
    assert {item["lastTransitionTime"] for item in later} == {"t1"}
    well = conditions(Standing(153), later, "t3")
    assert well[0]["status"] == "True"
    assert well[0]["lastTransitionTime"] == "t3"


CONFIG = {"metadata": {"name": "the-one"}}


def test_a_report_writes_only_what_is_new() -> None:
    [first] = report(CONFIG, Standing(3), "t1", beat=False)
    assert isinstance(first, Patch)
    assert (first.subresource, first.quiet) == ("status", True)
    status = first.patch["status"]
    assert status.keys() == {"conditions"}
    reported = {**CONFIG, "status": status}
    assert not report(reported, Standing(3), "t2", beat=False)
    [beat] = report(reported, Standing(3), "t2", beat=True)
    assert isinstance(beat, Patch)
    assert beat.patch == {"status": {"lastSyncerHeartbeatTime": "t2"}}


def test_what_needs_a_person_stands_out() -> None:
    page = ObjectRef("", "", "configmaps", "shop", "page")
    rule = "the edge must allow patch of configmaps"
    standing = Standing(
        troubled={page: SyncOutcome("Failed", "EdgeForbidden", rule)},
        identity_changed="another store answers",
        deletions_held="60 deletions are held",
        unknown_kinds=["widgets.test.example"],
        disk_failing="no room",
    )
    found = {item["type"]: item for item in conditions(standing, [], "t1")}
    assert {name for name, item in found.items() if item["status"] == "True"} == {
        "HubIdentityChanged",
        "DeletionsHeld",
        "EdgeForbidden",
        "KindsUnknown",
        "DiskFailing",
    }
    assert "skerry edge manifest" in found["EdgeForbidden"]["message"]
    assert found["configmaps/shop.page"]["status"] == "False"
    assert found["Synced"]["reason"] == "ObjectsNotApplied"


def test_what_was_left_behind_does_not_make_an_edge_unsynced() -> None:
    page = ObjectRef("", "", "configmaps", "shop", "page")
    standing = Standing(1, {page: SyncOutcome("Held", "NotRecorded", "whose is it")})
    found = {item["type"]: item for item in conditions(standing, [], "t1")}
    assert found["Synced"]["status"] == "True"
    assert found["configmaps/shop.page"]["status"] == "Unknown"


def test_many_troubled_objects_are_named_and_counted() -> None:
    troubled = {
        ObjectRef("", "", "configmaps", "n", f"c{i}"): SyncOutcome("Failed", "Rejected", "no")
        for i in range(7)
    }
    message = conditions(Standing(3, troubled), [], "t1")[0]["message"]
    assert message.startswith("3 objects applied; not as wanted: configmaps/n/c0, ")
    assert message.endswith(" and 2 more")
