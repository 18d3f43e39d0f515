"""The state of an edge, for people."""

from __future__ import annotations

from dataclasses import replace

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.conditions import (
    MAX_OBJECTS,
    HeldDeletions,
    Objects,
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
    first = conditions(Standing(objects=Objects(applied=3), troubled=troubled), [], "t1")
    assert len(first) == 7 + MAX_OBJECTS
    later = conditions(Standing(objects=Objects(applied=3), troubled=troubled), first, "t2")
    assert same_conditions(first, later)
    assert {item["lastTransitionTime"] for item in later} == {"t1"}
    well = conditions(Standing(objects=Objects(applied=153)), later, "t3")
    assert well[0]["status"] == "True"
    assert well[0]["lastTransitionTime"] == "t3"


CONFIG = {"metadata": {"name": "the-one"}}


def test_a_report_writes_only_what_is_new() -> None:
    [first] = report(CONFIG, Standing(objects=Objects(applied=3)), "t1", beat=False)
    assert isinstance(first, Patch)
    assert (first.subresource, first.quiet) == ("status", True)
    status = first.patch["status"]
    assert status.keys() == {"conditions", "objects", "syncerVersion"}
    reported = {**CONFIG, "status": status}
    assert not report(reported, Standing(objects=Objects(applied=3)), "t2", beat=False)
    [beat] = report(reported, Standing(objects=Objects(applied=3)), "t2", beat=True)
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
        "ObjectsRefused",
        "EdgeForbidden",
        "KindsUnknown",
        "DiskFailing",
    }
    assert "skerry edge manifest" in found["EdgeForbidden"]["message"]
    assert found["configmaps/shop.page"]["status"] == "False"
    assert found["Synced"]["reason"] == "ObjectsNotApplied"


def test_what_was_left_behind_does_not_make_an_edge_unsynced() -> None:
    page = ObjectRef("", "", "configmaps", "shop", "page")
    standing = Standing(troubled={page: SyncOutcome("Held", "NotRecorded", "whose is it")})
    found = {item["type"]: item for item in conditions(standing, [], "t1")}
    assert found["Synced"]["status"] == "True"
    assert found["configmaps/shop.page"]["status"] == "Unknown"


def test_many_troubled_objects_are_named_and_counted() -> None:
    troubled = {
        ObjectRef("", "", "configmaps", "n", f"c{i}"): SyncOutcome("Failed", "Rejected", "no")
        for i in range(7)
    }
    standing = Standing(objects=Objects(applied=3), troubled=troubled)
    message = conditions(standing, [], "t1")[0]["message"]
    assert message.startswith("3 objects applied; not as wanted: configmaps/n/c0, ")
    assert message.endswith(" and 2 more")


def test_numbers_and_what_is_held_are_reported_until_they_are_no_more() -> None:
    held = HeldDeletions(60, "0a1b2c3d4e", ("configmaps/shop/a", "configmaps/shop/b"))
    standing = Standing(objects=Objects(70, 8, 2, 1), held=held)
    [first] = report(CONFIG, standing, "t1", beat=False)
    assert isinstance(first, Patch)
    status = first.patch["status"]
    assert status["objects"] == {"wanted": 70, "applied": 8, "refused": 2, "unhealthy": 1}
    assert status["heldDeletions"] == {
        "count": 60,
        "approve": "0a1b2c3d4e",
        "names": ["configmaps/shop/a", "configmaps/shop/b"],
    }
    reported = {**CONFIG, "status": status}
    [later] = report(reported, replace(standing, held=None), "t2", beat=False)
    assert isinstance(later, Patch)
    assert later.patch == {"status": {"heldDeletions": None}}


def test_a_hub_that_drops_numbers_is_sent_them_once_and_with_each_beat() -> None:
    standing = Standing(objects=Objects(70, 8))
    forgetful = {**CONFIG, "status": {"conditions": conditions(standing, [], "t1")}}
    assert not report(forgetful, standing, "t2", beat=False, before=standing)
    [beat] = report(forgetful, standing, "t2", beat=True)
    assert isinstance(beat, Patch)
    assert "objects" in beat.patch["status"]
    [news] = report(forgetful, replace(standing, objects=Objects(71, 8)), "t2", beat=False)
    assert isinstance(news, Patch)
    assert news.patch["status"]["objects"]["wanted"] == 71


def test_what_the_edge_does_not_take_is_one_condition_with_the_command_to_run() -> None:
    def ref(name: str) -> ObjectRef:
        return ObjectRef("", "", "configmaps", "shop", name)

    troubled = {
        ref("c"): SyncOutcome("Failed", "Rejected", "data: too long"),
        ref("b"): SyncOutcome("Failed", "NotOurs", "somebody else's"),
        ref("a"): SyncOutcome("Failed", "EdgeFailing", "try later"),
        ref("d"): SyncOutcome("Waiting", "KindUnknown"),
    }
    standing = Standing(edge="florin", troubled=troubled)
    found = {item["type"]: item for item in conditions(standing, [], "t1")}["ObjectsRefused"]
    assert (found["status"], found["reason"]) == ("True", "NotOurs")
    assert found["message"] == (
        "NotOurs: configmaps/shop/b; Invalid: configmaps/shop/c; "
        "to take one over: skerry edge adopt florin configmaps/b -n shop"
    )
    del troubled[ref("b")]
    found = {item["type"]: item for item in conditions(standing, [], "t1")}["ObjectsRefused"]
    assert found["reason"] == "Invalid"
    assert found["message"].endswith("configmaps/shop/c: data: too long")
