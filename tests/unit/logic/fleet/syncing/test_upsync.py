"""The difference for one object that was born at the edge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.carrying import digest
from skerry.logic.fleet.syncing.outcome import GONE
from skerry.logic.fleet.syncing.recorded import UpsyncRecord, upsynced_key
from skerry.logic.fleet.syncing.upsync import (
    UpsyncObserved,
    UpsyncPlan,
    needs_lookup,
    report_content,
    upsync,
)
from skerry.logic.machinery.plan import Apply, Delete, Patch, Record

WIDGETS = GroupVersionResource("test.example", "v1", "widgets")
REF = ObjectRef("", "test.example", "widgets", "shop", "w")


def widget(size: int = 1, ready: int = 0, **metadata: Any) -> Object:
    obj: Object = {
        "apiVersion": "test.example/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": "e1", **metadata},
        "spec": {"size": size},
    }
    return {**obj, "status": {"ready": ready}} if ready else obj


def recorded(obj: Object, *, uid: str = "m1") -> UpsyncRecord:
    status = digest(obj["status"]) if "status" in obj else ""
    return UpsyncRecord("v1", uid, digest(report_content(obj)), status)


def observed(**fields: Any) -> UpsyncObserved:
    """Return an object whose report is as it should be."""
    known: dict[str, Any] = {
        "ref": REF,
        "gvr": WIDGETS,
        "live": widget(ready=1),
        "edge_synced": True,
        "covered": True,
        "placed": False,
        "record": recorded(widget(ready=1)),
        "has_status": True,
    }
    return UpsyncObserved(**(known | fields))


def kinds(plan: UpsyncPlan) -> list[str]:
    return [f"{type(action).__name__} {action.reason}" for action in plan]


def test_a_report_that_is_as_it_should_be_is_left_alone() -> None:
    plan = upsync(observed())
    assert not plan
    assert plan.outcome is None


def test_a_new_object_is_reported_with_the_mark_of_a_report() -> None:
    plan = upsync(observed(record=None, taken=False))
    [apply] = plan
    assert isinstance(apply, Apply)
    assert apply.force
    assert apply.object["metadata"]["annotations"] == {"edge.kcp.io/upsynced": "true"}
    assert "status" not in apply.object
    assert plan.record == UpsyncRecord("v1", content=digest(apply.object))
    assert plan.outcome == GONE


def test_a_missing_namespace_is_made_first() -> None:
    plan = upsync(observed(record=None, taken=False, namespace_missing=True))
    assert kinds(plan) == ["Apply NamespaceMissing", "Apply Upsynced"]
    namespace = plan.actions[0]
    assert isinstance(namespace, Apply)
    assert namespace.object == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop"},
    }


def test_somebody_elses_object_of_the_name_is_left_alone() -> None:
    plan = upsync(observed(record=None, taken=True))
    assert not plan
    assert plan.outcome is not None
    assert plan.outcome.reason == "MailboxNotOurs"


def test_whose_the_name_is_matters_only_before_the_report_has_a_uid() -> None:
    assert needs_lookup(observed(record=None))
    assert needs_lookup(observed(record=UpsyncRecord("v1")))
    assert not needs_lookup(observed(record=None, taken=False))
    assert not needs_lookup(observed(record=recorded(widget(5))))
    assert not needs_lookup(observed(record=None, live=None))
    assert not needs_lookup(observed(record=None, served=False))


def test_a_changed_object_is_reported_again() -> None:
    assert kinds(upsync(observed(live=widget(2, ready=1)))) == ["Apply Upsynced"]


def test_a_changed_status_is_reported_then_recorded() -> None:
    now = widget(ready=2)
    patch, entry = upsync(observed(live=now))
    assert isinstance(patch, Patch)
    assert (patch.kind, patch.subresource, patch.quiet) == ("json", "status", True)
    assert patch.patch == [{"op": "add", "path": "/status", "value": {"ready": 2}}]
    assert isinstance(entry, Record)
    assert entry.entries == {upsynced_key(REF): recorded(now).encode()}


def test_a_status_without_a_part_of_its_own_is_patched_in_the_object() -> None:
    patch, _ = upsync(observed(live=widget(ready=2), has_status=False))
    assert isinstance(patch, Patch)
    assert patch.subresource == ""


def test_a_report_goes_with_its_original() -> None:
    plan = upsync(observed(live=None))
    delete, entry = plan
    assert isinstance(delete, Delete)
    assert (delete.reason, delete.uid) == ("OriginalGone", "m1")
    assert isinstance(entry, Record)
    assert entry.entries == {upsynced_key(REF): None}
    assert plan.outcome == GONE


def test_a_report_that_was_never_made_is_only_forgotten() -> None:
    assert kinds(upsync(observed(live=None, record=UpsyncRecord("v1")))) == ["Record Forgotten"]


def test_an_original_that_is_not_shown_yet_is_not_gone() -> None:
    assert not upsync(observed(live=None, edge_synced=False))


def test_a_report_nobody_asks_for_any_more_goes_whatever_the_edge_shows() -> None:
    assert kinds(upsync(observed(covered=False)))[0] == "Delete OutOfScope"
    assert kinds(upsync(observed(covered=False, live=None, edge_synced=False)))[0].startswith(
        "Delete"
    )


def test_what_every_cluster_makes_does_not_come_up() -> None:
    ref = ObjectRef("", "", "configmaps", "shop", "kube-root-ca.crt")
    live = {**widget(), "metadata": {"name": "kube-root-ca.crt", "namespace": "shop"}}
    assert not upsync(observed(ref=ref, live=live, record=None))


def test_what_goes_down_does_not_come_up_and_its_record_is_forgotten() -> None:
    assert kinds(upsync(observed(placed=True))) == ["Record Forgotten"]
    assert not upsync(observed(placed=True, record=None))


def test_without_a_syncer_config_nothing_is_done() -> None:
    assert not upsync(observed(covered=None, live=None))


def test_a_type_the_mailbox_lacks_is_not_written() -> None:
    assert not upsync(observed(served=False, live=widget(7)))


lives = st.none() | st.builds(widget, st.integers(1, 2), st.integers(0, 2))
observations = st.builds(
    observed,
    live=lives,
    edge_synced=st.booleans(),
    covered=st.sampled_from((None, True, False)),
    placed=st.booleans(),
    record=st.none() | st.builds(recorded, st.builds(widget, st.integers(1, 2))),
    served=st.booleans(),
    taken=st.booleans(),
    namespace_missing=st.booleans(),
)


def carry_out(o: UpsyncObserved) -> UpsyncObserved:
    """Do what the plan says, as a mailbox and a journal would; observe again."""
    plan = upsync(o)
    record = o.record
    for action in plan:
        if isinstance(action, Record):
            raw = action.entries[upsynced_key(REF)]
            record = UpsyncRecord.decode(raw) if isinstance(raw, dict) else None
        elif isinstance(action, Apply) and plan.record is not None:
            record = replace(plan.record, mailbox_uid="m1")
    return replace(o, record=record)


@settings(max_examples=200)
@given(observations)
def test_carrying_out_the_plan_leaves_nothing_to_do(o: UpsyncObserved) -> None:
    now = carry_out(carry_out(carry_out(o)))
    assert not upsync(now)
    if now.covered and not now.placed and now.served and now.live and now.record is not None:
        assert now.record.content == digest(report_content(now.live))


@settings(max_examples=200)
@given(observations)
def test_no_report_is_removed_for_want_of_reading(o: UpsyncObserved) -> None:
    unread = replace(o, live=None, edge_synced=False, covered=True)
    assert not any(isinstance(action, Delete) for action in upsync(unread))
    unconfigured = replace(o, covered=None)
    assert not upsync(unconfigured)
