"""The decision about one object, and the rule above all others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.syncing.downsync import Observed, decide
from skerry.logic.fleet.syncing.evidence import Evidence
from skerry.logic.fleet.syncing.projection import OURS
from skerry.logic.fleet.syncing.records import Desired, Options, Placed
from skerry.logic.machinery.plan import Apply, Delete

REF = ObjectRef("", "", "configmaps", "shop", "page")
STORE = "store-a"
FULL = Evidence(
    synced=True, configured=True, trusted=True, store=STORE, revision=100, config_revision=100
)

options = st.builds(
    Options,
    create_only=st.booleans(),
    orphan=st.booleans(),
    adopt=st.booleans(),
    recreate=st.booleans(),
)


def desired(text: str, uid: str, revision: int, wish: Options) -> Desired:
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": text}
    return Desired("v1", content, uid, revision, wish)


wishes = st.builds(
    desired,
    st.sampled_from(("a", "b", "")),
    st.sampled_from(("u1", "u2")),
    st.integers(1, 120),
    options,
)


def edge_object(uid: str, ours: str, going: bool) -> Object:
    metadata: Object = {"name": "page", "namespace": "shop", "uid": uid}
    if going:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, OURS: ours}


lives = st.none() | st.builds(
    edge_object, st.sampled_from(("e1", "e2")), st.sampled_from(("", "x", "y")), st.booleans()
)
records = st.none() | st.builds(
    Placed,
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
    within_budget=st.booleans(),
)
kinds = st.sampled_from(
    (
        REF,
        ObjectRef("", "", "namespaces", "", "shop"),
        ObjectRef("", "apiextensions.k8s.io", "customresourcedefinitions", "", "w.t"),
    )
)
observations = st.builds(
    Observed,
    ref=kinds,
    wanted=st.none() | wishes,
    covered=st.booleans(),
    live=lives,
    record=records,
    evidence=evidences,
    immutable=st.booleans(),
    in_use=st.sampled_from((None, "", "configmaps/shop/theirs is there")),
    released=st.booleans(),
)


@settings(max_examples=200)
@given(observations)
def test_nothing_is_deleted_without_evidence(o: Observed) -> None:
    for action in decide(o).plan:
        if not isinstance(action, Delete):
            continue
        assert o.live is not None
        assert action.uid == o.live["metadata"]["uid"]
        if o.wanted is not None and o.covered:
            # Deleted to be made anew, because its owner asked for exactly that.
            assert action.reason == "Recreated"
            assert o.immutable
            assert o.wanted.options.recreate
            continue
        if action.reason == "Recreated":
            assert o.record is not None
            assert o.record.desired.options.recreate
            continue
        assert o.record is not None
        assert o.record.is_of(o.live)
        assert o.record.created
        assert not o.record.desired.options.orphan
        assert not o.record.desired.options.create_only
        assert o.evidence.configured
        assert o.evidence.trusted
        assert o.evidence.within_budget
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
@given(observations)
def test_a_record_is_forgotten_only_when_absence_is_believed(o: Observed) -> None:
    decision = decide(o)
    if o.record is None or decision.record is not None:
        return
    assert not (o.wanted is not None and o.covered)
    assert o.evidence.configured
    assert o.evidence.trusted


@settings(max_examples=200)
@given(observations)
def test_what_is_not_ours_is_never_overwritten_unless_adopted(o: Observed) -> None:
    for action in decide(o).plan:
        if not isinstance(action, Apply) or o.live is None:
            continue
        recorded = o.record.desired if o.record is not None else None
        wish = o.wanted if o.wanted is not None and o.covered else recorded
        known = o.record is not None and o.record.is_of(o.live)
        marked = bool(o.live[OURS]) and not (o.record and o.record.edge_uid)
        namespace = o.ref.resource == "namespaces" and not action.force
        adopted = wish is not None and wish.options.adopt
        assert known or marked or namespace or adopted


def seen(content: Object) -> str:
    """Return the digest of our fields; a server notes none for an object that says nothing."""
    return f"seen-{content['data']}" if content["data"] else ""


def carry_out(o: Observed) -> Observed:
    """Do what the plan says, as an edge would, and look again."""
    decision = decide(o)
    record, live = decision.record, o.live
    for action in decision.plan:
        if isinstance(action, Delete):
            live = None
        else:
            assert isinstance(action, Apply)
            uid = live["metadata"]["uid"] if live else "e9"
            live = edge_object(uid, seen(action.object), going=False)
            assert record is not None
            created = True if o.live is None else record.created
            record = replace(
                record,
                edge_uid=uid,
                applied=record.desired.digest,
                ours=live[OURS],
                created=created,
            )
    return replace(o, live=live, record=record, immutable=False)


@settings(max_examples=200)
@given(observations)
def test_carrying_out_the_plan_reaches_the_goal_and_leaves_nothing_to_do(o: Observed) -> None:
    now = o
    for _ in range(4):
        now = carry_out(now)
    assert not decide(now).plan
    decision = decide(now)
    if now.wanted is not None and now.covered and decision.outcome.state == "Applied":
        assert now.live is not None
        if not now.wanted.options.create_only:
            assert now.live[OURS] == seen(now.wanted.content)


def test_a_missing_object_is_restored_from_the_record_while_the_hub_is_away() -> None:
    wish = desired("a", "u1", 5, Options())
    record = Placed(wish, store=STORE, edge_uid="e1", applied=wish.digest, ours="x")
    away = Evidence(store="", synced=False)
    decision = decide(Observed(REF, None, True, None, record, away))
    assert [type(action) for action in decision.plan] == [Apply]
    assert decision.outcome.reason == "NoSyncerConfig" or decision.outcome.reason == "HubAway"


def test_an_object_with_a_reappeared_name_is_not_ours_to_delete() -> None:
    wish = desired("a", "u1", 5, Options())
    record = Placed(wish, store=STORE, edge_uid="e1", applied=wish.digest, ours="x")
    live = edge_object("e2", "", going=False)
    decision = decide(Observed(REF, None, True, live, record, FULL))
    assert not decision.plan
    assert decision.record is None
