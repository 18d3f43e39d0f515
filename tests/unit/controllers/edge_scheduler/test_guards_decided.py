"""What is written, announced and recorded of what guards decide."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import CONFIRM, GUARD_FINALIZER, SliceOwner, edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.edge_scheduler.guards import Allowed, allow, exceeds_floor
from skerry.controllers.edge_scheduler.observed import Guarded, Observed, Result
from skerry.logic.fleet.guards.budget import FLOOR_RULE, Rule
from skerry.logic.fleet.guards.spec import Budget
from skerry.logic.fleet.placement.records import Destination

NOW = datetime(2025, 6, 6, tzinfo=UTC)
P = edge_placement_ref("wmw", "web")
ONE = Rule("fleet", Budget("DestinationsRemoved", max=1, window=timedelta(minutes=10)))
WARNING = Rule("fleet", Budget("DestinationsRemoved", max=0, action="Warn"))
DELETED = {"deletionTimestamp": "2025-06-06T00:00:00Z"}


def places(*numbers: int) -> tuple[Destination, ...]:
    return tuple(sorted(Destination("imw", f"l{n}", f"t{n}", f"uid{n}") for n in numbers))


def placement(status: Any = None, **metadata: Any) -> Object:
    usual = {"name": "web", "uid": "u1", "finalizers": [GUARD_FINALIZER]}
    found: Object = {"metadata": {**usual, **metadata}}
    return found if status is None else {**found, "status": status}


def world(
    wanted: tuple[Destination, ...], *departing: Destination, obj: Object | None = None, **more: Any
) -> Observed:
    usual = {"rules": (ONE,), "now": NOW, "present": 10, "departing": departing}
    guarded = Guarded(obj or placement(), **{**usual, **more})
    return Observed(P, SliceOwner("web", "u1"), Result(1), wanted, guarded=guarded)


def reasons(found: Allowed) -> list[str]:
    return [each.reason for each in found.before]


def written(found: Allowed) -> Object:
    """Return the placement as it is to be written."""
    [action] = found.before
    obj: Object = action.object  # type: ignore[union-attr]
    return obj


def held(*numbers: int) -> Object:
    """Return a placement that says that these are held."""
    return written(allow(world((), *places(*numbers))))


def test_without_guards_a_decision_is_as_it_was() -> None:
    observed = replace(world(places(1)), guarded=None)
    assert allow(observed) == Allowed(observed)


def test_what_nothing_departs_from_is_written_nowhere() -> None:
    found = allow(world(places(1)))
    assert (found.before, found.announcements, found.notes) == ((), (), ())
    assert found.observed.destinations == places(1)
    assert found.requeue_after_seconds is None


@given(
    st.sets(st.integers(0, 7)),
    st.sets(st.integers(8, 12)),
    st.sets(st.integers(0, 7)),
    st.sets(st.integers(0, 7)),
    st.sets(st.integers(8, 12)),
)
def test_slices_get_what_is_wanted_and_not_barred_and_keep_what_is_frozen_or_held(
    departing: set[int], wanted: set[int], exempt: set[int], frozen: set[int], barred: set[int]
) -> None:
    exempt, frozen = exempt & departing, frozen & departing - exempt
    found = allow(
        world(
            places(*wanted),
            *places(*departing),
            exempt=frozenset(places(*exempt)),
            frozen=frozenset(places(*frozen)),
            barred=frozenset(places(*barred)),
        )
    )
    counted = departing - exempt - frozen
    stays = counted if len(counted) > 1 else set[int]()
    assert found.observed.destinations == places(*(wanted - barred | frozen | stays))
    assert reasons(found) == (["BookChanged"] if counted else [])


@given(st.sets(st.integers(0, 9), min_size=2))
def test_asking_again_with_what_was_written_asks_for_the_same_and_writes_nothing(
    departing: set[int],
) -> None:
    first = allow(world((), *places(*departing)))
    again = allow(world((), *places(*departing), obj=written(first)))
    assert again.observed.destinations == first.observed.destinations == places(*departing)
    assert (again.before, again.announcements, again.notes) == ((), (), ())


def test_a_hold_is_announced_and_recorded_once_by_its_name() -> None:
    found = allow(world((), *places(1, 2)))
    hold = written(found)["status"]["removals"]["held"]
    [event] = found.announcements
    assert (event.type, event.reason) == ("Warning", "RemovalsHeld")
    assert event.message.startswith(f"{hold['name']}: ")
    [note] = found.notes
    assert (note.change, note.hold) == ("Held", hold["name"])
    assert {*note.destinations} == {*places(1, 2)}
    assert not note.confirmed


def test_a_hold_that_has_grown_has_another_name_and_is_news() -> None:
    grown = allow(world((), *places(1, 2, 3), obj=held(1, 2)))
    [note] = grown.notes
    assert (note.change, {*note.destinations}) == ("Held", {*places(1, 2, 3)})
    assert [each.reason for each in grown.announcements] == ["RemovalsHeld"]


def test_what_fits_the_budget_again_is_released_by_nobody() -> None:
    found = allow(world(places(2), *places(1), obj=held(1, 2)))
    [note] = found.notes
    assert (note.change, note.code, note.confirmed) == ("Released", "WithinBudget", False)
    assert note.destinations == places(1)
    assert found.announcements == ()
    assert "held" not in (written(found)["status"].get("removals") or {})


def test_what_a_person_confirms_is_released_by_that_person_and_the_word_is_used_up() -> None:
    obj = held(1, 2)
    name = obj["status"]["removals"]["held"]["name"]
    obj["metadata"]["annotations"] = {CONFIRM: name, "a": "b"}
    found = allow(world((), *places(1, 2), obj=obj))
    assert reasons(found) == ["RemovalConfirmed"]
    assert written(found)["metadata"]["annotations"] == {"a": "b"}
    assert found.observed.destinations == ()
    [note] = found.notes
    assert (note.change, note.code, note.hold) == ("Released", "Confirmed", name)
    assert note.confirmed
    [event] = found.announcements
    assert (event.type, event.reason) == ("Normal", "RemovalConfirmed")
    assert event.message == f"{name}: 2 destinations are removed"


def test_a_name_that_is_no_longer_that_of_the_hold_confirms_nothing() -> None:
    obj = held(1, 2)
    obj["metadata"]["annotations"] = {CONFIRM: obj["status"]["removals"]["held"]["name"]}
    found = allow(world((), *places(1, 2, 3), obj=obj))
    assert found.observed.destinations == places(1, 2, 3)
    assert reasons(found) == ["BookChanged"]


def test_a_guard_that_warns_holds_nothing_and_says_so() -> None:
    found = allow(world((), *places(1, 2), rules=(WARNING,)))
    assert found.observed.destinations == ()
    assert found.notes == ()
    assert [(each.type, each.reason) for each in found.announcements] == [
        ("Warning", "GuardWarning")
    ]


def test_a_freeze_that_is_nearly_over_is_looked_at_again_in_a_second() -> None:
    soon = NOW + timedelta(milliseconds=10)
    found = allow(world((), *places(1), frozen=frozenset(places(1)), until=soon))
    assert found.requeue_after_seconds == 1.0


# -- deletion --------------------------------------------------------------------------------------


def test_a_deleted_placement_that_is_frozen_stays_until_the_freeze_ends() -> None:
    until = NOW + timedelta(minutes=5)
    obj = placement(**DELETED)
    found = allow(world((), *places(1), obj=obj, frozen=frozenset(places(1)), until=until))
    assert found.finished
    assert found.before == ()
    assert found.requeue_after_seconds == 300


def test_a_deleted_placement_goes_with_our_finalizer_alone_taken_away() -> None:
    obj = placement(finalizers=["other", GUARD_FINALIZER], **DELETED)
    found = allow(world((), *places(1), obj=obj))
    assert found.finished
    assert reasons(found) == ["GuardPassed"]
    assert written(found)["metadata"]["finalizers"] == ["other"]


def test_a_deletion_is_held_and_goes_once_its_name_is_confirmed() -> None:
    first = allow(world((), *places(1, 2), obj=placement(**DELETED)))
    assert (first.finished, reasons(first)) == (True, ["BookChanged"])
    assert [each.change for each in first.notes] == ["Held"]
    obj = written(first)
    obj["metadata"]["annotations"] = {CONFIRM: obj["status"]["removals"]["held"]["name"]}
    second = allow(world((), *places(1, 2), obj=obj))
    assert reasons(second) == ["GuardPassed"]
    assert [(each.change, each.confirmed) for each in second.notes] == [("Released", True)]


# -- the finalizer, and the floor ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "needed"),
    [
        (ONE, True),
        (Rule("fleet", Budget("DestinationsRemoved", max=2)), False),
        (WARNING, False),
        (ONE._replace(enforces=False), False),
    ],
    ids=["exceeded", "fits", "warns", "observes"],
)
def test_a_finalizer_is_needed_where_deleting_everything_would_ask_a_person(
    rule: Rule, needed: bool
) -> None:
    found = allow(world(places(1, 2), obj=placement(finalizers=[]), rules=(rule,)))
    assert found.finalizes is needed
    assert reasons(found) == (["GuardNeeded"] if needed else [])


def test_one_budget_that_asks_is_enough_for_a_finalizer() -> None:
    large = Rule("other", Budget("DestinationsRemoved", max=100))
    for rules in ((ONE, large), (large, ONE)):
        assert allow(world(places(1, 2), obj=placement(finalizers=[]), rules=rules)).finalizes


@given(st.integers(0, 120), st.integers(0, 120))
def test_the_floor_lets_go_fifty_or_half_whichever_is_more(total: int, departing: int) -> None:
    departing = min(departing, total)
    pages = [range(total // 2), range(total // 2, total)]
    assert exceeds_floor(pages, range(departing, total)) == (departing > max(50, total // 2))


def test_the_floor_is_a_rule_like_any_other_guards() -> None:
    found = allow(world((), *places(*range(51)), rules=(FLOOR_RULE,), present=51))
    assert found.observed.destinations == places(*range(51))
    few = allow(world((), *places(*range(50)), rules=(FLOOR_RULE,), present=51))
    assert few.observed.destinations == ()
