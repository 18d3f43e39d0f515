"""What of revisions and contents may go.

A revision stays while a slot or a Rollout names it, while somebody has pinned it, and while it is
among the last few. A content stays while a revision names it; it goes when two sweeps an hour apart
found none that does. So a content that is written ahead of its revision has that hour to be named,
and nothing has to be counted or held by finalizers.

Revisions go before contents, and their first page before the others: nobody finds a part of one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from skerry.api.refs import ClusterName
from skerry.logic.fleet.revision.objects import RevisionPage

HISTORY = 10
SWEEP_SECONDS = 3600.0

# A workspace and a placement in it; a workspace and a content.
PlacementKey = tuple[ClusterName, str]
ContentKey = tuple[ClusterName, str]


class SweepPlan(NamedTuple):
    """What goes, in this order; and the contents that may go next time, since when.

    ``pages`` are PlacementRevisions.
    """

    pages: tuple[tuple[ClusterName, RevisionPage], ...]
    contents: tuple[ContentKey, ...]
    unnamed: Mapping[ContentKey, float]


def sweep(
    pages: Mapping[ClusterName, Collection[RevisionPage]],
    contents: Iterable[ContentKey],
    used: Mapping[PlacementKey, Collection[int]],
    unnamed: Mapping[ContentKey, float],
    now: float,
    history: int = HISTORY,
) -> SweepPlan:
    """Return what may go. *used* are numbers that slots and Rollouts name.

    *unnamed* are contents that the sweeps before found unnamed, with the time of the first.
    """
    going = tuple(
        (cluster, page)
        for cluster in sorted(pages)
        for page in _surplus(cluster, pages[cluster], used, history)
    )
    gone = {(cluster, page.name) for cluster, page in going}
    named = {
        (cluster, each.digest)
        for cluster, found in pages.items()
        for page in found
        if (cluster, page.name) not in gone
        for each in (*page.items, *page.inputs.customizers)
    }
    still: dict[ContentKey, float] = {}
    removed = []
    for key in sorted(contents):
        if key in named:
            continue
        since = unnamed.get(key)
        if since is not None and now - since >= SWEEP_SECONDS:
            removed.append(key)
        else:
            still[key] = now if since is None else since
    return SweepPlan(going, tuple(removed), still)


def _surplus(
    cluster: ClusterName,
    pages: Collection[RevisionPage],
    used: Mapping[PlacementKey, Collection[int]],
    history: int,
) -> list[RevisionPage]:
    by_placement: dict[str, list[RevisionPage]] = {}
    for page in pages:
        by_placement.setdefault(page.placement, []).append(page)
    found = []
    for placement, own in sorted(by_placement.items()):
        last = sorted({each.number for each in own})[-history:] if history else []
        cut_last = sorted(own, key=lambda each: each.sequence)[-1:]
        kept = {
            *last,
            *used.get((cluster, placement), ()),
            *(each.number for each in own if each.pinned),
            *(each.number for each in cut_last),
        }
        surplus = (each for each in own if each.number not in kept)
        found += sorted(surplus, key=lambda each: (each.number, each.page))
    return found
