"""What a plan for slices is recorded as, and what becomes of a record that cannot be written."""

from __future__ import annotations

import pytest

from skerry.api.edge import SliceOwner
from skerry.controllers.edge_scheduler.history import (
    Members,
    changed_by,
    ended,
)
from skerry.controllers.edge_scheduler.observed import Cause, Gathered, Gone
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.placement.slices import Assigned, lean_slice, member, new_slice
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
