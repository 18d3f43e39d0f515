"""Nothing is deleted because of what has not been read."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.kit.invariant import InvariantError
from skerry.logic.fleet.tables.completeness import Completeness, Verdict, verdict

SCOPES = ["one", "two", "three"]
KEYS = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("desired", "actual", "same", "expected"),
    [
        (None, None, False, Verdict.NONE),
        ("row", None, False, Verdict.CREATE),
        (None, "row", False, Verdict.DELETE),
        ("row", "row", True, Verdict.NONE),
        ("row", "old", False, Verdict.UPDATE),
    ],
)
def test_with_everything_read_a_row_is_compared_with_what_is_there(
    desired: str | None, actual: str | None, same: bool, expected: Verdict
) -> None:
    assert verdict(desired, actual, same=same, missing=None) is expected


def test_with_anything_unread_a_row_is_pending_whatever_else() -> None:
    for desired, actual, same in product((None, "row"), (None, "row"), (True, False)):
        assert verdict(desired, actual, same=same, missing="one") is Verdict.PENDING


def test_the_first_scope_that_was_not_read_is_missing() -> None:
    known: Completeness[str, str] = Completeness()
    known.complete("one")

    assert known.missing(["one", "two", "three"]) == "two"
    assert known.missing(["one"]) is None
    assert known.missing([]) is None


def test_rows_wait_for_their_scope_and_come_back_in_order() -> None:
    known: Completeness[str, str] = Completeness()
    known.park("b", "one")
    known.park("a", "one")
    known.park("c", "two")

    assert known.complete("one") == ["a", "b"]
    assert known.complete("one") == []
    assert known.pending("c") == "two"


def test_a_row_waits_for_one_scope_at_a_time() -> None:
    known: Completeness[str, str] = Completeness()
    known.park("a", "one")
    known.park("a", "two")

    assert known.pending("a") == "two"
    assert known.complete("one") == []
    assert known.complete("two") == ["a"]


def test_a_row_nobody_asks_for_waits_no_longer() -> None:
    known: Completeness[str, str] = Completeness()
    known.park("a", "one")
    known.unpark("a")
    known.unpark("a")

    assert known.pending("a") is None
    assert known.complete("one") == []


def test_a_scope_can_become_unknown_again() -> None:
    known: Completeness[str, str] = Completeness()
    known.complete("one")
    known.incomplete("one")

    assert not known.is_complete("one")
    known.park("a", "one")
    assert known.complete("one") == ["a"]


def test_no_row_waits_for_what_was_read() -> None:
    known: Completeness[str, str] = Completeness()
    known.complete("one")

    with pytest.raises(InvariantError, match="a would wait for one"):
        known.park("a", "one")


_steps = st.one_of(
    st.tuples(st.just("complete"), st.sampled_from(SCOPES), st.none()),
    st.tuples(st.just("incomplete"), st.sampled_from(SCOPES), st.none()),
    st.tuples(st.just("desire"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("take away"), st.sampled_from(KEYS), st.none()),
)


class Copies:
    """Rows that are evaluated only when touched or released, each depending on some scopes."""

    def __init__(self, scopes: dict[str, set[str]]) -> None:
        self.known: Completeness[str, str] = Completeness()
        self.scopes = scopes
        self.desired: set[str] = set()
        self.actual = set(KEYS)

    def evaluate(self, *keys: str) -> None:
        for key in keys:
            scopes = sorted(self.scopes.get(key, ()))
            missing = self.known.missing(scopes)
            found = verdict(
                key in self.desired or None, key in self.actual or None, same=True, missing=missing
            )
            if missing is not None:
                assert found is Verdict.PENDING
                self.known.park(key, missing)
                continue
            self.known.unpark(key)
            if found is Verdict.DELETE:
                assert all(map(self.known.is_complete, scopes))
                self.actual.discard(key)
            elif found is Verdict.CREATE:
                self.actual.add(key)

    def take(self, step: str, about: str, wanted: bool | None) -> None:
        if step == "complete":
            self.evaluate(*self.known.complete(about))
        elif step == "incomplete":
            self.known.incomplete(about)
        else:
            (self.desired.add if wanted else self.desired.discard)(about)
            self.evaluate(about)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), st.sets(st.sampled_from(SCOPES))),
    st.lists(_steps, max_size=30),
)
def test_no_deletion_is_derived_from_an_incomplete_scope(
    scopes: dict[str, set[str]], steps: list[tuple[str, str, bool | None]]
) -> None:
    """And once everything was read, nothing that waited was forgotten."""
    copies = Copies(scopes)

    copies.evaluate(*KEYS)
    for step in steps:
        copies.take(*step)
    for scope in SCOPES:
        copies.take("complete", scope, None)

    assert [key for key in KEYS if copies.known.pending(key)] == []
    assert copies.actual == copies.desired
