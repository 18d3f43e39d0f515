"""A cut waits for quiet, not for ever; and equal states are one revision."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.fleet.revision.cut import (
    Activity,
    Settle,
    due,
    numbered_cut,
    settle_of,
    wants_cut,
)
from skerry.logic.fleet.revision.objects import RevisionPage, cut_annotations
from tests.kit.chain import revisions
from tests.kit.chain.revisions import manifest, pages


@given(st.lists(st.floats(0, 1000), min_size=1))
def test_a_cut_is_due_when_all_is_quiet_or_the_longest_has_passed(times: list[float]) -> None:
    activity = Activity(times[0], times[0])
    for time in times:
        activity = activity.at(time)
    settle = Settle(10, 120)
    assert due(settle, activity) == min(max(times) + 10, min(times) + 120)
    assert due(settle, activity) <= min(times) + 120


def test_settling_is_read_from_a_rollout_and_usual_where_it_says_nothing() -> None:
    assert settle_of({}) == Settle(10.0, 120.0)
    spec = {"settle": {"mode": "Manual", "quiet": "1m30s", "longest": "nonsense"}}
    assert settle_of(spec, "x") == Settle(90.0, 120.0, True, "x")


@given(st.lists(revisions.contents, min_size=1, max_size=8))
def test_two_cuts_of_equal_states_give_one_revision(states: list[dict[str, bytes]]) -> None:
    known: list[RevisionPage] = []
    numbers: dict[str, int] = {}
    for state in states:
        wanted = manifest(state)
        found = numbered_cut(wanted.digest, known)
        assert numbers.setdefault(wanted.digest, found.number) == found.number
        if found.existing is None:
            known += pages(wanted, found.number, found.sequence)
        elif found.news:
            changed = found.existing._replace(sequence=found.sequence)
            known = [changed if each is found.existing else each for each in known]
        again = numbered_cut(wanted.digest, known)
        assert not again.news
        assert again.number == found.number
    assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))


def test_a_number_that_was_named_is_not_given_anew() -> None:
    assert numbered_cut("x", (), least=8).number == 8


def test_the_first_cut_is_made_unasked_and_others_once_for_each_name() -> None:
    manual = Settle(manual=True)
    assert wants_cut(manual, ())
    first = pages(manifest({"a": b"1"}), 1)
    assert not wants_cut(manual, first)
    asked = manual._replace(asked="friday")
    assert wants_cut(asked, first)
    assert numbered_cut(first[0].digest, first, asked).news
    done = [first[0]._replace(cut=cut_annotations(1, "friday")["edge.kcp.io/cut"])]
    assert not wants_cut(asked, done)
    assert wants_cut(Settle(), done)


def test_a_revision_that_lost_a_page_is_cut_again_under_another_number() -> None:
    first = RevisionPage("web-1", "u", "web", 1, "digest", 1, 2, sequence=1)
    second = first._replace(name="web-1.2", page=2, sequence=0)
    whole = numbered_cut("digest", [first, second])
    assert (whole.number, whole.existing, whole.news) == (1, first, False)
    again = numbered_cut("digest", [first])
    assert (again.number, again.existing, again.news) == (2, None, True)
    # And when it was, that one is found and the other is left alone.
    other = first._replace(name="web-2", number=2, pages=1, sequence=2)
    found = numbered_cut("digest", [first, other])
    assert (found.number, found.existing, found.news) == (2, other, False)
