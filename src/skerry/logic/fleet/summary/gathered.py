"""What a source's status is made of: the tallies of the placements that ask for one.

One tally answers at once, whatever the number of destinations. Where several placements ask, their
destinations are united, each counted once; that takes a pass over them, at the pace of writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skerry.api.refs import ClusterName
from skerry.logic.fleet.summary.report import Number
from skerry.logic.fleet.summary.standing import Detail
from skerry.logic.fleet.summary.tally import ConditionTotal, Tally


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the reports of a source's destinations come to.

    ``delivered`` and ``healthy`` count destinations that were heard of: those that have applied the
    content at hand, and of these the ones that are healthy or have no health to wait for. ``worst``
    is the first that is not among the latter. ``generation`` is the oldest of the source that a
    copy was made of. ``min`` and ``max`` are the extremes of numbers; a zero counts whether it
    is reported or left out.
    """

    destinations: int = 0
    unknown: int = 0
    delivered: int = 0
    healthy: int = 0
    worst: Detail | None = None
    generation: int = 0
    min: Mapping[str, Number] = field(default_factory=dict)
    max: Mapping[str, Number] = field(default_factory=dict)
    conditions: tuple[ConditionTotal, ...] = ()

    @property
    def known(self) -> int:
        """How many destinations were heard of lately."""
        return self.destinations - self.unknown


def united(tallies: Sequence[Tally]) -> Tally:
    """Return the tally of all destinations of *tallies*, of which there is one at least."""
    if len(tallies) == 1:
        return tallies[0]
    return Tally(dict(_details(tallies)).items())


def _details(tallies: Iterable[Tally]) -> Iterable[tuple[str, Detail]]:
    return (each for tally in tallies for each in tally.details())


def gathered(tally: Tally, cluster: ClusterName) -> Gathered:
    """Return what a tally comes to for the source in *cluster*."""
    totals, ranges = tally.totals(0), list(tally.ranges())
    return Gathered(
        destinations=totals.destinations,
        unknown=totals.unknown,
        delivered=totals.delivered,
        healthy=tally.ready(),
        worst=tally.first_unready(),
        generation=tally.oldest_generation(cluster),
        min={name: least for name, least, _ in ranges},
        max={name: greatest for name, _, greatest in ranges},
        conditions=totals.conditions,
    )
