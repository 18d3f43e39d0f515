"""What guards make of a decision about slices; the simulation has the whole story."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

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
from skerry.logic.fleet.guards.spec import Budget
from skerry.logic.fleet.placement.destination import DestinationTable
from skerry.logic.fleet.placement.records import Destination, SyncTarget
from skerry.logic.fleet.placement.slices import lean_slice, new_slice

NOW = datetime(2025, 6, 6, tzinfo=UTC)
P = edge_placement_ref("wmw", "web")
OWNER = SliceOwner("web", "u1")
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
    assert found.look_again_seconds == 60


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
