"""The difference of two states of a placement.

Differences compose: that of the first and the third is that of the first and the second followed by
that of the second and the third. Nothing and a destination are two of the things that may be there.

A destination is known by Location, SyncTarget and its UID. One whose SyncTarget was made anew is
another: it is shown as gone and come, though its name stayed, for its workload was deleted and
delivered again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from skerry.logic.fleet.history.fold import State
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.placement.records import Destination


class Difference(NamedTuple):
    """What one destination was before and is after; None: no destination."""

    before: Standing | None
    after: Standing | None


Differences = Mapping[Destination, Difference]


def compare(before: State, after: State) -> Differences:
    """Return what differs, by destination and in their order."""
    every = sorted({*before.standings, *after.standings})
    pairs = (
        (each, Difference(before.standings.get(each), after.standings.get(each))) for each in every
    )
    return {each: pair for each, pair in pairs if pair.before != pair.after}
