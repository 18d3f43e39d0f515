"""Slots: the lasting numbers of the destinations of a placement with a Rollout.

A destination keeps its slot until it leaves, and the number is never given again: so a set of
destinations is a bitmap, and what was said about slot 17 a month ago is about the same edge.

Which number comes next must outlive the slot that had the highest. Each page says it in an
annotation, ``edge.kcp.io/next-slot``, written with the page itself; the highest that any page says
or holds counts. A page that loses a slot says in the same write what comes next, and before a page
goes away the first one says it. So no sequence of writes, cut off anywhere, forgets a number; only
who deletes every slice by hand makes them begin anew.

Destinations that were there before the Rollout get slots in their order, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from skerry.api.edge import NEXT_SLOT
from skerry.api.kcp.history import MAX_SLOT
from skerry.api.objects import Object
from skerry.logic.fleet.placement.slices import Assigned, assigned_members

FIRST_SLOT = 1
# Numbers of 19 digits and more are nobody's slots; the text is not ours alone to write.
_MAX_DIGITS = 18


class Slots(NamedTuple):
    """What members are given, and the slot that the next newcomer gets."""

    assigned: Mapping[int, Assigned]
    next: int


def slots_in(slices: Iterable[Object]) -> Slots:
    """Return the slots of a placement's lean slices; of what stands twice, the first counts."""
    found: dict[int, Assigned] = {}
    following = FIRST_SLOT
    for piece in slices:
        held = assigned_members(piece)
        found = {**held, **found} if found else held
        following = max(following, _following(piece, held))
    return Slots(found, following)


def next_known(piece: Object) -> int:
    """Return the slot that would come next if a lean slice were the only one."""
    return _following(piece, assigned_members(piece))


def _following(piece: Object, assigned: Mapping[int, Assigned]) -> int:
    text = (piece["metadata"].get("annotations") or {}).get(NEXT_SLOT, "")
    said = int(text) if text.isdecimal() and text.isascii() and len(text) <= _MAX_DIGITS else 0
    held = max((each.slot for each in assigned.values()), default=0)
    return max(FIRST_SLOT, said if said <= MAX_SLOT else 0, held + 1)
