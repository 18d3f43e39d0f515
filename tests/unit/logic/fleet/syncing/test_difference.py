"""The difference for one object that goes down: every branch, and the rules above all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef, namespace_ref
from skerry.logic.fleet.syncing.carrying import carried
from skerry.logic.fleet.syncing.difference import (
    DownsyncPlan,
    Observed,
    difference,
    needs_inspection,
)
from skerry.logic.fleet.syncing.evidence import Evidence
from skerry.logic.fleet.syncing.outcome import APPLIED, GONE, ORPHANED, SyncOutcome
from skerry.logic.fleet.syncing.present import OURS
from skerry.logic.fleet.syncing.recorded import DownsyncRecord, placed_key, released_key
from skerry.logic.fleet.syncing.wanted import Desired, Options
from skerry.logic.machinery.plan import Action, Apply, Delete, Record

REF = ObjectRef("", "", "configmaps", "shop", "page")
CRD = ObjectRef("", "apiextensions.k8s.io", "customresourcedefinitions", "", "w.t")
NAMESPACE = namespace_ref("shop")
STORE = "store-a"
FULL = Evidence(
    synced=True, configured=True, trusted=True, store=STORE, revision=100, config_revision=100
)
AWAY = Evidence()

options = st.builds(
    Options,
    create_only=st.booleans(),
    orphan=st.booleans(),
    adopt=st.booleans(),
    recreate=st.booleans(),
)


def desired(
    text: str = "a", uid: str = "u1", revision: int = 5, wish: Options | None = None
) -> Desired:
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": text}
    return Desired("v1", content, uid, revision, wish or Options())


def edge_object(uid: str = "e1", ours: str = "x", being_deleted: bool = False) -> Object:
    metadata: Object = {"name": "page", "namespace": "shop", "uid": uid}
    if being_deleted:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, OURS: ours}


def recorded(wish: Desired | None = None, **fields: Any) -> DownsyncRecord:
    """Return the record of an object that was applied and answered as ``edge_object()``."""
    wish = wish or desired()
    known = {"store": STORE, "edge_uid": "e1", "applied": wish.digest, "ours": "x"} | fields
    return DownsyncRecord(wish, **known)


def observed(**fields: Any) -> Observed:
    """Return an object that is wanted, at the edge, ours and as it should be."""
    record = recorded(config_revision=100)
    known: dict[str, Any] = {
        "ref": REF,
        "wanted": desired(),
        "covered": True,
        "live": edge_object(),
        "record": record,
        "evidence": FULL,
    }
    return Observed(**(known | fields))


def requests(plan: DownsyncPlan) -> list[Action]:
    return [action for action in plan if not isinstance(action, Record)]


def entries(plan: DownsyncPlan) -> dict[str, object]:
    found: dict[str, object] = {}
    for action in plan:
        if isinstance(action, Record):
            found |= action.entries
    return found


# -- wanted ----------------------------------------------------------------------------------


def test_an_object_that_is_as_wanted_is_left_alone() -> None:
    plan = difference(observed())
    assert not plan
    assert plan.outcome == APPLIED
    assert plan.requeue_after_seconds is None


def test_a_missing_object_is_applied_after_its_intent_was_recorded() -> None:
    plan = difference(observed(live=None, record=None))
    intent, apply = plan
    assert isinstance(intent, Record)
    assert isinstance(apply, Apply)
    assert intent.reason == "Intended"
    assert intent.entries == {placed_key(REF): plan.record and plan.record.encode()}
    assert plan.record is not None
    assert plan.record.is_intent
    assert plan.record.created
    assert (apply.reason, apply.force, apply.object) == ("Missing", False, desired().content)
    assert plan.requeue_after_seconds == 11


def test_an_object_that_vanished_is_made_anew_under_an_intent() -> None:
    plan = difference(observed(live=None, record=recorded(created=False)))
    assert [action.reason for action in requests(plan)] == ["Missing"]
    assert plan.record is not None
    assert plan.record.is_intent
    assert plan.record.created, "what we make now is ours to delete"


def test_a_later_revision_of_the_same_content_writes_nothing() -> None:
    assert not difference(observed(wanted=desired(revision=90)))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"wanted": desired("b")}, "Changed"),
        ({"live": edge_object(ours="touched")}, "Drifted"),
        ({"record": recorded(applied="", ours="")}, "Changed"),
    ],
)
def test_what_differs_is_applied_with_force(fields: dict[str, Any], reason: str) -> None:
    [apply] = requests(difference(observed(**fields)))
    assert isinstance(apply, Apply)
    assert (apply.reason, apply.force) == (reason, True)


def test_an_object_being_deleted_at_the_edge_is_awaited() -> None:
    plan = difference(observed(live=edge_object(being_deleted=True)))
    assert not requests(plan)
    assert plan.outcome.reason == "BeingDeleted"
    assert "created again" in plan.outcome.message


def test_a_create_only_object_is_made_once_and_then_let_be() -> None:
    wish = desired("b", wish=Options(create_only=True))
    plan = difference(observed(wanted=wish, record=recorded(edge_uid="", applied="", ours="")))
    assert not requests(plan)
    assert plan.record is not None
    assert plan.record.edge_uid == "e1"
    assert entries(plan).keys() == {placed_key(REF)}
    assert requests(difference(observed(wanted=wish, live=None, record=None)))


def test_somebody_elses_object_is_not_touched() -> None:
    plan = difference(observed(record=None, live=edge_object(ours="")))
    assert not plan
    assert plan.outcome.reason == "NotOurs"
    assert plan.record is None, "an object that is not ours has no record"


def test_an_object_that_replaced_ours_is_somebody_elses() -> None:
    plan = difference(observed(live=edge_object("e2", ours="")))
    assert not plan
    assert plan.outcome.reason == "NotOurs"


def test_a_lost_record_is_made_good_by_the_servers_word() -> None:
    [apply] = requests(difference(observed(record=None)))
    assert isinstance(apply, Apply)
    assert apply.force


def test_an_adopted_object_is_taken_over_but_never_deleted() -> None:
    wish = desired(wish=Options(adopt=True))
    plan = difference(observed(wanted=wish, record=None, live=edge_object("theirs", ours="")))
    [apply] = requests(plan)
    assert isinstance(apply, Apply)
    assert (apply.reason, apply.force) == ("Adopted", True)
    assert plan.record is not None
    assert not plan.record.created


def test_a_namespace_that_was_there_is_joined_without_force() -> None:
    plan = difference(observed(ref=NAMESPACE, record=None, live=edge_object("theirs", ours="")))
    [apply] = requests(plan)
    assert isinstance(apply, Apply)
    assert (apply.reason, apply.force) == ("Joined", False)
    assert plan.record is not None
    assert not plan.record.created


def test_an_immutable_field_is_a_persons_concern_unless_they_asked_to_recreate() -> None:
    changed = observed(wanted=desired("b"), immutable=True)
    plan = difference(changed)
    assert not requests(plan)
    assert plan.outcome.reason == "ImmutableField"
    asked = desired("b", wish=Options(recreate=True))
    plan = difference(replace(changed, wanted=asked))
    [delete] = requests(plan)
    assert isinstance(delete, Delete)
    assert (delete.reason, delete.uid) == ("Recreated", "e1")
    assert not plan.deletes, "the budget is for what does not come back"


def test_a_type_the_edge_lacks_is_awaited_by_name() -> None:
    plan = difference(observed(served=False, live=None))
    assert not plan
    assert plan.outcome.reason == "KindUnknown"
    assert "does not serve configmaps.v1;" in plan.outcome.message


def test_nothing_is_asked_of_an_edge_that_lacks_the_type() -> None:
    away = observed(served=False, live=None, wanted=None, evidence=AWAY)
    plan = difference(away)
    assert not requests(plan)
    assert plan.outcome.state == "Held"
    assert plan.requeue_after_seconds is None
    gone = difference(replace(away, evidence=FULL))
    assert entries(gone) == {placed_key(REF): None}


def test_what_the_edge_does_not_show_is_tried_again() -> None:
    refused = SyncOutcome("Failed", "EdgeForbidden", "the edge must allow get")
    plan = difference(observed(unreadable=refused, live=None))
    assert plan.retry
    assert plan.outcome == refused
    assert not plan


# -- not wanted ------------------------------------------------------------------------------


def unwanted(**fields: Any) -> Observed:
    """Return an object we placed whose absence from the mailbox is believed."""
    return observed(**({"wanted": None, "budget": "allowed"} | fields))


@pytest.mark.parametrize(("covered", "reason"), [(True, "Unwanted"), (False, "OutOfScope")])
def test_what_nobody_wants_is_deleted_by_uid(covered: bool, reason: str) -> None:
    plan = difference(unwanted(covered=covered, record=recorded()))
    [delete] = requests(plan)
    assert isinstance(delete, Delete)
    assert (delete.reason, delete.uid, delete.propagation) == (reason, "e1", "Background")
    assert plan.deletes
    assert plan.record is not None, "forgotten when it is gone, not before"


def test_a_deletion_is_proposed_before_it_is_made() -> None:
    plan = difference(unwanted(budget="unproposed"))
    assert not plan
    assert plan.deletes
    assert plan.requeue_after_seconds == 0


def test_a_deletion_beyond_the_budget_is_held() -> None:
    plan = difference(unwanted(budget="held"))
    assert not plan
    assert plan.deletes
    assert plan.outcome.reason == "DeletionHeld"


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (AWAY, "HubAway"),
        (replace(FULL, configured=False), "NoSyncerConfig"),
        (replace(FULL, trusted=False), "HubIdentityChanged"),
        (replace(FULL, synced=False), "HubAway"),
        (replace(FULL, revision=5), "NotNewer"),
    ],
)
def test_without_evidence_the_record_speaks_for_the_mailbox(
    evidence: Evidence, reason: str
) -> None:
    kept = difference(unwanted(evidence=evidence))
    assert not kept
    assert (kept.outcome.state, kept.outcome.reason) == ("Held", reason)
    repaired = difference(unwanted(evidence=evidence, live=None))
    assert [action.reason for action in requests(repaired)] == ["Missing"]
    drifted = difference(unwanted(evidence=evidence, live=edge_object(ours="touched")))
    assert [action.reason for action in requests(drifted)] == ["Drifted"]


@pytest.mark.parametrize("live", [None, edge_object("e2", ours="")])
def test_what_is_gone_or_replaced_is_forgotten(live: Object | None) -> None:
    plan = difference(unwanted(live=live))
    assert not requests(plan)
    assert plan.outcome == GONE
    assert entries(plan) == {placed_key(REF): None}


@pytest.mark.parametrize(
    "record",
    [
        recorded(desired(wish=Options(orphan=True))),
        recorded(desired(wish=Options(create_only=True))),
        recorded(created=False),
    ],
)
def test_what_is_left_at_the_edge_on_purpose_is_noted_by_uid(record: DownsyncRecord) -> None:
    plan = difference(unwanted(record=record))
    assert not requests(plan)
    assert plan.outcome == ORPHANED
    assert entries(plan) == {placed_key(REF): None, released_key(REF): "e1"}


def test_what_was_left_is_ours_again_when_it_is_wanted_again() -> None:
    plan = difference(observed(record=None, released_uid="e1"))
    assert entries(plan)[released_key(REF)] is None


def test_an_unwanted_object_that_is_being_deleted_is_awaited() -> None:
    plan = difference(unwanted(live=edge_object(being_deleted=True)))
    assert not plan
    assert plan.outcome.reason == "Finalizing"


def test_an_intent_stays_while_its_apply_may_still_take_effect() -> None:
    intent = recorded(edge_uid="", applied="", ours="")
    waiting = unwanted(live=None, record=intent, settling_seconds=40.0)
    plan = difference(waiting)
    assert not plan
    assert plan.requeue_after_seconds == 40.0
    assert plan.record == intent
    assert entries(difference(replace(waiting, settling_seconds=0.0))) == {placed_key(REF): None}


def test_an_object_of_ours_without_a_record_is_reported_of_and_not_touched() -> None:
    lost = observed(wanted=None, record=None)
    assert difference(lost).outcome.reason == "NotRecorded"
    assert not difference(lost)
    assert difference(replace(lost, released_uid="e1")).outcome == GONE
    assert difference(replace(lost, live=None)).outcome == GONE
    assert difference(replace(lost, live=edge_object(ours=""))).outcome == GONE


@pytest.mark.parametrize("ref", [NAMESPACE, CRD])
def test_a_container_is_deleted_only_when_nothing_else_is_inside(ref: ObjectRef) -> None:
    unknown = unwanted(ref=ref)
    assert needs_inspection(unknown)
    assert not difference(unknown)
    full = difference(replace(unknown, in_use="configmaps/shop/theirs is there"))
    assert not full
    assert (full.outcome.state, full.outcome.reason) == ("Held", "InUse")
    assert full.requeue_after_seconds == 60
    empty = replace(unknown, in_use="")
    assert not needs_inspection(empty)
    assert [type(action) for action in difference(empty)] == [Delete]


def test_only_a_container_about_to_go_is_looked_into() -> None:
    assert not needs_inspection(unwanted())
    assert not needs_inspection(observed(ref=NAMESPACE))
    assert not needs_inspection(unwanted(ref=NAMESPACE, evidence=AWAY))
    assert not needs_inspection(unwanted(ref=NAMESPACE, live=None))


# -- whatever is observed --------------------------------------------------------------------

wishes = st.builds(
    desired,
    st.sampled_from(("a", "b", "")),
    st.sampled_from(("u1", "u2")),
    st.integers(1, 120),
    options,
)
lives = st.none() | st.builds(
    edge_object, st.sampled_from(("e1", "e2")), st.sampled_from(("", "x", "y")), st.booleans()
)
records = st.none() | st.builds(
    DownsyncRecord,
    desired=wishes,
    store=st.sampled_from((STORE, "store-b")),
    config_revision=st.integers(0, 120),
    edge_uid=st.sampled_from(("", "e1", "e2")),
    applied=st.sampled_from(("", "z")),
    ours=st.sampled_from(("", "x", "y")),
    created=st.booleans(),
)
evidences = st.builds(
    Evidence,
    synced=st.booleans(),
    configured=st.booleans(),
    trusted=st.booleans(),
    store=st.sampled_from((STORE, "store-b")),
    revision=st.integers(0, 120),
    config_revision=st.integers(0, 120),
)
observations = st.builds(
    Observed,
    ref=st.sampled_from((REF, NAMESPACE, CRD)),
    wanted=st.none() | wishes,
    covered=st.booleans(),
    live=lives,
    record=records,
    evidence=evidences,
    served=st.booleans(),
    immutable=st.booleans(),
    in_use=st.sampled_from((None, "", "configmaps/shop/theirs is there")),
    released_uid=st.sampled_from(("", "e1")),
    budget=st.sampled_from(("unproposed", "held", "allowed")),
    settling_seconds=st.sampled_from((0.0, 40.0)),
)


@settings(max_examples=300)
@given(observations)
def test_nothing_is_deleted_without_evidence(o: Observed) -> None:
    for action in difference(o):
        if not isinstance(action, Delete):
            continue
        assert o.live is not None
        assert action.uid == o.live["metadata"]["uid"]
        if action.reason == "Recreated":
            # Deleted to be made anew, because its owner asked for exactly that.
            kept = o.record.desired if o.record else None
            wish = o.wanted if o.wanted is not None and o.covered else kept
            assert wish is not None
            assert o.immutable
            assert wish.options.recreate
            continue
        assert not (o.wanted is not None and o.covered)
        assert o.record is not None
        assert o.record.is_of(o.live)
        assert o.record.created
        assert not o.record.desired.options.orphan
        assert not o.record.desired.options.create_only
        assert o.evidence.configured
        assert o.evidence.trusted
        assert o.budget == "allowed"
        assert o.evidence.synced or not o.covered
        if o.record.store == o.evidence.store:
            newer = (
                o.evidence.revision > o.record.desired.revision
                if o.covered
                else o.evidence.config_revision > o.record.config_revision
            )
            assert newer
        if o.ref != REF:
            assert o.in_use == ""


@settings(max_examples=200)
@given(
    observations,
    st.sampled_from(
        (
            {"configured": False},
            {"trusted": False},
            {"configured": False, "synced": False},
        )
    ),
)
def test_no_plan_deletes_or_forgets_whatever_is_incomplete(
    o: Observed, gap: dict[str, Any]
) -> None:
    incomplete = replace(o, wanted=None, immutable=False, evidence=replace(o.evidence, **gap))
    plan = difference(incomplete)
    assert not any(isinstance(action, Delete) for action in plan)
    assert not plan.deletes
    if o.record is not None:
        assert plan.record is not None


@settings(max_examples=200)
@given(observations)
def test_a_record_is_forgotten_only_when_absence_is_believed(o: Observed) -> None:
    plan = difference(o)
    if o.record is None or plan.record is not None:
        return
    assert not (o.wanted is not None and o.covered)
    assert o.evidence.configured
    assert o.evidence.trusted


@settings(max_examples=200)
@given(observations)
def test_what_is_not_ours_is_never_overwritten_unless_adopted(o: Observed) -> None:
    for action in difference(o):
        if not isinstance(action, Apply) or o.live is None:
            continue
        recorded_wish = o.record.desired if o.record is not None else None
        wish = o.wanted if o.wanted is not None and o.covered else recorded_wish
        known = o.record is not None and o.record.is_of(o.live)
        marked = bool(o.live[OURS]) and not (o.record and o.record.edge_uid)
        namespace = o.ref.resource == "namespaces" and not action.force
        adopted = wish is not None and wish.options.adopt
        assert known or marked or namespace or adopted


@settings(max_examples=200)
@given(observations)
def test_what_is_done_is_recorded_first_and_what_is_recorded_is_what_the_plan_says(
    o: Observed,
) -> None:
    plan = difference(o)
    kinds = [isinstance(action, Record) for action in plan]
    assert kinds == sorted(kinds, reverse=True)
    written = entries(plan)
    if plan.record != o.record:
        assert written[placed_key(o.ref)] == (plan.record and plan.record.encode())
    else:
        assert not written


def seen(content: Object) -> str:
    """Return the digest of our fields; a server notes none for an object that says nothing."""
    return f"seen-{content['data']}" if content["data"] else ""


def carry_out(o: Observed) -> Observed:
    """Do what the plan says, as an edge, a journal and a budget with room would; observe again."""
    plan = difference(o)
    record, live, released = plan.record, o.live, o.released_uid
    for action in plan:
        if isinstance(action, Delete):
            live = None
        elif isinstance(action, Record):
            released = str(action.entries.get(released_key(o.ref), released) or "")
        else:
            assert isinstance(action, Apply)
            uid = live["metadata"]["uid"] if live else "e9"
            live = edge_object(uid, seen(action.object))
            assert record is not None
            record = replace(record, edge_uid=uid, applied=record.desired.digest, ours=live[OURS])
    budget = "allowed" if plan.deletes and o.budget == "unproposed" else o.budget
    return replace(
        o, live=live, record=record, released_uid=released, budget=budget, immutable=False
    )


@settings(max_examples=300)
@given(observations)
def test_carrying_out_the_plan_reaches_the_goal_and_leaves_nothing_to_do(o: Observed) -> None:
    now = o
    for _ in range(4):
        now = carry_out(now)
    plan = difference(now)
    assert not plan
    if now.wanted is not None and now.covered and plan.outcome.state == "Applied":
        assert now.live is not None
        if not now.wanted.options.create_only:
            assert now.live[OURS] == seen(now.wanted.content)


def test_notes_of_tools_applied_by_an_earlier_version_cost_one_apply_and_nothing_else() -> None:
    tracked = {"name": "page", "annotations": {"argocd.argoproj.io/tracking-id": "shop:page"}}
    source: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": tracked, "data": {}}
    before = replace(desired(), content=source)
    wish = replace(desired(), content=carried(source))
    plan = difference(observed(wanted=wish, record=recorded(before, config_revision=100)))
    [apply] = requests(plan)
    assert isinstance(apply, Apply)
    assert apply.object == wish.content
    assert not plan.deletes
    assert plan.record is not None
    after = replace(plan.record, applied=wish.digest)
    assert not list(difference(observed(wanted=wish, record=after)))
