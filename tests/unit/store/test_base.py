"""What every store says when it refuses, and how long values are."""

from __future__ import annotations

import pytest

from skerry.store.base import (
    Compacted,
    Conflict,
    Entry,
    Future,
    Page,
    Sizes,
    StoreError,
    Unavailable,
    Write,
    sizes_of,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Conflict(2, "/a", 5, 7), "key '/a': expected revision 5, found 7"),
        (Compacted(3, 9), "revision 3 is compacted; the oldest kept is 9"),
        (Future(9, 3), "revision 9 is in the future; the newest is 3"),
    ],
)
def test_refusals_name_what_was_asked_and_what_there_is(error: StoreError, text: str) -> None:
    assert str(error) == text


def test_whoever_handles_stores_handles_all_refusals_at_once() -> None:
    for kind in (Conflict, Compacted, Future, Unavailable):
        assert issubclass(kind, StoreError)
    assert Conflict(2, "/a", 5, 7).index == 2


def test_sizes_are_those_of_the_values_in_order() -> None:
    page = Page([Entry("/a", b"", 1), Entry("/b", b"xyz", 2)], 2, more=True)
    assert sizes_of(page) == Sizes([("/a", 0), ("/b", 3)], more=True)


def test_a_write_expects_nothing_unless_it_says() -> None:
    assert Write("/a", b"x").expected is None
    assert Write("/a", None, expected=0) != Write("/a", None)
