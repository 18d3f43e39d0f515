"""Rows to evaluate: none is lost, whatever happens while they are evaluated."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import Mailbox, edge_placement_ref
from skerry.api.refs import ObjectRef
from skerry.logic.fleet.translation.dirty import DirtyRows
from skerry.logic.fleet.translation.workspaces import (
    GRANTS,
    selection_scope,
    serving_scope,
    types_scope,
)

M, OTHER = Mailbox("imw", "m"), Mailbox("imw", "other")
A = ObjectRef("", "", "configmaps", "n", "a")
B = ObjectRef("", "apps", "deployments", "n", "b")
TYPES = types_scope("one")


def _rows() -> tuple[DirtyRows, list[Mailbox]]:
    enqueued: list[Mailbox] = []
    return DirtyRows(enqueued.append), enqueued


def test_a_marked_row_enqueues_its_mailbox_and_reading_it_changes_nothing() -> None:
    rows, enqueued = _rows()
    rows.mark(M, [B, A])
    assert enqueued == [M]
    assert set(rows.of(M)) == set(rows.of(M)) == {A, B}
    assert rows.of(OTHER) == {}


def test_marking_nothing_enqueues_nobody() -> None:
    rows, enqueued = _rows()
    rows.mark(M, [])
    assert enqueued == []
    assert rows.waiting == 0


def test_a_row_is_done_only_as_of_the_change_that_was_evaluated() -> None:
    rows, _ = _rows()
    rows.mark(M, [A, B])
    numbers = rows.of(M)
    rows.mark(M, [A])
    for item, number in numbers.items():
        rows.done(M, item, number)
    assert set(rows.of(M)) == {A}
    rows.done(M, A, rows.of(M)[A])
    rows.done(M, A, 99)
    assert rows.waiting == 0


def test_a_parked_row_comes_back_when_its_scope_was_read_and_its_mailbox_waits() -> None:
    rows, enqueued = _rows()
    rows.park(M, A, TYPES)
    rows.park(M, B, GRANTS)
    assert rows.waits(M)
    assert enqueued == []
    assert rows.waiting == 2
    rows.complete(TYPES)
    assert enqueued == [M]
    assert set(rows.of(M)) == {A}
    assert rows.waits(M)
    rows.complete(GRANTS)
    assert set(rows.of(M)) == {A, B}
    assert not rows.waits(M)


def test_a_scope_that_was_read_meanwhile_is_not_waited_for() -> None:
    rows, _ = _rows()
    rows.complete(TYPES)
    rows.park(M, A, TYPES)
    assert set(rows.of(M)) == {A}
    assert not rows.waits(M)
    rows.incomplete(TYPES)
    rows.park(M, B, TYPES)
    assert rows.waits(M)


def test_a_row_that_is_evaluated_waits_for_nothing_any_more() -> None:
    rows, enqueued = _rows()
    rows.park(M, A, TYPES)
    rows.park(M, B, TYPES)
    rows.unpark(M, [A])
    rows.complete(TYPES)
    assert set(rows.of(M)) == {B}
    rows.unpark(OTHER, [A])
    assert enqueued == [M]


def test_a_mailbox_does_not_wait_for_a_placement_to_be_corrected() -> None:
    rows, _ = _rows()
    scope = selection_scope(edge_placement_ref("one", "p"))
    rows.park(M, A, scope)
    assert not rows.waits(M)
    assert rows.waiting == 1
    rows.complete(scope)
    assert set(rows.of(M)) == {A}


def test_a_mailbox_does_not_wait_for_a_kind_that_it_may_never_serve() -> None:
    rows, _ = _rows()
    rows.park(M, B, serving_scope("mb", B.group_resource))
    assert not rows.waits(M)
    assert rows.is_settled(M.cluster)
    assert rows.holds(M, B)


def test_of_a_mailbox_that_has_gone_nothing_is_left() -> None:
    rows, enqueued = _rows()
    rows.mark(M, [A])
    rows.park(M, B, TYPES)
    rows.park(OTHER, B, TYPES)
    rows.forget(M)
    enqueued.clear()
    rows.complete(TYPES)
    assert enqueued == [OTHER]
    assert rows.waiting == 1


def test_rows_whose_evaluation_was_stopped_enqueue_their_mailbox_again() -> None:
    rows, enqueued = _rows()
    rows.mark(OTHER, [A])
    rows.mark(M, [A])
    rows.done(M, A, rows.of(M)[A])
    enqueued.clear()
    rows.enqueue_all()
    assert enqueued == [OTHER]


VERBS = st.sampled_from(["mark", "done", "park", "read", "unread"])


@given(st.lists(st.tuples(VERBS, st.sampled_from([A, B])), max_size=40))
def test_no_row_is_lost(steps: list[tuple[str, ObjectRef]]) -> None:
    rows, _ = _rows()
    is_open: set[ObjectRef] = set()
    for verb, item in steps:
        numbers = rows.of(M)
        if verb == "mark":
            rows.mark(M, [item])
            is_open.add(item)
        elif verb == "read":
            rows.complete(TYPES)
        elif verb == "unread":
            rows.incomplete(TYPES)
        elif item in numbers:
            rows.unpark(M, [item])
            rows.done(M, item, numbers[item])
            if verb == "park":
                rows.park(M, item, TYPES)
            else:
                is_open.discard(item)
    rows.complete(TYPES)
    assert set(rows.of(M)) == is_open


def test_an_inventory_is_settled_when_no_row_of_its_mailboxes_is_open() -> None:
    rows, _ = _rows()
    rows.mark(Mailbox("elsewhere", "m"), [A])
    assert rows.is_settled("imw")
    rows.mark(M, [A])
    assert not rows.is_settled("imw")
    rows.done(M, A, rows.of(M)[A])
    assert rows.is_settled("imw")
    rows.park(OTHER, B, TYPES)
    assert not rows.is_settled("imw")
    rows.unpark(OTHER, [B])
    rows.park(OTHER, B, selection_scope(edge_placement_ref("wmw", "p")))
    assert rows.is_settled("imw"), "a placement may never be corrected"


def test_what_waited_for_something_that_nobody_will_read_is_evaluated_again() -> None:
    rows, enqueued = _rows()
    rows.park(M, A, TYPES)
    rows.park(M, B, GRANTS)
    rows.drop(TYPES)
    assert enqueued == [M]
    assert set(rows.of(M)) == {A}
    assert not rows.scopes.is_complete(TYPES)
    rows.park(M, A, TYPES)
    assert rows.holds(M, A), "it still depends on it, and waits again"
