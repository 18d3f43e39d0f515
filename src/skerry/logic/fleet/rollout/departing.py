"""Who leaves now, of those that nobody wants any more.

A destination that guards let go is on its way out: it stays in its slice until there is room among
those that depart, and counts as departing until its mailbox has nothing of the placement. What was
let go once is not asked about again.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from pyroaring import BitMap

from skerry.logic.fleet.rollout.spec import Portion


class Departure(NamedTuple):
    """The slots that stay in their slices for now, and everybody who is on the way out."""

    stays: BitMap
    departing: BitMap


def depart(
    pace: Portion,
    departing: BitMap,
    present: BitMap,
    unwanted: BitMap,
    at_once: BitMap,
    left: BitMap,
) -> Departure:
    """Return who stays for now.

    *departing* were on their way out before, *present* are in slices, *unwanted* are those of them
    that are to go, *at_once* those of these that wait for nobody, and *left* those whose mailbox
    has nothing any more.
    """
    flying = departing - present - left
    room = max(pace.of(len(present)) - len(flying), 0)
    waiting = unwanted - at_once
    return Departure(waiting - BitMap(islice(waiting, room)), flying | waiting)
