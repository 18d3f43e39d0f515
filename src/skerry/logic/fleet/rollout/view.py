"""What a situation comes to: who is in the wave, waits, is good or bad, or is brought back.

Everything follows from the situation and the state as it has become so far in one step; nothing is
remembered. ``advance`` asks it row by row, ``assign`` when the state is settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyroaring import BitMap

from skerry.api.kcp.rollouts import Phase
from skerry.logic.fleet.rollout.state import (
    AWAITING,
    COMPLETED,
    PAUSED,
    PROGRESSING,
    ROLLED_BACK,
    SOAKING,
    Revision,
    Situation,
    State,
    Verdicts,
)

AT_REST: Final[tuple[Phase, ...]] = (COMPLETED, ROLLED_BACK)
UNDER_WAY: Final[tuple[Phase, ...]] = (PROGRESSING, SOAKING, AWAITING, PAUSED)


@dataclass(frozen=True, slots=True)
class View:
    """A situation, with the state as it has become, and verdicts that are about it."""

    given: Situation
    state: State

    @property
    def verdicts(self) -> Verdicts:
        """Verdicts of this attempt; of a later one nothing is known yet but the edges."""
        found = self.given.verdicts
        if found.attempt == self.state.attempt:
            return found
        return Verdicts(absent=found.absent, unavailable=found.unavailable, left=found.left)

    @property
    def destination(self) -> int:
        """The revision that should be everywhere in the end."""
        return self.undone or self.given.live

    @property
    def undone(self) -> int:
        """The older revision that a person goes back to; 0 where none is, or it was given up."""
        back, newest = self.given.wishes.undo
        known = back in self.given.revisions and self.given.live <= newest
        # Where it has arrived already, an abort of it comes too late to mean anything.
        given_up = back == self.given.wishes.abort and back != self.state.stable
        return back if known and not given_up else 0

    @property
    def target(self) -> Revision:
        return self.given.revisions.get(self.state.target) or Revision(self.state.target)

    @property
    def members(self) -> BitMap:
        """Everybody in the wave who is still there, and newcomers that were given the target."""
        if self.state.phase not in UNDER_WAY:
            return BitMap()
        return (self.state.members & self.given.slots) | self.given.at(self.state.target)

    @property
    def reachable(self) -> BitMap:
        """Everybody in the wave who is heard of; where edges are waited for, everybody."""
        if self.given.spec.offline_policy == "Wait":
            return self.members
        return self.members - self.verdicts.absent

    @property
    def waiting(self) -> BitMap:
        """Those of the wave who have no verdict."""
        found = self.verdicts
        return self.reachable - found.good - found.bad - found.excused - found.unfit

    @property
    def bad(self) -> BitMap:
        """Those that speak against the target; newcomers do not: they may be what is wrong."""
        return self.verdicts.bad & self.given.slots

    @property
    def good(self) -> BitMap:
        return self.verdicts.good & self.members

    @property
    def returning(self) -> BitMap:
        """Those that a return brings back.

        Who is silent or frozen at an older revision was not moved by the rollout, and stays.
        """
        state, left = self.state, self.given.frozen | self.verdicts.absent
        return BitMap(
            place.slot
            for place in self.given.places
            if place.revision != state.stable
            and (
                place.revision == state.target
                or not 0 < place.revision < state.stable
                or place.slot not in left
            )
        )
