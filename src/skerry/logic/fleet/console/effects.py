"""What an edit does to each edge, for the map beside the editor and the number before "apply".

An answer to "what if" is about destinations: an edge that two Locations lead to is two of them, and
what a placement carries from now on is at all of its destinations without naming any. People ask
about edges: one gains a placement when nothing led there before, and loses it when nothing does any
more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.console.edges import EdgeKey
from skerry.logic.fleet.explanation.changes import PlacementChange
from skerry.logic.fleet.placement.records import Destination

GAINED, LOST, CHANGED = "gained", "lost", "changed"
# Which of two effects on the same edge is shown: of several placements one may come and one go.
_ORDER: Final = (CHANGED, GAINED, LOST)


def edge_effects(
    changes: Iterable[PlacementChange], standing: Callable[[ObjectRef], Iterable[Destination]]
) -> dict[EdgeKey, str]:
    """Return the edges that *changes* reach, and how; *standing* is where a placement leads now."""
    found: dict[EdgeKey, str] = {}
    for change in changes:
        for key, effect in _of_placement(change, frozenset(standing(change.ref))):
            if key not in found or _ORDER.index(found[key]) < _ORDER.index(effect):
                found[key] = effect
    return found


def _of_placement(
    change: PlacementChange, standing: frozenset[Destination]
) -> Iterable[tuple[EdgeKey, str]]:
    """Yield what a change of one placement does to each edge it reaches.

    Standing and removed destinations together are where it led: what is removed may already have
    left the slices that were read. An edge that is lost is never said to be changed as well.
    """
    added, removed = frozenset(change.destinations_added), frozenset(change.destinations_removed)
    before = _edges(standing | removed)
    after = _edges((standing - removed) | added)
    touched = {key for each in change.contents for key in _edges(each.destinations)}
    if change.objects_added or change.objects_removed:
        touched |= before
    yield from ((key, CHANGED) for key in touched - (before - after))
    yield from ((key, GAINED) for key in _edges(added) - before)
    yield from ((key, LOST) for key in before - after)


def _edges(destinations: Iterable[Destination]) -> set[EdgeKey]:
    return {(each.cluster, each.sync_target) for each in destinations}
