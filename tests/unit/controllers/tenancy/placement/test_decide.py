"""Placements choose a Location and a SyncTarget, and keep to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.controllers.tenancy.placement.decide import CHOSEN, decide
from skerry.controllers.tenancy.placement.keys import (
    NAMESPACES,
    PLACED,
    differs,
    kept_sync_target,
    workspaces_of,
)
from skerry.controllers.tenancy.placement.observe import Choice, Instance, Observed, Seen
from skerry.logic.machinery.plan import Patch, Plan

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OPEN = Instance("open", ready=True)
CLOSED = Instance("closed")


def placement(**more: Any) -> dict[str, Any]:
    metadata = {"name": "p", "uid": "u-1", "annotations": {"kcp.io/cluster": "here"}}
    return {"metadata": metadata, "spec": {}, **more}


def observed(
    *choices: Choice, of: Any = None, namespaces: dict[str, bool] | None = None
) -> Observed:
    known = namespaces or {}
    seen = Seen(of or placement(), choices, frozenset(known))
    return Observed("here", (seen,), tuple(known.items()))


def after(before: Observed, plan: Plan) -> Observed:
    """Return what is seen when *plan* has been carried out."""
    (seen,) = before.placements
    made: dict[str, Any] = {**seen.placement, "metadata": dict(seen.placement["metadata"])}
    namespaces = dict(before.namespaces)
    for action in plan:
        assert isinstance(action, Patch)
        if action.target.gvr == NAMESPACES:
            namespaces[action.target.name] = action.patch["metadata"]["annotations"][PLACED] == ""
        elif action.subresource == "status":
            made["status"] = action.patch["status"]
        else:
            annotations = dict(made["metadata"].get("annotations") or {})
            value = action.patch["metadata"]["annotations"][CHOSEN]
            annotations.pop(CHOSEN, None)
            made["metadata"]["annotations"] = annotations | ({CHOSEN: value} if value else {})
    return Observed(
        before.cluster,
        (Seen(made, seen.choices, seen.namespaces),),
        tuple(namespaces.items()),
    )


def status_of(state: Observed) -> dict[str, Any]:
    found: dict[str, Any] = state.placements[0].placement["status"]
    return found


def conditions(state: Observed) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c.get("message", "")) for c in status_of(state)["conditions"]}


def settled(state: Observed) -> Observed:
    state = after(state, decide(state, NOW))
    assert not decide(state, NOW), "a second look finds nothing to do"
    return state


def test_a_placement_is_bound_to_a_location_with_a_target_that_is_ready() -> None:
    full, empty = Choice("imw", "full", (CLOSED, OPEN)), Choice("imw", "empty")
    state = settled(observed(empty, full, namespaces={"default": False}))
    assert status_of(state)["selectedLocation"] == {"path": "imw", "locationName": "full"}
    assert status_of(state)["phase"] == "Bound"
    assert conditions(state) == {"Ready": ("True", ""), "Scheduled": ("True", "")}
    assert state.placements[0].placement["metadata"]["annotations"][CHOSEN] == "open"
    assert dict(state.namespaces) == {"default": True}


def test_without_namespaces_it_is_unbound() -> None:
    state = settled(observed(Choice("imw", "l", (OPEN,))))
    assert status_of(state)["phase"] == "Unbound"


def test_without_locations_it_is_pending_and_says_why() -> None:
    state = settled(observed(namespaces={"default": True}))
    assert status_of(state)["phase"] == "Pending"
    assert conditions(state) == {
        "Ready": ("False", "No valid location is found"),
        "Scheduled": ("False", "No selected location is scheduled"),
    }
    assert dict(state.namespaces) == {"default": False}


def test_a_location_without_usable_targets_says_so() -> None:
    state = settled(observed(Choice("imw", "l")))
    assert conditions(state)["Scheduled"] == ("False", "No SyncTarget in the selected Location")
    gone = Instance("gone", ready=True, evicted=NOW)
    state = settled(observed(Choice("imw", "l", (CLOSED, gone))))
    assert conditions(state)["Scheduled"] == ("False", "No SyncTarget is ready or non evicting")


def test_eviction_is_looked_at_when_it_comes() -> None:
    evicting = Instance("leaving", ready=True, evicted=NOW + timedelta(seconds=30))
    plan = decide(observed(Choice("imw", "l", (evicting,))), NOW)
    assert plan.requeue_after_seconds == 30


def test_what_is_bound_stays_and_says_that_its_location_no_longer_fits() -> None:
    bound = settled(observed(Choice("imw", "l", (OPEN,)), namespaces={"default": False}))
    made = bound.placements[0].placement
    state = settled(observed(Choice("imw", "m", (OPEN,)), of=made, namespaces={"default": True}))
    assert status_of(state)["selectedLocation"]["locationName"] == "l"
    assert conditions(state) == {
        "Ready": ("False", "Selected location is invalid for current placement"),
        "Scheduled": ("False", "Selected location is not found"),
    }


def test_what_is_unbound_moves_to_a_location_that_fits() -> None:
    made = settled(observed(Choice("imw", "l", (OPEN,)))).placements[0].placement
    state = settled(observed(Choice("imw", "m", (OPEN,)), of=made))
    assert status_of(state)["selectedLocation"]["locationName"] == "m"


def test_namespaces_of_no_placement_are_let_go() -> None:
    (action,) = decide(Observed("here", (), (("default", True), ("other", False))), NOW)
    assert isinstance(action, Patch)
    assert (action.target.name, action.patch) == (
        "default",
        {"metadata": {"annotations": {PLACED: None}}},
    )


_INSTANCES = st.builds(
    Instance,
    st.sampled_from("abc"),
    st.booleans(),
    st.none() | st.sampled_from([NOW - timedelta(1), NOW + timedelta(1)]),
)
_CHOICES = st.lists(
    st.builds(Choice, st.just("imw"), st.sampled_from("xyz"), st.lists(_INSTANCES).map(tuple)),
    unique_by=lambda choice: choice.name,
)


@given(history=st.lists(st.tuples(_CHOICES, st.booleans()), min_size=1, max_size=4))
def test_whatever_happens_a_second_look_finds_nothing_to_do(
    history: list[tuple[list[Choice], bool]],
) -> None:
    made, placed = placement(), False
    for choices, has_namespace in history:
        namespaces = {"default": placed} if has_namespace else {}
        state = settled(observed(*choices, of=made, namespaces=namespaces))
        made = state.placements[0].placement
        placed = dict(state.namespaces).get("default", placed)


def test_a_location_is_found_by_both_names_of_its_workspace() -> None:
    annotations = {"kcp.io/cluster": "abc", "kcp.io/path": "root:imw"}
    assert list(workspaces_of({"metadata": {"annotations": annotations}})) == ["abc", "root:imw"]


def test_a_heartbeat_alone_is_no_change() -> None:
    def target(beat: str, version: str) -> dict[str, Any]:
        metadata = {"name": "t", "resourceVersion": version}
        status = {"lastSyncerHeartbeatTime": beat, "conditions": []}
        return {"metadata": metadata, "spec": {}, "status": status}

    before, later = kept_sync_target(target("a", "1")), kept_sync_target(target("b", "2"))
    assert not differs(before, later)
    assert differs(before, None)
    ready = {**later, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert differs(before, ready)
