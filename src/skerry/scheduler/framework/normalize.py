"""Bringing raw scores into the common range."""

from __future__ import annotations

import numpy as np

from skerry.scheduler.framework.plugin import MAX_SCORE, Scores


def proportional(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale by the largest, with integer division; *reverse* makes small scores good.

    When all are zero nothing is known: 0 for everybody, or the best score reversed.
    """
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full(len(scores), MAX_SCORE if reverse else 0, np.int64)
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
