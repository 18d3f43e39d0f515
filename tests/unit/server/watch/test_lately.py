"""What is called silent was; anything may be called unknown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.server.watch.lately import Lately

PLACES = ("/core/a/x/", "/core/a/y/", "/core/b/x/")


@given(
    st.lists(st.sampled_from(PLACES), max_size=30),
    st.lists(st.sampled_from(PLACES), max_size=30),
    st.integers(0, 40),
    st.integers(0, 3),
)
def test_a_place_called_silent_was_not_written_to(
    before: list[str], since_then: list[str], looked_back: int, max_places: int
) -> None:
    written = list(enumerate((*before, *since_then), start=1))
    began = len(before)
    lately = Lately(max_places)
    lately.begin(began)
    for revision, place in written[began:]:
        lately.note(place, revision)
    if lately.since == began:
        first = max(0, began - looked_back)
        lately.extend(first, {place: revision for revision, place in written[first:began]})
    for place in PLACES:
        for after in range(len(written) + 1):
            silent = all(each != place for revision, each in written if revision > after)
            assert lately.is_silent(place, after) == (silent and after >= lately.since)


def test_it_reaches_back_as_far_as_it_was_extended() -> None:
    lately = Lately()
    lately.begin(100)
    assert not lately.is_silent("/a/", 99)
    lately.note("/a/", 101)
    lately.extend(50, {"/a/": 60, "/b/": 70})
    assert lately.since == 50
    assert not lately.is_silent("/a/", 100), "it was written to since"
    assert lately.is_silent("/a/", 101)
    assert not lately.is_silent("/b/", 69)
    assert lately.is_silent("/b/", 70)
    assert lately.is_silent("/c/", 50)
    assert not lately.is_silent("/c/", 49)


def test_too_many_places_are_forgotten_and_what_follows_is_known() -> None:
    lately = Lately(max_places=2)
    lately.begin(0)
    for revision, place in enumerate(("/a/", "/b/", "/c/"), start=1):
        lately.note(place, revision)
    assert lately.since == 3
    assert not lately.is_silent("/z/", 2)
    assert lately.is_silent("/z/", 3)
    lately.extend(1, {"/a/": 2, "/b/": 3, "/d/": 3})
    assert lately.since == 3, "there are too many of them"
