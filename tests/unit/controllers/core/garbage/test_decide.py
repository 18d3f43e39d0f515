from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.kinds import GroupVersionResource, ResourceInfo
from skerry.api.objects import Object
from skerry.controllers.core.garbage.decide import decide
from skerry.controllers.core.garbage.graph import (
    FOREGROUND,
    ORPHAN,
    Graph,
    Node,
    NodeKey,
    OwnerRef,
    node_of,
)
from skerry.controllers.core.garbage.observe import Observed, Owner, State
from skerry.logic.machinery.plan import Delete, Patch, Plan, Target

PODS = ResourceInfo("", "v1", "pods", "Pod", True)


def obj(
    uid: str,
    owners: tuple[str, ...] = (),
    *,
    deleting: bool = False,
    finalizers: tuple[str, ...] = (),
    blocking: bool = True,
) -> Object:
    metadata: Object = {"name": uid, "namespace": "ns", "uid": uid, "resourceVersion": "5"}
    if owners:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner,
                "uid": owner,
                "blockOwnerDeletion": blocking,
            }
            for owner in owners
        ]
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"metadata": metadata}


def observed(
    live: Object, *states: State, dependents: tuple[Object, ...] = (), complete: bool = True
) -> Observed:
    refs = [OwnerRef.of(raw) for raw in live["metadata"].get("ownerReferences") or ()]
    return Observed(
        node_of(PODS, live),
        live,
        tuple(Owner(ref, state) for ref, state in zip(refs, states, strict=True)),
        tuple(node_of(PODS, dependent) for dependent in dependents),
        complete,
    )


def only(plan: Plan) -> Any:
    (action,) = plan.actions
    return action


def test_nothing_is_done_to_what_has_no_owner_or_a_present_one() -> None:
    assert not decide(observed(obj("a")))
    assert not decide(observed(obj("a", ("o",)), "solid"))


def test_an_owner_whose_end_nothing_would_report_is_looked_at_again() -> None:
    # Its type was not read yet: it may be gone again before it is, and then leaves no trace.
    plan = decide(observed(obj("a", ("o",)), "solid", complete=False))
    assert plan.requeue_after_seconds
    assert decide(observed(obj("a", ("o",)), "solid")).requeue_after_seconds is None


def test_an_object_whose_owners_are_all_absent_is_deleted_exactly() -> None:
    action = only(decide(observed(obj("a", ("o", "p")), "absent", "absent")))
    assert isinstance(action, Delete)
    assert (action.uid, action.resource_version, action.propagation) == ("a", "5", "Background")


@pytest.mark.parametrize("other", ["unknown", "misplaced"])
def test_an_owner_that_cannot_be_looked_up_keeps_the_object(other: State) -> None:
    plan = decide(observed(obj("a", ("o", "p")), "absent", other))
    assert not any(isinstance(action, Delete) for action in plan)


