"""What a plan for slices decides about destinations, as decisions to be recorded.

One decision for each reason, so that a record has one; beyond a few, the rest is one of its own.

The reasons are asked for here, when the decision is made, and are never found out later: what
inventories were like is not recorded, and the rules of a later version must not explain what an
earlier one did. Asking costs a look at the index for each destination. A relabelling that moves ten
thousand is explained by its cause, so after the first thousand nobody is asked; if those all had
one reason the others are taken to have it too.

Causes are those of the whole reconcile. A record keeps the ones that are about its destinations and
those that are about all of them, such as an edit of the placement; where none is about them every
cause is kept, since one of them it must have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from skerry.api.kcp.history import Change
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Cause, Decision, Reason
from skerry.logic.fleet.placement.records import Destination

# Reasons that are kept apart in one change of slices.
_MAX_REASONS = 8
# Destinations whose own reasons are found out; beyond, it is a change of so much that the cause
# says more than ten thousand reasons would.
_MAX_REASONED = 1000
SEVERAL = Reason("Several", "several reasons")

Why = Callable[[Destination], Reason]


class Move(NamedTuple):
    """A destination that has another revision from now on."""

    before: Standing
    after: Standing


class Difference(NamedTuple):
    """What slices are about to gain, lose and change."""

    joined: tuple[Standing, ...] = ()
    left: tuple[Standing, ...] = ()
    moved: tuple[Move, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.joined or self.left or self.moved)


class Causes(NamedTuple):
    """What led to a reconcile: the newest first, and how many there were."""

    known: tuple[Cause, ...] = ()
    total: int = 0

    def about(self, destinations: Iterable[Destination]) -> Causes:
        """Return the causes that are about any of these destinations, or about none at all."""
        if len(self.known) < 2:
            return self
        places = {
            (kind, name)
            for each in destinations
            for kind, name in (
                ("Location", (each.cluster, each.location)),
                ("SyncTarget", (each.cluster, each.sync_target)),
            )
        }
        own = [each for each in self.known if (each.kind, (each.cluster, each.name)) in places]
        general = [each for each in self.known if each.kind not in ("Location", "SyncTarget")]
        found = (*own, *general)
        if not found:
            return self
        return Causes(found, self.total - len(self.known) + len(found))


class Because(NamedTuple):
    """Why destinations get another revision, and what led to it."""

    reason: Reason
    causes: Causes = Causes()


def decisions(
    difference: Difference, causes: Causes, why_joined: Why, why_left: Why, moved: Because
) -> list[Decision]:
    """Return what is to be recorded: who leaves before who comes, and then who changes."""
    return [
        *_grouped("Left", difference.left, causes, why_left),
        *_grouped("Joined", difference.joined, causes, why_joined),
        *_moves(difference.moved, moved),
    ]


def _grouped(
    change: Change, standings: tuple[Standing, ...], causes: Causes, why: Why
) -> list[Decision]:
    groups: dict[tuple[Reason, int | None], list[Standing]] = {}
    reason = SEVERAL
    for number, standing in enumerate(standings):
        if number < _MAX_REASONED:
            reason = why(standing.destination)
        elif len(groups) > 1:
            reason = SEVERAL  # else they have the one reason that the first thousand have
        if len(groups) >= _MAX_REASONS and (reason, standing.revision) not in groups:
            reason = SEVERAL
        groups.setdefault((reason, standing.revision), []).append(standing)
    return [
        _decision(change, tuple(members), reason, causes, revision)
        for (reason, revision), members in groups.items()
    ]


def _decision(
    change: Change,
    members: tuple[Standing, ...],
    reason: Reason,
    causes: Causes,
    revision: int | None,
) -> Decision:
    own = causes.about(each.destination for each in members)
    before, after = (revision, None) if change == "Left" else (None, revision)
    return Decision(change, members, reason, own.known, own.total, before, after)


def _moves(moved: tuple[Move, ...], because: Because) -> list[Decision]:
    reason, causes = because
    groups: dict[tuple[int | None, int | None], list[Standing]] = {}
    for before, after in moved:
        start = before.revision if before.slot is not None else None
        groups.setdefault((start, after.revision), []).append(after)
    return [
        Decision("Revised", tuple(members), reason, causes.known, causes.total, start, to)
        for (start, to), members in groups.items()
    ]
