"""What guards make of a decision about slices; the simulation has the whole story."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from skerry.api.edge import (
    CONFIRM,
    GUARD_FINALIZER,
    SliceOwner,
    edge_placement_ref,
    location_ref,
    sync_target_ref,
)
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.decide import decide
from skerry.controllers.edge_scheduler.guards import GuardState, Unread, allow, exceeds_floor
from skerry.controllers.edge_scheduler.observed import Guarded, Observed, Result
from skerry.logic.fleet.guards.budget import FLOOR_RULE, Rule
from skerry.logic.fleet.guards.spec import Budget, Guard, guard_of
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import Destination, SyncTarget, location_of
from skerry.logic.fleet.placement.slices import lean_slice, member, new_slice

NOW = datetime(2025, 6, 6, tzinfo=UTC)
P = edge_placement_ref("wmw", "web")
OWNER = SliceOwner("web", "u1")
REMOVALS = {"of": "DestinationsRemoved", "max": 1}
_ONE = Rule("fleet", Budget("DestinationsRemoved", max=1, window=timedelta(minutes=10)))


def places(*numbers: int) -> tuple[Destination, ...]:
    return tuple(sorted(Destination("imw", f"l{n}", f"t{n}", f"uid{n}") for n in numbers))


def placement(**metadata: Any) -> Object:
    return {"metadata": {"name": "web", "uid": "u1", "finalizers": [GUARD_FINALIZER], **metadata}}


def observed(
    held: tuple[Destination, ...], wanted: tuple[Destination, ...], guarded: Guarded | None = None
) -> Observed:
    piece = lean_slice(new_slice("web", OWNER, held))
    piece["metadata"] = {**piece["metadata"], "uid": "s1", "resourceVersion": "7"}
    return Observed(P, OWNER, Result(1), wanted, {"web": piece}, ("web",), guarded=guarded)


def guarded(*departing: Destination, obj: Object | None = None, **more: Any) -> Guarded:
    usual = {"rules": (_ONE,), "now": NOW, "present": 10, "departing": departing}
    return Guarded(obj or placement(), **{**usual, **more})


def test_what_is_held_stays_in_the_slices_and_additions_go_on() -> None:
    found = allow(observed(places(1, 2), places(3), guarded(*places(1, 2))))
    assert found.observed.destinations == places(1, 2, 3)
    [action] = found.before
    assert action.subresource == "status"  # type: ignore[union-attr]
    assert action.object["status"]["removals"]["held"]["removed"] == 2  # type: ignore[union-attr]
    assert [each.reason for each in found.announcements] == ["RemovalsHeld"]


def test_a_charge_is_written_before_the_slices() -> None:
    plan = decide(observed(places(1, 2), places(2), guarded(*places(1))))
    assert [each.reason for each in plan.before] == ["BookChanged"]
    assert [each.reason for each in plan.actions] == ["DestinationsChanged"]


def test_a_confirmation_is_taken_before_the_slices_change() -> None:
    first = allow(observed(places(1, 2), (), guarded(*places(1, 2)))).before[0]
    hold = first.object["status"]["removals"]["held"]  # type: ignore[union-attr]
    obj = placement(annotations={CONFIRM: hold["name"], "a": "b"})
    plan = decide(observed(places(1, 2), (), guarded(*places(1, 2), obj=obj)))
    [action] = plan.before
    assert action.object["metadata"]["annotations"] == {"a": "b"}  # type: ignore[union-attr]
    assert plan.actions


def test_exempt_ones_go_and_frozen_ones_stay_until_the_freeze_ends() -> None:
    found = allow(
        observed(
            places(1, 2, 3),
            places(4),
            guarded(
                *places(1, 2, 3),
                exempt=frozenset(places(1, 3)),
                frozen=frozenset(places(2)),
                barred=frozenset(places(4)),
                until=NOW + timedelta(minutes=1),
            ),
        )
    )
    assert found.observed.destinations == places(2)
    assert found.before == ()
    assert found.requeue_after_seconds == 60


def test_a_large_placement_gets_its_finalizer_before_its_slices() -> None:
    wanted = places(*range(51))
    obj = placement(finalizers=["other"])
    plan = decide(observed((), wanted, guarded(obj=obj, rules=(FLOOR_RULE,))))
    [action] = plan.before
    assert action.object["metadata"]["finalizers"] == ["other", GUARD_FINALIZER]  # type: ignore[union-attr]
    assert plan.actions
    assert plan.finalizes
    few = decide(observed((), wanted[:50], guarded(obj=obj, rules=(FLOOR_RULE,))))
    assert few.actions
    assert not few.before
    assert not few.finalizes


def test_a_finalizer_is_written_alone_where_the_placement_is_to_be_written_otherwise_too() -> None:
    """A placement is written once per decision, with the version that was read."""
    wanted, rules = places(*range(2, 54)), (FLOOR_RULE, *guarded().rules)
    obj = placement(finalizers=["other"])
    charged = observed(places(*range(1, 54)), wanted, guarded(*places(1), obj=obj, rules=rules))
    staged = replace(observed((), wanted, guarded(obj=obj, rules=rules)), staged=obj)
    for world in (charged, staged):
        plan = decide(world)
        assert [each.reason for each in plan.before] == ["GuardNeeded"]
        assert not plan.actions
        assert plan.undecided
        assert not plan.finalizes


def test_only_the_finalizer_that_was_just_written_is_no_news() -> None:
    state = GuardState(DestinationTable(), lambda: NOW)
    plain, kept = placement(finalizers=["a"]), placement(finalizers=["a", GUARD_FINALIZER])
    assert not state.take_finalizer(P, plain, kept)
    state.expect_finalizer(P)
    assert state.take_finalizer(P, plain, kept)
    assert not state.take_finalizer(P, plain, kept)
    for old, new in (
        (kept, plain),
        (plain, placement(finalizers=["a", "b", GUARD_FINALIZER])),
        (plain, placement(finalizers=[GUARD_FINALIZER])),
    ):
        state.expect_finalizer(P)
        assert not state.take_finalizer(P, old, new)
        assert not state.take_finalizer(P, plain, kept)
    state.expect_finalizer(P)
    state.expect_finalizer(P, expected=False)
    assert not state.take_finalizer(P, plain, kept)


def test_a_placement_that_is_being_deleted_goes_or_is_held() -> None:
    obj = placement(deletionTimestamp="2025-06-06T00:00:00Z")
    kept = decide(observed(places(1, 2), (), guarded(*places(1, 2), obj=obj)))
    assert [each.reason for each in kept.before] == ["BookChanged"]
    assert kept.actions == ()
    free = decide(observed(places(1), (), guarded(*places(1), obj=obj)))
    assert [each.reason for each in free.before] == ["GuardPassed"]
    assert free.before[0].object["metadata"]["finalizers"] == []  # type: ignore[union-attr]


def test_the_floor_is_looked_at_without_any_guard() -> None:
    assert not exceeds_floor([range(50)], ())
    assert exceeds_floor([range(51)], ())
    assert not exceeds_floor([range(100)], range(50))
    world = observed(places(*range(60)), ())
    assert decide(world, floor=True).examine
    assert not decide(world).examine


def test_what_departs_is_read_page_by_page_and_only_where_guards_are_asked() -> None:
    state = GuardState(DestinationTable(), lambda: NOW)
    world, obj = observed(places(1, 2), places(2)), placement()
    assert state.observe(world, obj) is None
    state.examine(P)
    assert state.observe(world, obj) == Unread(("web",))
    state.note(P, places(1, 2))
    found = state.observe(world, obj)
    assert isinstance(found, Guarded)
    assert (found.departing, found.present) == (places(1), 2)
    # There is no such SyncTarget: nothing runs there.
    assert found.exempt == frozenset(places(1))
    state.settle(replace(world, guarded=found))
    assert state.observe(world, obj) is None


def test_what_an_inventory_took_back_goes_and_what_has_a_sync_target_is_judged() -> None:
    table = DestinationTable()
    for number in (1, 2):
        ref = sync_target_ref("imw", f"t{number}")
        table.put_sync_target(SyncTarget(ref, f"uid{number}", {}))
    state = GuardState(table, lambda: NOW)
    state.examine(P)
    state.note(P, places(1, 2))
    world = replace(observed(places(1, 2), ()), refused=(location_ref("imw", "l1"),))
    found = state.observe(world, placement())
    assert isinstance(found, Guarded)
    assert found.exempt == frozenset(places(1))
    assert state.keeping(sync_target_ref("imw", "t2")) == {P}


def test_slices_of_a_namesake_that_was_deleted_say_nothing_of_this_one() -> None:
    state = GuardState(DestinationTable(), lambda: NOW)
    state.examine(P)
    world = observed(places(1, 2), ())
    other = lean_slice(new_slice("web", SliceOwner("web", "u0"), places(1, 2)))
    found = state.observe(replace(world, slices={"web": other}), placement())
    assert isinstance(found, Guarded)
    assert found.departing == ()


# -- what guards have to know ----------------------------------------------------------------------


def table_of(*numbers: int, **labels: str) -> DestinationTable:
    """Return an inventory with these SyncTargets and Locations, and a workspace for guards."""
    table = DestinationTable()
    for number in numbers:
        ref = sync_target_ref("imw", f"t{number}")
        table.put_sync_target(SyncTarget(ref, f"uid{number}", {}))
        raw = {"name": f"l{number}", "labels": labels, "annotations": {"kcp.io/cluster": "imw"}}
        table.put_location(location_of({"metadata": raw, "spec": {"instanceSelector": {}}}))
    return table


def guard(name: str = "own", cluster: str = "wmw", **spec: Any) -> Guard:
    notes = {"kcp.io/cluster": cluster}
    return guard_of({"metadata": {"name": name, "annotations": notes}, "spec": spec})


# From noon to eleven: it is on at midnight.
ALWAYS = {"schedule": "0 12 * * *", "duration": "23h"}


def seen(state: GuardState, world: Observed, obj: Object | None = None) -> Guarded:
    found = state.observe(world, obj or placement())
    assert isinstance(found, Guarded)
    return found


def test_guards_are_asked_about_those_they_concern_and_nobody_else() -> None:
    state = GuardState(table_of(1), lambda: NOW, "espw")
    world = observed(places(1), places(1))
    assert state.observe(world, placement()) is None
    prod = {"matchLabels": {"env": "prod"}}
    state.guards.put(guard(placements={"selector": prod}, budgets=[REMOVALS]))
    assert state.observe(world, placement()) is None, "another label is meant"
    assert isinstance(state.observe(world, placement(labels={"env": "prod"})), Guarded)
    assert state.observe(replace(world, ref=P._replace(cluster="other")), placement()) is None
    state.guards.put(guard("fleet", "espw", budgets=[REMOVALS]))
    elsewhere = replace(world, ref=P._replace(cluster="other"))
    assert isinstance(state.observe(elsewhere, placement()), Guarded), "the provider's is for all"


@pytest.mark.parametrize(
    ("obj", "asked"),
    [
        (placement(), False),
        ({**placement(), "status": {"removals": {}}}, False),
        ({**placement(), "status": {"removals": {"heldObjects": {}}}}, False),
        ({**placement(), "status": {"removals": {"held": {"name": "1"}}}}, True),
        (placement(deletionTimestamp="2025-06-06T00:00:00Z"), True),
    ],
    ids=["quiet", "charged", "objects held", "held", "being deleted"],
)
def test_without_a_guard_only_what_is_held_or_deleted_is_judged(obj: Object, asked: bool) -> None:
    state = GuardState(table_of(1), lambda: NOW)
    assert (state.observe(observed(places(1), places(1)), obj) is not None) is asked


@pytest.mark.parametrize(
    ("count", "finalizers", "floor", "asked"),
    [(51, [], True, True), (50, [], True, False), (51, None, True, False), (51, [], False, False)],
    ids=["large", "small", "with its finalizer", "no floor"],
)
def test_a_large_placement_is_looked_at_until_it_has_its_finalizer(
    count: int, finalizers: list[str] | None, floor: bool, asked: bool
) -> None:
    obj = placement() if finalizers is None else placement(finalizers=finalizers)
    state = GuardState(table_of(), lambda: NOW, floor=floor)
    found = state.observe(observed((), places(*range(count))), obj)
    assert (found is not None) is asked


def test_only_the_pages_that_hold_somebody_unknown_are_read() -> None:
    state = GuardState(table_of(1, 2, 3), lambda: NOW)
    state.examine(P)
    pieces = {
        name: lean_slice(new_slice(name, OWNER, places(*numbers)))
        for name, numbers in (("web", (1,)), ("web-2", (2,)), ("web-3", (3,)))
    }
    world = replace(observed((), places(1)), slices=pieces, page_names=tuple(pieces))
    assert state.observe(world, placement()) == Unread(("web-2", "web-3"))
    state.note(P, places(2))
    assert state.observe(world, placement()) == Unread(("web-3",))
    state.note(P, places(3))
    found = seen(state, world)
    assert (found.departing, found.present, found.exempt) == (places(2, 3), 3, frozenset())


def test_a_sync_target_made_anew_under_its_name_is_another_one() -> None:
    table = table_of(1, 2)
    state = GuardState(table, lambda: NOW)
    table.put_sync_target(SyncTarget(sync_target_ref("imw", "t1"), "uid-new", {}))
    first, second = places(1, 2)
    assert state.goes(first, ())
    assert not state.goes(second, ())
    assert state.goes(second, [location_ref("imw", "l2")])
    assert not state.goes(second, [location_ref("imw", "l1")])


@pytest.mark.parametrize(
    ("stops", "frozen", "barred"),
    [
        (["Leaving"], {1}, set()),
        (["Joining"], set(), {3}),
        (["Joining", "Leaving"], {1}, {3}),
        (["Content"], set(), set()),
    ],
    ids=["leaving", "joining", "both", "content"],
)
def test_a_freeze_stops_what_it_says_until_it_ends(
    stops: list[str], frozen: set[int], barred: set[int]
) -> None:
    state = GuardState(table_of(1, 2, 3), lambda: NOW)
    state.guards.put(guard(freezes=[{"name": "f", **ALWAYS, "stops": stops}]))
    state.note(P, places(1, 2))
    found = seen(state, observed(places(1, 2), places(2, 3)))
    assert found.frozen == {*places(*frozen)}
    assert found.barred == {*places(*barred)}
    assert (found.until is not None) is bool(frozen | barred)
    assert found.until in (None, NOW + timedelta(hours=11))


def test_a_freeze_keeps_nobody_whose_sync_target_is_gone_or_who_was_let_go_before() -> None:
    state = GuardState(table_of(2, 3), lambda: NOW)
    state.guards.put(guard(freezes=[{"name": "f", **ALWAYS, "stops": ["Leaving"]}]))
    state.note(P, places(1, 2, 3))
    world = observed(places(1, 2, 3), ())
    assert seen(state, world).frozen == {*places(2, 3)}
    [third] = places(3)
    waiting = state.observe(world, placement(), frozenset([member(third)]))
    assert isinstance(waiting, Guarded)
    assert waiting.frozen == {*places(2)}
    assert waiting.exempt == {*places(1, 3)}


@pytest.mark.parametrize(
    ("against", "known", "protected"),
    [
        (["Deselect"], True, True),
        (["Relabel"], True, True),
        (["Delete"], True, False),
        (["Delete"], False, True),
        (["Deselect"], False, False),
    ],
)
def test_a_protected_location_is_one_of_a_person_when_it_is_lost_as_the_guard_says(
    against: list[str], known: bool, protected: bool
) -> None:
    state = GuardState(table_of(1) if known else table_of(), lambda: NOW)
    rule = {"kind": "Location", "names": ["l1"], "against": against}
    state.guards.put(guard(protect=[rule]))
    state.note(P, places(1))
    found = seen(state, observed(places(1), ()))
    expected = {places(1)[0]: ("./own", "PlacementGuard ./own protects Location l1")}
    assert found.protected == (expected if protected else {})


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "Namespace", "names": ["l1"], "against": ["Deselect"]},
        {"kind": "Location", "names": ["l2"], "against": ["Deselect"]},
    ],
    ids=["another kind", "another name"],
)
def test_what_is_protected_of_something_else_protects_no_location(rule: Object) -> None:
    state = GuardState(table_of(1), lambda: NOW)
    state.guards.put(guard(protect=[rule]))
    state.note(P, places(1))
    assert seen(state, observed(places(1), ())).protected == {}


def test_a_guard_that_observes_protects_nothing() -> None:
    state = GuardState(table_of(1), lambda: NOW)
    rule = {"kind": "Location", "names": ["l1"], "against": ["Deselect"]}
    state.guards.put(guard(mode="Observe", protect=[rule]))
    state.note(P, places(1))
    assert seen(state, observed(places(1), ())).protected == {}


def test_what_stays_is_remembered_and_what_is_being_deleted_is_not_forgotten() -> None:
    state = GuardState(table_of(1, 2), lambda: NOW)
    state.examine(P)
    state.note(P, places(1, 2))
    found = seen(state, observed(places(1, 2), ()))
    state.settle(replace(observed((), places(2)), guarded=found))
    assert state.keeping(sync_target_ref("imw", "t2")) == {P}
    assert state.keeping(sync_target_ref("imw", "t1")) == set()
    going = replace(found, placement=placement(deletionTimestamp="2025-06-06T00:00:00Z"))
    state.settle(replace(observed((), ()), guarded=going))
    assert state.keeping(sync_target_ref("imw", "t2")) == {P}
    state.settle(observed((), ()))
    assert state.keeping(sync_target_ref("imw", "t2")) == {P}, "nothing was decided by guards"
    state.forget(P)
    assert state.keeping(sync_target_ref("imw", "t2")) == set()
