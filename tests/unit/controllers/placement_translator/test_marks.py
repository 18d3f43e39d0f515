"""Marks: nothing marked is lost, whatever happens to the look at it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.controllers.placement_translator.marks import Marks
from skerry.logic.fleet.translation.items import Item

A, B = Item("", "configmaps", "n", "a"), Item("apps", "deployments", "n", "b")


def _marks() -> tuple[Marks, list[str]]:
    woken: list[str] = []
    return Marks(woken.append), woken


def test_a_mark_wakes_its_mailbox_and_is_taken_in_a_fixed_order() -> None:
    marks, woken = _marks()
    marks.mark("m", [B, A])
    assert woken == ["m"]
    assert marks.take("m") == [A, B]
    assert marks.take("other") == []


def test_marking_nothing_wakes_nobody() -> None:
    marks, woken = _marks()
    marks.mark("m", [])
    assert woken == []


def test_what_was_taken_and_not_settled_is_taken_again() -> None:
    marks, _ = _marks()
    marks.mark("m", [A, B])
    marks.take("m")
    marks.settle("m", A)
    assert marks.take("m") == [B]
    marks.settle("m", B)
    assert marks.take("m") == []
    assert marks.waiting == 0


def test_what_is_put_aside_comes_back_by_its_type_or_with_everything() -> None:
    marks, woken = _marks()
    marks.mark("m", [A, B])
    for item in marks.take("m"):
        marks.put_aside("m", item)
    assert marks.take("m") == []
    woken.clear()
    marks.bring_back({GroupResource("apps", "deployments")})
    assert marks.take("m") == [B]
    marks.bring_back()
    assert marks.take("m") == [A, B]
    assert woken == ["m", "m"]


def test_marks_of_a_look_that_was_stopped_wake_their_mailbox_again() -> None:
    marks, woken = _marks()
    marks.mark("one", [A])
    marks.take("one")
    marks.mark("two", [A])
    marks.take("two")
    marks.settle("two", A)
    woken.clear()
    marks.wake_all()
    assert woken == ["one"]


def test_what_was_put_aside_and_is_marked_again_wants_one_look() -> None:
    marks, _ = _marks()
    marks.mark("m", [A])
    marks.take("m")
    marks.mark("m", [A])
    marks.put_aside("m", A)
    assert marks.take("m") == [A]
    marks.settle("m", A)
    marks.bring_back()
    assert marks.waiting == 0


def test_a_mailbox_that_is_gone_is_forgotten_altogether() -> None:
    marks, _ = _marks()
    marks.mark("m", [A])
    marks.take("m")
    marks.mark("m", [B])
    marks.put_aside("m", A)
    marks.forget("m")
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
    steps: list[tuple[str, Item]],
) -> None:
    marks, _ = _marks()
    open_items: set[Item] = set()
    taken: set[Item] = set()
    for verb, item in steps:
        if verb == "mark":
            marks.mark("m", [item])
            open_items.add(item)
        elif verb == "take":
            taken = set(marks.take("m"))
        elif item in taken and verb == "settle":
            marks.settle("m", item)
            taken.discard(item)
            open_items.discard(item)
            # Marked again while it was looked at: it is still open.
            if item in marks.take("m"):
                open_items.add(item)
                taken.add(item)
        elif item in taken and verb == "aside":
            marks.put_aside("m", item)
            taken.discard(item)
        elif verb == "back":
            marks.bring_back()
    marks.bring_back()
    assert set(marks.take("m")) == open_items
