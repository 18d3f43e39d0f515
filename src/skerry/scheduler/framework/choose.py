"""Choosing several targets at once: the best ones, evenly over domains.

A pod goes to one node; a placement that asks for *N* locations wants N of those feasible. They are
taken one by one: the best total first, of equal ones from the emptiest domain, then by name, and
never so that a domain is ahead of the emptiest by more than the skew allowed. A domain in which
nobody waits any more holds no other back: the number asked for counts more than evenness. Pure and
deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# The values a target has of the labels spread over, one for each; None where it has none.
Domain = tuple[str | None, ...]
Name = tuple[str, ...]


class Offer(NamedTuple):
    """A feasible target. Offers compare best first, as far as domains do not matter."""

    cost: int
    name: Name
    row: int
    domain: Domain = ()

    @classmethod
    def of(cls, total: int, name: Name, row: int, domain: Domain = ()) -> Offer:
        """Return the offer of a target that scored *total*."""
        return cls(-total, name, row, domain)


def choose(
    offers: Sequence[Offer],
    count: int,
    skews: Sequence[int] = (),
    taken: Iterable[Domain] = (),
) -> list[int]:
    """Return the rows of up to *count* offers, in the order they are taken.

    *skews* are the greatest differences allowed, one per label spread over; *taken* are the
    domains of what is there already. Fewer come back where the skews of several labels together
    leave no choice.
    """
    if not skews:
        return [offer.row for offer in nsmallest(count, offers)]
    domains = _Domains(offers, skews, taken)
    chosen: list[int] = []
    while len(chosen) < count and (row := domains.take()) is not None:
        chosen.append(row)
    return chosen


class _Domains:
    """Offers by domain, best last, and how many were taken of each value of each label.

    Every taking looks at all domains, and there may be as many as offers; so it does in arrays.
    """

    def __init__(
        self, offers: Sequence[Offer], skews: Sequence[int], taken: Iterable[Domain]
    ) -> None:
        self._skews = skews
        by_domain: dict[Domain, list[Offer]] = {}
        ordered = sorted(offers)
        for offer in reversed(ordered):
            by_domain.setdefault(offer.domain, []).append(offer)
        self._waiting = list(by_domain.values())
        self._open = np.ones(len(self._waiting), np.bool_)
        self._position = {offer.row: position for position, offer in enumerate(ordered)}
        self._cost = np.array([queue[-1].cost for queue in self._waiting], np.int64)
        self._first = np.array([self._position[queue[-1].row] for queue in self._waiting], np.int64)
        self._values: list[NDArray[np.int64]] = []
        self._counts: list[NDArray[np.int64]] = []
        already = list(taken)
        for label in range(len(skews)):
            self._number(label, list(by_domain), already)

    def _number(self, label: int, domains: Sequence[Domain], taken: Sequence[Domain]) -> None:
        """Give the values of one label numbers, and count what has them already."""
        numbers: dict[str | None, int] = {}
        values = [numbers.setdefault(domain[label], len(numbers)) for domain in domains]
        counts = np.zeros(len(numbers), np.int64)
        for domain in taken:
            number = numbers.get(domain[label])
            if number is not None:
                counts[number] += 1
        self._values.append(np.array(values, np.int64))
        self._counts.append(counts)

    def take(self) -> int | None:
        """Return the row of the best offer that keeps every skew; None when none does."""
        left = np.flatnonzero(self._open)
        if not len(left):
            return None
        loads = [c[v[left]] for c, v in zip(self._counts, self._values, strict=True)]
        allowed = np.ones(len(left), np.bool_)
        for load, skew in zip(loads, self._skews, strict=True):
            allowed &= load + 1 - load.min() <= skew
        if not allowed.any():
            return None
        # Sorted by the last key first: cost, then loads in the order of labels, then name.
        best = np.lexsort(
            [
                self._first[left[allowed]],
                *(load[allowed] for load in reversed(loads)),
                self._cost[left[allowed]],
            ]
        )[0]
        return self._taken(int(left[allowed][best]))

    def _taken(self, domain: int) -> int:
        queue = self._waiting[domain]
        row = queue.pop().row
        for counts, values in zip(self._counts, self._values, strict=True):
            counts[values[domain]] += 1
        if queue:
            self._cost[domain] = queue[-1].cost
            self._first[domain] = self._position[queue[-1].row]
        else:
            self._open[domain] = False
        return row
