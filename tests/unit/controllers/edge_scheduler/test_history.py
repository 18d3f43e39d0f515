"""What a plan for slices is recorded as, and what becomes of a record that cannot be written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import SliceOwner
from skerry.controllers.edge_scheduler.guards import Note
from skerry.controllers.edge_scheduler.history import (
    DELETED,
    Members,
    Recorded,
    causes_of,
    changed_by,
    ended,
    recorded,
    why_moved,
)
from skerry.controllers.edge_scheduler.observed import (
    Cause,
    Gathered,
    Gone,
    ObservedRollout,
)
from skerry.logic.fleet.history.record import Reason
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned, lean_slice, member, new_slice
from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import ROLLING_BACK, Failure, State
from tests.kit.chain.recording import OWNER, RELABELLED, A, B, C, P, observed, story


def test_a_plan_that_changes_no_destination_is_no_decision() -> None:
    assert story(observed(A, B), B, A) is None


def test_who_comes_and_who_goes_is_recorded_with_cause_and_reason() -> None:
    found = story(observed(A, B), B, C)
    assert found is not None
    left, joined = found.decisions
    assert [each.destination for each in left.standings] == [A]
    assert (left.change, left.reason.code) == ("Left", "NotSelected")
    assert (left.causes[0].user, left.causes[0].change) == ("ann", "label env=dr")
    assert [each.destination for each in joined.standings] == [C]
    assert found.follows == 12


def test_what_was_there_at_the_start_caused_nothing() -> None:
    initial = Gathered((RELABELLED._replace(initial=True),), 500)
    found = story(observed(causes=initial), A)
    assert found is not None
    assert [each.kind for each in found.decisions[0].causes] == ["EdgePlacement"]
    assert found.follows == 7
    again = story(observed(A, causes=initial), B)
    assert again is not None
    assert again.decisions[0].causes == ()


def test_slices_of_a_namesake_begin_anew() -> None:
    found = story(observed(A, owner=SliceOwner("web", "another")), A)
    assert found is not None
    assert [each.change for each in found.decisions] == ["Joined"]


def test_another_revision_is_reported_and_slots_beyond_bitmaps_are_not() -> None:
    found = observed(A, B, given={A: Assigned(1, 41), B: Assigned(2, 41)})
    given = {member(A): Assigned(1, 42), member(B): Assigned(2, 41)}
    reported = story(found, A, B, given=given)
    assert reported is not None
    [moved] = reported.decisions
    assert (moved.change, moved.start, moved.to) == ("Revised", 41, 42)
    huge = story(observed(), A, given={member(A): Assigned(1 << 40, 1)})
    assert huge is not None
    assert huge.decisions[0].standings[0].slot is None


def test_the_end_of_a_placement_needs_somebody_who_saw_it() -> None:
    assert ended(Gone(P), 3) is None
    cause = Cause("EdgePlacement", P, "deleted", uid="uid-web")
    found = ended(Gone(P, Gathered((cause,), 1)), 3)
    assert found is not None
    assert found.decisions[0].everybody == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '"ann"', "{}"])
def test_an_annotation_that_says_nobody_is_nobody(text: str) -> None:
    assert changed_by(text) == ("", "", "")


def test_members_are_forgotten_when_no_slice_holds_them() -> None:
    members = Members()
    members.note(Destination("imw", f"l{n}", "t", "u") for n in range(20_000))
    members.note([A])
    members.prune(lambda: [lean_slice(new_slice("web", OWNER, [A]))])
    assert members.get(member(A)) == A
    assert members.get(member(Destination("imw", "l1", "t", "u"))) is None


# -- causes ----------------------------------------------------------------------------------------


def gathered(*causes: Cause, total: int | None = None) -> Gathered:
    return Gathered(causes, len(causes) if total is None else total)


INITIAL = RELABELLED._replace(initial=True)


@pytest.mark.parametrize(
    ("causes", "known", "total"),
    [
        (gathered(), 0, 0),
        (gathered(RELABELLED), 1, 1),
        (gathered(RELABELLED, total=500), 1, 500),
        (gathered(RELABELLED, INITIAL, total=500), 1, 499),
        (gathered(INITIAL, total=500), 0, 0),
        (gathered(RELABELLED, RELABELLED), 1, 2),
    ],
    ids=["none", "one", "many", "some initial", "all initial", "the same twice"],
)
def test_causes_are_what_changed_since_the_start_and_are_counted(
    causes: Gathered, known: int, total: int
) -> None:
    found = causes_of(causes, ())
    assert (len(found.known), found.total) == (known, total)


def test_where_nothing_is_known_to_have_changed_the_other_causes_count() -> None:
    other = Cause("EdgePlacement", P, "created", "7")
    found = causes_of(gathered(INITIAL, total=9), [other])
    assert [each.kind for each in found.known] == ["EdgePlacement"]
    assert found.total == 1
    assert [each.kind for each in causes_of(gathered(RELABELLED), [other]).known] == ["Location"]


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ('{"user":"ann","auditID":"a1","manager":"kubectl"}', ("ann", "a1", "kubectl")),
        ('{"user":"ann"}', ("ann", "", "")),
        ('{"user":7}', ("7", "", "")),
        ("null", ("", "", "")),
    ],
)
def test_an_annotation_says_who_by_which_request_with_which_tool(
    text: str, by: tuple[str, str, str]
) -> None:
    assert changed_by(text) == by


def rollout(**metadata: str) -> ObservedRollout:
    obj = {"metadata": metadata, "spec": {}}
    now = datetime(2025, 6, 6, tzinfo=UTC)
    return ObservedRollout(obj, RolloutSpec(), {}, {}, 0, now, 0.0)


def test_revisions_are_caused_by_the_rollout_that_gives_them() -> None:
    found = replace(observed(A), rollout=rollout(name="web", resourceVersion="31"))
    moved = story(found, A, given={member(A): Assigned(1, 2)})
    assert moved is not None
    [decision] = moved.decisions
    [cause] = decision.causes
    assert (cause.kind, cause.name, cause.resource_version) == ("Rollout", "web", "31")


# -- why a revision --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        (None, "RevisionAssigned", ""),
        (State(stable=41), "RevisionAssigned", "revision 41 is the stable one"),
        (State(), "SlotAssigned", "slots for its Rollout"),
        (State(stable=41, wave=2, wave_name="shops"), "WaveOpened", "wave shops"),
        (State(stable=41, wave=3), "WaveOpened", "the last wave"),
        (
            State(
                stable=41,
                wave=1,
                phase=ROLLING_BACK,
                failure=Failure(42, "TooMany", "3 of 4 failed"),
            ),
            "Rollback",
            "rollback: 3 of 4 failed",
        ),
        (State(wave=1, failure=Failure(42, "TooMany", "3 of 4")), "WaveOpened", "the last wave"),
    ],
    ids=["no rollout", "stable", "first", "wave", "last wave", "rollback", "failed and stays"],
)
def test_why_destinations_get_another_revision(state: Any, code: str, text: str) -> None:
    assert why_moved(state) == Reason(code, text)


# -- what guards have decided ----------------------------------------------------------------------


def note(change: Any = "Held", *, confirmed: bool = False) -> Note:
    return Note(change, (A, B), "7f21c0", "RemovalsHeld", "too many", confirmed)


def test_what_guards_hold_is_recorded_though_no_slice_changes() -> None:
    found = recorded(observed(A, B), notes=[note()]).story
    assert found is not None
    [decision] = found.decisions
    assert (decision.change, decision.reason) == (
        "Held",
        Reason("RemovalsHeld", "7f21c0: too many"),
    )
    assert [each.destination for each in decision.standings] == [A, B]
    assert [each.kind for each in decision.causes] == ["Location"]
    assert found.released == ""


def test_a_person_who_confirms_is_the_cause_of_what_is_released() -> None:
    base = observed(A, B)
    assert base.history is not None
    person = replace(base, history=replace(base.history, changed_by='{"user":"eve"}'))
    found = recorded(person, notes=[note("Released", confirmed=True)]).story
    assert found is not None
    [decision] = found.decisions
    [cause] = decision.causes
    assert (cause.kind, cause.user, cause.change) == ("EdgePlacement", "eve", "confirm=7f21c0")
    assert cause.resource_version == "7"
    assert found.released == "7f21c0"


def test_a_release_that_was_recorded_is_not_recorded_as_one_without_a_person() -> None:
    base = observed(A)
    assert base.history is not None
    known = replace(base, history=replace(base.history, released="7f21c0"))
    assert recorded(known, notes=[note("Released")]).story is None
    assert recorded(base, notes=[note("Released")]).story is not None
    assert recorded(known, notes=[note("Released", confirmed=True)]).story is not None


# -- stories ---------------------------------------------------------------------------------------


def test_without_history_nothing_is_recorded() -> None:
    assert recorded(replace(observed(A), history=None), {}) == Recorded()


def test_who_leaves_and_is_known_by_a_number_alone_makes_a_story_incomplete() -> None:
    base = observed(A, B)
    assert base.history is not None

    def known(number: int) -> Destination | None:
        return B if number == member(B) else None

    forgetful = replace(base, history=replace(base.history, destination=known))
    found = story(forgetful)
    assert found is not None
    assert found.is_incomplete
    assert [each.destination for each in found.decisions[0].standings] == [B]
    nobody = replace(base, history=replace(base.history, destination=lambda _: None))
    alone = story(nobody, A)
    assert alone is not None
    assert (alone.is_incomplete, alone.decisions) == (True, ())
    whole = story(base, A)
    assert whole is not None
    assert not whole.is_incomplete


@pytest.mark.parametrize(
    ("causes", "first"),
    [
        (gathered(Cause("EdgePlacement", P, "created")), True),
        (gathered(Cause("EdgePlacement", P, "created", initial=True)), False),
        (gathered(Cause("EdgePlacement", P, "spec")), False),
        (gathered(Cause("EdgePlacement", P._replace(name="other"), "created")), False),
        (gathered(RELABELLED), False),
    ],
    ids=["seen", "found", "edited", "another", "location"],
)
def test_a_placement_that_was_seen_being_made_has_no_history_to_read(
    causes: Gathered, first: bool
) -> None:
    found = story(observed(causes=causes), A)
    assert found is not None
    assert found.is_first is first
    later = story(observed(A, causes=causes), B)
    assert later is not None
    assert not later.is_first


def test_what_follows_from_the_newest_slice_says_so_and_how_many_pages_there_are() -> None:
    base = observed(A)
    pieces = dict(base.slices)
    for number, version in ((2, "31"), (3, "9")):
        piece = lean_slice(new_slice("web", OWNER, [C]))
        piece["metadata"] = {**piece["metadata"], "resourceVersion": version}
        pieces[f"web-{number}"] = piece
    found = story(replace(base, slices=pieces), B)
    assert found is not None
    assert (found.follows, found.pages) == (31, 3)
    assert {each.destination for each in found.present()} == {A}
    assert not found.is_empty


_destinations = st.lists(
    st.sampled_from([A, B, C, Destination("imw", "d", "d", "uid-d")]), unique=True
)


@given(_destinations, _destinations)
def test_who_joins_and_who_leaves_lead_from_what_slices_hold_to_what_is_wanted(
    held: list[Destination], wanted: list[Destination]
) -> None:
    found = story(observed(*held), *wanted)
    there = set(held)
    for decision in found.decisions if found is not None else ():
        those = {each.destination for each in decision.standings}
        assert those
        if decision.change == "Joined":
            assert not those & there
            there |= those
        else:
            assert decision.change == "Left"
            assert those <= there
            there -= those
    assert there == set(wanted)
    assert (found is None) == (set(held) == set(wanted))


@given(
    st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 3)),
    st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 3)),
)
def test_who_stays_and_gets_another_revision_is_moved_and_nobody_else(
    before: dict[Destination, int], after: dict[Destination, int]
) -> None:
    slots = {A: 1, B: 2, C: 3}
    given_before = {each: Assigned(slots[each], number) for each, number in before.items()}
    given_after = {member(each): Assigned(slots[each], number) for each, number in after.items()}
    found = story(observed(*before, given=given_before), *after, given=given_after)
    moved = {
        each.destination
        for decision in (found.decisions if found is not None else ())
        if decision.change == "Revised"
        for each in decision.standings
    }
    assert moved == {each for each in before.keys() & after.keys() if before[each] != after[each]}


# -- members ---------------------------------------------------------------------------------------


def test_a_slice_is_kept_lean_and_everybody_in_it_is_remembered() -> None:
    members = Members()
    lean = members.lean(new_slice("web", OWNER, [A, B]))
    assert lean == lean_slice(new_slice("web", OWNER, [A, B]))
    assert {members.get(member(each)) for each in (A, B)} == {A, B}
    assert members.get(member(C)) is None


def test_members_are_not_looked_through_before_there_are_many() -> None:
    members = Members()
    members.note([A])
    members.prune(lambda: pytest.fail("there is only one"))
    assert members.get(member(A)) == A


def test_the_end_of_a_placement_that_was_not_seen_going_is_no_story() -> None:
    cause = Cause("EdgePlacement", P, "deleted", uid="uid-web")
    assert ended(Gone(P, Gathered((cause._replace(uid=""),), 1)), 3) is None
    assert ended(Gone(P, Gathered((RELABELLED._replace(uid="u"),), 1)), 3) is None
    found = ended(Gone(P, Gathered((cause,), 1)), 0)
    assert found is not None
    assert (found.subject.uid, found.decisions[0].reason) == ("uid-web", DELETED)
    assert found.decisions[0].everybody == 0
