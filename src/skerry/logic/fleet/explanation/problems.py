"""Only what is wrong with placements, the worst first.

A problem is one step that does not hold, of one object or of a whole placement, at all destinations
where it is the same step for the same reason. What is on its way comes last: it may need no more
than a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from skerry.api.refs import ObjectRef
from skerry.logic.fleet.explanation.answer import Answer, PairAnswer
from skerry.logic.fleet.explanation.links import Link, object_json
from skerry.logic.fleet.summary.health import NOT_REPORTED
from skerry.logic.fleet.summary.report import NOT_APPLIED

# Refused or unhealthy at the edge; withheld on the hub; not known; on its way.
AT_EDGE, WITHHELD, UNKNOWN, COMING = range(4)
_COMING: Final = frozenset(
    (
        NOT_APPLIED.reason,
        NOT_REPORTED.reason,
        "CopyDiffers",
        "MailboxNotReady",
        "NotInMailbox",
        "NotYetScheduled",
        "Progressing",
        "RollingOut",
    )
)
# Places that a placement was never meant to go to are no problem of it.
_INTENDED: Final = frozenset(("LocationNotSelected", "PassedOver"))


class PlacementProblem(NamedTuple):
    """A step that does not hold; ``item`` None: of the whole placement. ``places`` are names."""

    severity: int
    placement: ObjectRef
    workspace: str
    item: ObjectRef | None
    link: Link
    places: tuple[str, ...]

    def order(self) -> tuple[Any, ...]:
        """Return where it stands among others: the worst first, then the most widespread."""
        item = self.item or ObjectRef("", "", "", "", "")
        return self.severity, -len(self.places), self.workspace, self.placement.name, item

    def as_json(self) -> dict[str, Any]:
        about = {} if self.item is None else {"object": object_json(self.item)}
        return {
            "placement": self.placement.name,
            "workspace": self.workspace,
            **about,
            **self.link.as_json(),
            "locations": list(self.places),
        }


def problems(answers: Iterable[Answer]) -> list[PlacementProblem]:
    """Return everything that is wrong, the worst first."""
    found = [problem for each in answers for problem in _of(each)]
    return sorted(found, key=PlacementProblem.order)


def _of(found: Answer) -> Iterator[PlacementProblem]:
    places: dict[tuple[ObjectRef | None, Link], list[str]] = {}
    for each in found.locations:
        link = each.link
        if (link.holds is not True or link.reason == "Held") and link.reason not in _INTENDED:
            places.setdefault((None, link), []).append(each.ref.name)
    for pair in found.pairs:
        broken = _broken(pair)
        if broken is not None:
            places.setdefault((pair.item, broken), []).append(pair.ref.name)
    for (item, link), names in places.items():
        where = tuple(dict.fromkeys(names))
        yield PlacementProblem(_severity(link), found.ref, found.workspace, item, link, where)


def _broken(pair: PairAnswer) -> Link | None:
    """Return the step at which a pair fails for a reason of its own, not of its Location."""
    broken = pair.chain.broken
    return None if broken is None or broken.step == "location" else broken


def _severity(link: Link) -> int:
    if link.reason in _COMING:
        return COMING
    if link.holds is None:
        return UNKNOWN
    return AT_EDGE if link.step in ("applied", "health") else WITHHELD
