"""Marks: nothing marked is lost, whatever happens to the look at it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import Mailbox
from skerry.api.kinds import GroupResource
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.marks import Marks

M, OTHER = Mailbox("imw", "m"), Mailbox("imw", "other")
A, B = ObjectRef("", "", "configmaps", "n", "a"), ObjectRef("", "apps", "deployments", "n", "b")


def _marks() -> tuple[Marks, list[Mailbox]]:
    woken: list[Mailbox] = []
    return Marks(woken.append), woken


def test_a_mark_wakes_its_mailbox_and_is_taken_in_a_fixed_order() -> None:
    marks, woken = _marks()
    marks.mark(M, [B, A])
    assert woken == [M]
    assert marks.take(M) == [A, B]
    assert marks.take(OTHER) == []


def test_marking_nothing_wakes_nobody() -> None:
    marks, woken = _marks()
    marks.mark(M, [])
    assert woken == []


def test_what_was_taken_and_not_settled_is_taken_again() -> None:
    marks, _ = _marks()
    marks.mark(M, [A, B])
    marks.take(M)
    marks.settle(M, A)
    assert marks.take(M) == [B]
    marks.settle(M, B)
    assert marks.take(M) == []
    assert marks.waiting == 0


def test_what_is_put_aside_comes_back_by_its_type_or_with_everything() -> None:
    marks, woken = _marks()
    marks.mark(M, [A, B])
    for item in marks.take(M):
        marks.put_aside(M, item)
    assert marks.take(M) == []
    woken.clear()
    marks.bring_back({GroupResource("apps", "deployments")})
    assert marks.take(M) == [B]
    marks.bring_back()
    assert marks.take(M) == [A, B]
    assert woken == [M, M]


def test_marks_of_a_look_that_was_stopped_wake_their_mailbox_again() -> None:
    marks, woken = _marks()
    marks.mark(OTHER, [A])
    marks.take(OTHER)
    marks.mark(M, [A])
    marks.take(M)
    marks.settle(M, A)
    woken.clear()
    marks.wake_all()
    assert woken == [OTHER]


def test_what_was_put_aside_and_is_marked_again_wants_one_look() -> None:
    marks, _ = _marks()
    marks.mark(M, [A])
    marks.take(M)
    marks.mark(M, [A])
    marks.put_aside(M, A)
    assert marks.take(M) == [A]
    marks.settle(M, A)
    marks.bring_back()
    assert marks.waiting == 0


def test_a_mailbox_that_is_gone_is_forgotten_altogether() -> None:
    marks, _ = _marks()
    marks.mark(M, [A])
    marks.take(M)
    marks.mark(M, [B])
    marks.put_aside(M, A)
    marks.forget(M)
    marks.bring_back()
    assert marks.waiting == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["mark", "take", "settle", "aside", "back"]), st.sampled_from([A, B])
    ),
    max_size=30,
)


@given(STEPS)
def test_an_item_is_never_lost_between_its_mark_and_its_settlement(
    steps: list[tuple[str, ObjectRef]],
) -> None:
    marks, _ = _marks()
    open_items: set[ObjectRef] = set()
    taken: set[ObjectRef] = set()
    for verb, item in steps:
        if verb == "mark":
            marks.mark(M, [item])
            open_items.add(item)
        elif verb == "take":
            taken = set(marks.take(M))
        elif item in taken and verb == "settle":
            marks.settle(M, item)
            taken.discard(item)
            open_items.discard(item)
            # Marked again while it was looked at: it is still open.
            if item in marks.take(M):
                open_items.add(item)
                taken.add(item)
        elif item in taken and verb == "aside":
            marks.put_aside(M, item)
            taken.discard(item)
        elif verb == "back":
            marks.bring_back()
    marks.bring_back()
    assert set(marks.take(M)) == open_items