def test_references_that_lead_nowhere_are_dropped_from_what_stays() -> None:
    action = only(decide(observed(obj("a", ("o", "p", "q")), "solid", "absent", "waiting")))
    assert isinstance(action, Patch)
    metadata = action.patch["metadata"]
    assert [ref["uid"] for ref in metadata["ownerReferences"]] == ["o"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("a", "5")


def test_whoever_is_waited_for_waits_for_its_own_dependents() -> None:
    child = obj("child", ("a",))
    action = only(decide(observed(obj("a", ("o",)), "waiting", dependents=(child,))))
    assert isinstance(action, Delete)
    assert action.propagation == "Foreground"
    alone = only(decide(observed(obj("a", ("o",)), "waiting")))
    assert alone.propagation == "Background"


def test_a_circle_of_waiting_is_broken() -> None:
    child = obj("child", ("a",), deleting=True, finalizers=(FOREGROUND,))
    plan = decide(observed(obj("a", ("o",)), "waiting", dependents=(child,)))
    unblock, delete = plan.actions
    assert isinstance(unblock, Patch)
    assert unblock.patch["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is False
    assert isinstance(delete, Delete)
    assert (delete.uid, delete.resource_version) == ("a", "")


def test_a_circle_is_broken_only_in_the_object_that_was_read() -> None:
    """An owner that somebody adds meanwhile keeps the object: it must not be overwritten."""
    child = obj("child", ("a",), deleting=True, finalizers=(FOREGROUND,))
    plan = decide(observed(obj("a", ("o",)), "waiting", dependents=(child,)))
    unblock = plan.actions[0]
    assert isinstance(unblock, Patch)
    metadata = unblock.patch["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("a", "5")
    assert not unblock.retry_on_conflict


def test_foreground_deletion_ends_when_nothing_blocks_it_any_more() -> None:
    owner = obj("a", deleting=True, finalizers=(FOREGROUND, "example.com/other"))
    assert not decide(observed(owner, dependents=(obj("child", ("a",)),)))
    loose = obj("child", ("a",), blocking=False)
    action = only(decide(observed(owner, dependents=(loose,))))
    assert action.patch["metadata"]["finalizers"] == ["example.com/other"]


@pytest.mark.parametrize("finalizer", [FOREGROUND, ORPHAN])
def test_no_finalizer_is_taken_off_before_all_dependents_are_known(finalizer: str) -> None:
    owner = obj("a", deleting=True, finalizers=(finalizer,))
    plan = decide(observed(owner, complete=False))
    assert not plan
    assert plan.requeue_after_seconds is not None


def test_orphans_forget_their_owner_before_it_goes() -> None:
    owner = obj("a", deleting=True, finalizers=(ORPHAN,))
    plan = decide(observed(owner, dependents=(obj("child", ("a", "b")),)))
    forget, release = plan.actions
    assert isinstance(forget, Patch)
    assert isinstance(release, Patch)
    assert [ref["uid"] for ref in forget.patch["metadata"]["ownerReferences"]] == ["b"]
    assert release.patch["metadata"]["finalizers"] is None


def test_deletion_goes_as_the_finalizers_say() -> None:
    live = obj("a", ("o",), finalizers=(ORPHAN,))
    assert only(decide(observed(live, "absent"))).propagation == "Orphan"


def test_an_owner_in_another_namespace_is_reported_to_the_user() -> None:
    live = obj("a", ("o",))
    ref = OwnerRef.of(live["metadata"]["ownerReferences"][0])
    seen = Observed(node_of(PODS, live), live, (Owner(ref, "absent", "other"),), (), True)
    (announcement,) = decide(seen).announcements
    assert (announcement.type, announcement.reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert announcement.message == (
        'ownerRef [v1/Pod, namespace: ns, name: o, uid: o] does not exist in namespace "ns"'
    )


uids = st.sampled_from("abcdef")
states = st.tuples(
    uids, st.sets(uids, max_size=2), st.booleans(), st.sampled_from([(), (FOREGROUND,), (ORPHAN,)])
)
steps = st.lists(st.tuples(st.booleans(), states), max_size=40)


@settings(max_examples=150)
@given(steps)
def test_the_graph_knows_dependents_as_a_scan_would_and_enqueues_them(
    history: list[tuple[bool, tuple[str, set[str], bool, tuple[str, ...]]]],
) -> None:
    graph = Graph()
    plain: dict[str, Node] = {}
    for gone, (uid, owners, deleting, finalizers) in history:
        owned = tuple(sorted(owners - {uid}))
        node = node_of(PODS, obj(uid, owned, deleting=deleting, finalizers=finalizers))
        if gone:
            had = [n.key for n in plain.values() if any(ref.uid == uid for ref in n.owners)]
            enqueued = graph.remove(node.key)
            if plain.pop(uid, None) is not None:
                assert {key for key in had if key.uid != uid} <= enqueued
        else:
            enqueued = graph.put(node)
            plain[uid] = node
            if node.owners and any(ref.uid not in plain for ref in node.owners):
                assert node.key in enqueued
    assert len(graph) == len(plain)
    for uid in "abcdef":
        wanted = {n.key for n in plain.values() if any(ref.uid == uid for ref in n.owners)}
        assert {n.key for n in graph.dependents(NodeKey("", uid))} == wanted


def test_a_reference_keeps_its_flags() -> None:
    raw = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "a",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert OwnerRef.of(raw).raw() == raw


def test_targets_name_where_they_are() -> None:
    target = Target(GroupVersionResource("apps", "v1", "deployments"), "web", "ns", "root")
    assert str(target) == "deployments.apps root|ns/web"
