"""Raw scores in the common range."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.framework.normalize import proportional
from skerry.scheduler.framework.plugin import MAX_SCORE

RAW = st.lists(st.integers(0, 10**9), min_size=1, max_size=8)


@given(RAW)
def test_scores_keep_their_order_and_the_best_has_the_most(raw: list[int]) -> None:
    scores = np.array(raw, np.int64)
    found = proportional(scores)
    assert found.min() >= 0
    assert found.max() == (MAX_SCORE if max(raw) else 0)
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()


@given(RAW)
def test_reversed_small_scores_are_good(raw: list[int]) -> None:
    scores = np.array(raw, np.int64)
    assert (proportional(scores) + proportional(scores, reverse=True) == MAX_SCORE).all()


def test_nobody_has_no_scores() -> None:
    assert proportional(np.array([], np.int64)).tolist() == []
