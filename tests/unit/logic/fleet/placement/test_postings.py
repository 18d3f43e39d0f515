"""Postings are sets by key, however many numbers a key has."""

from __future__ import annotations

import random

import pytest
from pyroaring import BitMap

from skerry.logic.fleet.placement.postings import Postings


@pytest.mark.parametrize("seed", range(20))
def test_postings_are_as_plain_sets_would_be(seed: int) -> None:
    source = random.Random(seed)
    postings: Postings[str] = Postings()
    plain: dict[str, set[int]] = {}
    for _ in range(200):
        key, number = source.choice("abcd"), source.randrange(4)
        if source.random() < 0.5:
            postings.add(key, number)
            plain.setdefault(key, set()).add(number)
        else:
            left = postings.discard(key, number)
            plain.setdefault(key, set()).discard(number)
            assert left is bool(plain[key])
        assert all(set(postings.of(key)) == plain.get(key, set()) for key in "abcde")
        some = source.sample("abcde", source.randrange(5))
        assert set(postings.union(some)) == set().union(*(plain.get(k, set()) for k in some))
        assert len(postings) == sum(1 for held in plain.values() if held)


def test_a_bitmap_that_was_handed_out_is_nobody_elses() -> None:
    postings: Postings[str] = Postings()
    postings.add("a", 1)
    assert postings.of("a") is not postings.of("a")
    assert postings.of("nobody") == BitMap()
