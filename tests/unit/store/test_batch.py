from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.store.base import Conflict, Write
from skerry.store.batch import State, apply, evaluate, misfit

keys = st.sampled_from(["/a", "/b", "/c"])
writes = st.builds(
    Write, keys, st.one_of(st.none(), st.binary(max_size=3)), st.sampled_from([None, 0, 2, 3, 4, 5])
)
commits = st.lists(writes, max_size=3, unique_by=lambda write: write.key)


@given(batch=st.lists(commits, max_size=6))
def test_a_batch_is_the_same_as_its_commits_one_after_the_other(batch: list[list[Write]]) -> None:
    together: State = {}
    outcomes, events = evaluate(together, batch, 1)
    alone: State = {}
    newest, expected_events = 1, []
    for commit, outcome in zip(batch, outcomes, strict=True):
        (single,), happened = evaluate(alone, [commit], newest)
        assert str(single) == str(outcome)
        expected_events += happened
        newest = happened[-1].revision if happened else newest
    assert (together, events) == (alone, expected_events)


@given(batch=st.lists(commits, max_size=6))
def test_revisions_of_a_batch_are_consecutive(batch: list[list[Write]]) -> None:
    _, events = evaluate({}, batch, 10)
    assert [event.revision for event in events] == list(range(11, 11 + len(events)))


@given(commit=commits)
def test_a_commit_that_does_not_fit_changes_nothing(commit: list[Write]) -> None:
    state: State = {"/a": (3, b"x")}
    before = dict(state)
    (outcome,), events = evaluate(state, [commit], 9)
    if isinstance(outcome, Conflict):
        assert state == before
        assert events == []


def test_the_first_misfit_is_named() -> None:
    state: State = {"/a": (3, b"x")}
    conflict = misfit(state, [Write("/a", b"", 3), Write("/b", b"", 4), Write("/c", b"", 5)])
    assert conflict is not None
    assert (conflict.index, conflict.key, conflict.expected, conflict.actual) == (1, "/b", 4, 0)


def test_a_deleted_key_is_new_again() -> None:
    state: State = {"/a": (3, b"x")}
    events: list = []  # type: ignore[type-arg]
    assert apply(state, [Write("/a", None)], 3, events) == [4]
    assert apply(state, [Write("/a", None)], 4, events) == [0]
    assert apply(state, [Write("/a", b"y")], 4, events) == [5]
    assert [(e.previous, e.previous_revision) for e in events] == [(b"x", 3), (None, 0)]
