"""Which event enqueues which placement, and what it is noted as the cause of."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import (
    GROUP,
    GUARD_FINALIZER,
    SINGLE_PLACEMENT_SLICES,
    SliceOwner,
    edge_placement_ref,
    location_ref,
)
from skerry.api.kcp.resources import workspace_ref
from skerry.api.objects import Object
from skerry.api.refs import ObjectRef
from skerry.controllers.edge_scheduler.events import EventHandlers
from skerry.controllers.edge_scheduler.guard_status import GuardReports
from skerry.controllers.edge_scheduler.guards import GuardState
from skerry.controllers.edge_scheduler.placement_cache import Causes
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.slices import lean_slice, new_slice
from tests.kit.chain import building
from tests.kit.chain.building import equal

NOW = datetime(2025, 6, 6, tzinfo=UTC)

P = edge_placement_ref("wmw", "p")


class World:
    """The handlers, and what they enqueued since the last look."""

    def __init__(self) -> None:
        self.table, self.causes = DestinationTable(), Causes()
        self.enqueued: list[ObjectRef] = []
        self.statuses: list[ObjectRef] = []
        self.inventories: list[str] = []
        self.guards: list[ObjectRef] = []
        self.followed = 0
        self.ours = False
        self.guard_state = GuardState(self.table, lambda: NOW, "espw")
        self.handlers = EventHandlers(
            self.table,
            lambda _: self.ours,
            self.causes,
            self.enqueued.append,
            self.statuses.append,
            self._follow,
            self._consent,
            GuardReports(self.guard_state, self.guards.append),
        )

    def _follow(self) -> None:
        self.followed += 1

    def _consent(self, inventories: Iterable[str]) -> None:
        self.inventories += inventories

    def taken(self) -> list[ObjectRef]:
        found = list(self.enqueued)
        self.enqueued.clear()
        return found

    def cause_of(self, ref: ObjectRef) -> tuple[str, ObjectRef] | None:
        newest = self.causes.of(ref).newest
        return None if newest is None else (newest.kind, newest.ref)

    def place(self, name: str = "p", *selectors: Object, **spec: Any) -> Object:
        obj = building.placement(name, *(selectors or ({},)), **spec)
        self.handlers.placement_changed(None, obj)
        return obj


def going(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}


def a_slice(name: str, owner: str | None, cluster: str = "wmw") -> Object:
    obj = new_slice(name, SliceOwner(owner or "", "u"), ())
    if owner is None:
        obj["metadata"] = {"name": name}
    obj["metadata"]["annotations"] = {"kcp.io/cluster": cluster}
    return lean_slice(obj)


def test_a_placement_enqueues_itself_and_is_in_the_table() -> None:
    world = World()
    obj = world.place()
    assert world.taken() == [P]
    assert world.cause_of(P) == ("EdgePlacement", P)
    assert world.table.placement(P) is not None
    world.handlers.placement_changed(obj, None)
    assert world.taken() == [P]
    assert world.table.placement(P) is None


def test_a_change_of_the_status_alone_enqueues_only_the_status() -> None:
    world = World()
    obj = world.place()
    world.taken()
    world.handlers.placement_changed(obj, {**obj, "status": {"destinationCount": 3}})
    assert (world.taken(), world.statuses) == ([], [P])


def test_a_finalizer_brings_a_placement_back_and_is_nobodys_change_of_mind() -> None:
    world = World()
    obj = world.place()
    world.taken()
    guarded = {**obj, "metadata": {**obj["metadata"], "finalizers": [GUARD_FINALIZER]}}
    world.handlers.placement_changed(obj, guarded)
    assert world.taken() == [P]
    assert [each.change for each in world.causes.of(P).known] == ["created"]
    world.handlers.placement_changed(guarded, going(guarded))
    assert world.causes.of(P).total == 2


def test_a_finalizer_that_a_decision_did_not_wait_for_brings_nobody_back() -> None:
    world = World()
    obj = world.place()
    world.taken()
    guarded = {**obj, "metadata": {**obj["metadata"], "finalizers": [GUARD_FINALIZER]}}
    world.guard_state.expect_finalizer(P)
    world.handlers.placement_changed(obj, guarded)
    assert world.taken() == []
    # Together with a change of mind it does.
    world.handlers.placement_changed(guarded, obj)
    world.taken()
    world.guard_state.expect_finalizer(P)
    world.handlers.placement_changed(obj, {**guarded, "spec": {"locationSelectors": []}})
    assert world.taken() == [P]


def test_a_placement_that_comes_or_goes_enqueues_the_one_that_counts_on_its_name() -> None:
    world = World()
    world.place("p")
    world.taken()
    obj = world.place("p-2")
    second = edge_placement_ref("wmw", "p-2")
    assert world.taken() == [second, P]
    assert world.cause_of(P) == ("EdgePlacement", second)
    world.handlers.placement_changed(obj, None)
    assert world.taken() == [second, P]
    world.place("q-2")
    assert world.taken() == [edge_placement_ref("wmw", "q-2")], "there is no q"


def test_workspaces_are_followed_once_a_placement_asks_for_their_labels() -> None:
    world = World()
    world.place()
    assert world.followed == 0
    world.place("q", locationWorkspaceSelector=equal(org="a"))
    assert world.followed == 1


def test_a_location_enqueues_the_placements_that_it_joins_and_leaves() -> None:
    world = World()
    world.place("p", equal(env="dev"))
    world.place("q", equal(env="prod"))
    world.taken()
    dev = building.location("l", {"env": "dev"}, {})
    world.handlers.location_changed(None, dev)
    assert world.taken() == [P]
    assert world.cause_of(P) == ("Location", location_ref("imw", "l"))
    prod = building.location("l", {"env": "prod"}, {})
    world.handlers.location_changed(dev, prod)
    assert world.taken() == [P, edge_placement_ref("wmw", "q")]
    world.handlers.location_changed(prod, going(prod))
    assert world.taken() == [edge_placement_ref("wmw", "q")]
    world.handlers.location_changed(going(prod), None)
    assert world.taken() == []


def test_a_sync_target_enqueues_the_placements_of_its_locations() -> None:
    world = World()
    world.place()
    world.handlers.location_changed(None, building.location("l", {}, {}))
    world.taken()
    target = building.sync_target("t", {})
    world.handlers.sync_target_changed(None, target)
    assert world.taken() == [P]
    world.handlers.sync_target_changed(target, going(target))
    assert world.taken() == [P]


def test_the_labels_of_a_workspace_enqueue_who_selects_by_them() -> None:
    world = World()
    world.place("p", locationWorkspaceSelector=equal(org="a"))
    world.handlers.location_changed(None, building.location("l", {}, {}))
    world.taken()
    space = {
        "metadata": {
            "name": "imw",
            "labels": {"org": "a"},
            "annotations": {"kcp.io/cluster": "root"},
        },
        "spec": {"cluster": "imw"},
    }
    world.handlers.workspace_changed(None, space)
    assert world.taken() == [P]
    assert world.cause_of(P) == ("Workspace", workspace_ref("root", "imw"))
    world.handlers.workspace_changed(space, None)
    assert world.taken() == [P]
    world.handlers.workspace_changed(None, {**space, "spec": {}})
    assert world.taken() == [], "a workspace without content yet"


def test_a_grant_enqueues_those_it_is_about_and_is_enforced_until_that_is_recorded() -> None:
    world = World()
    world.place()
    world.handlers.location_changed(None, building.location("l", {}, {}))
    world.taken()
    grant = building.grant("g", paths=["root:nobody"], selector={})
    world.handlers.grant_changed(None, grant)
    assert world.taken() == [P]
    assert "imw" in world.inventories
    assert world.followed == 1
    # A LocationConsent that has not caught up does not open the workspace again.
    record = {"metadata": {"name": "default", "annotations": {"kcp.io/cluster": "imw"}}}
    world.handlers.consent_changed(None, {**record, "mode": "Observe"})
    world.handlers.grant_changed(grant, None)
    assert world.table.consent.mode("imw") == "Enforce"
    world.handlers.consent_changed(None, {**record, "mode": "Enforce"})
    world.handlers.consent_changed(None, {**record, "mode": "Observe"})
    assert world.table.consent.mode("imw") is None


def test_a_consent_of_another_name_means_nothing() -> None:
    world = World()
    other = {"metadata": {"name": "other", "annotations": {"kcp.io/cluster": "imw"}}}
    world.handlers.consent_changed(None, {**other, "mode": "Enforce"})
    assert not world.inventories


def test_a_slice_enqueues_its_placement_its_former_one_and_its_namesake() -> None:
    world = World()
    for name in ("p", "q", "p-2"):
        world.place(name)
    world.taken()
    world.handlers.slice_changed(a_slice("p-2", "p"), a_slice("p-2", "q"))
    assert world.taken() == [edge_placement_ref("wmw", name) for name in ("p", "p-2", "q")]
    gone = ObjectRef("wmw", GROUP, SINGLE_PLACEMENT_SLICES.resource, "", "p-2")
    assert world.cause_of(P) == ("SinglePlacementSlice", gone)
    world.handlers.slice_changed(a_slice("x", None), None)
    assert world.taken() == [], "no placement has anything to do with it"


def test_the_echo_of_our_own_write_enqueues_nothing_and_a_deletion_is_never_one() -> None:
    world = World()
    world.place()
    world.taken()
    world.ours = True
    world.handlers.slice_changed(None, a_slice("p", "p"))
    assert world.taken() == []
    world.handlers.slice_changed(a_slice("p", "p"), None)
    assert world.taken() == [P]


def test_events_without_any_object_are_no_events() -> None:
    world = World()
    for handler in (
        world.handlers.placement_changed,
        world.handlers.location_changed,
        world.handlers.sync_target_changed,
        world.handlers.workspace_changed,
        world.handlers.grant_changed,
        world.handlers.consent_changed,
        world.handlers.slice_changed,
    ):
        handler(None, None)
    assert world.taken() == []


def a_location(by: str = "", **labels: str) -> Object:
    obj = building.location("l", labels)
    obj["metadata"]["resourceVersion"] = "7"
    if by:
        obj["metadata"]["annotations"]["edge.kcp.io/changed-by"] = by
    return obj


def test_a_cause_says_what_changed_and_who_did_it_but_not_who_deleted() -> None:
    world = World()
    world.place("p", equal(env="prod"))
    old, new = a_location(env="prod"), a_location(by="ann", env="dr", tier="a")
    for before, after, reported in (
        (None, old, ("created", "")),
        (old, new, ("label env=dr, tier=a", "ann")),
        (new, old, ("label env=prod, tier removed", "")),
        (old, None, ("deleted", "")),
    ):
        world.handlers.location_changed(before, after)
        newest = world.causes.of(P).newest
        assert newest is not None
        assert (newest.change, newest.changed_by, newest.resource_version) == (*reported, "7")
