"""The rollout that a change would start: its waves, who is in them, and when it could end.

Which edges a wave of so many takes depends on the digest of what is not cut yet: of such a wave the
number is known and not the names. Times are the earliest possible: everybody is good at once, and
nobody waits for a person.

A hundred edges, ``waves: [{name: canary, until: 2, soak: 10m}]``, ``minReady: 30s`` and a pace of
10 %, which is ten at once:

    wave canary         2 in one turn        30 s + 10 min
    everybody else      98 in ten turns      10 x 30 s
    earliest end                             15 min 30 s, after the time to settle

The group of ``pace.per`` that needs the most turns decides. Who is unwell by then, and takes room
without being assigned, cannot be foreseen; so a rollout may take longer and never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap

from skerry.api.edge import CUT
from skerry.logic.fleet.rollout.assign import groups_of
from skerry.logic.fleet.rollout.spec import RolloutSpec, Wave
from skerry.logic.fleet.rollout.state import SETTLING, State
from skerry.logic.fleet.rollout.view import UNDER_WAY
from skerry.logic.fleet.rollout.waves import WaveMember, opened, selects

# Destinations of a wave that are named.
_MAX_NAMES = 10


@dataclass(frozen=True, slots=True)
class WaveForeseen:
    """A wave: how many it adds, and whom, where that is known.

    ``batches``: how often as many as the pace allows are assigned. ``seconds``: it takes no less.
    """

    name: str
    added: int
    names: tuple[str, ...]
    batches: int
    seconds: float
    soak: float = 0.0
    approval: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "added": self.added,
            "locations": list(self.names),
            "batches": self.batches,
            "soakSeconds": self.soak,
            "approval": self.approval,
            "earliestSeconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class RolloutForeseen:
    """A rollout that would start, and what would hold it."""

    name: str
    stable: int
    settle: float
    waves: tuple[WaveForeseen, ...]
    absent: int = 0
    holds: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The earliest end, from the change on."""
        return self.settle + sum(wave.seconds for wave in self.waves)

    def as_json(self) -> dict[str, Any]:
        return {
            "rollout": self.name,
            "stable": self.stable,
            "settleSeconds": self.settle,
            "waves": [each.as_json() for each in self.waves],
            "earliestEndSeconds": self.seconds,
            "approvals": sum(each.approval for each in self.waves),
            "absent": self.absent,
            "holds": list(self.holds),
        }


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a rollout would start from; *locations* are names by slot.

    *manual*: a revision is cut when a person asks for it, and not when the workspace is quiet.
    """

    name: str
    spec: RolloutSpec
    state: State
    places: Sequence[WaveMember]
    locations: Mapping[int, str]
    settle: float
    absent: BitMap
    # Why content is frozen somewhere, by slot.
    frozen: Mapping[int, str]
    manual: bool = False


def foreseen_rollout(given: Prospect) -> RolloutForeseen:
    """Return the rollout that another content would start."""
    waves: list[WaveForeseen] = []
    held, known = BitMap(), True
    for number in range(1, given.spec.last + 1):
        wave = given.spec.wave(number)
        found = opened(wave, given.state.digest, given.places, held, given.absent, BitMap())
        # After a wave of some, nobody knows who is left.
        known = known and all(p.slot in found for p in given.places if selects(wave, p))
        waves.append(_wave(given, wave, found - held, named=known))
        held = found
    return RolloutForeseen(
        given.name,
        given.state.stable,
        given.settle,
        tuple(each for each in waves if each.added),
        len(given.absent),
        tuple(_holds(given)),
    )


def _wave(given: Prospect, wave: Wave, added: BitMap, *, named: bool) -> WaveForeseen:
    reachable = [p for p in given.places if p.slot in added - given.absent]
    batches = _batches(given, reachable)
    judge = given.spec.judge
    seconds = batches * judge.min_ready + wave.soak
    names = sorted(given.locations[slot] for slot in added)[:_MAX_NAMES] if named else []
    return WaveForeseen(
        wave.name, len(added), tuple(names), batches, seconds, wave.soak, wave.approval
    )


def _batches(given: Prospect, coming: Sequence[WaveMember]) -> int:
    """Return in how many turns these come, in the group that takes longest."""
    pace = given.spec.pace
    totals: dict[tuple[str, ...], int] = {}
    mine: dict[tuple[str, ...], int] = {}
    for place in given.places:
        for group in groups_of(pace, place):
            totals[group] = totals.get(group, 0) + 1
    for place in coming:
        for group in groups_of(pace, place):
            mine[group] = mine.get(group, 0) + 1
    limits = {
        group: max(min(pace.concurrency.of(total), pace.max_unavailable.of(total)), 1)
        for group, total in totals.items()
    }
    return max((-(-count // limits[group]) for group, count in mine.items()), default=0)


def _holds(given: Prospect) -> Iterator[str]:
    """Yield what would keep it from starting, or from going on."""
    spec, state = given.spec, given.state
    if spec.force:
        yield f"spec.force keeps everybody at revision {spec.force}: {spec.force_reason}"
    if given.manual:
        yield f"settle.mode is Manual: a revision is cut when somebody annotates {CUT}"
    if spec.paused:
        yield "spec.paused is true"
    if state.phase == SETTLING:
        yield "the first revision has not been cut yet"
    if state.phase in UNDER_WAY:
        under_way = f"revision {state.target} is under way"
        queued = spec.supersede == "Queue"
        yield f"{under_way}: it waits for that" if queued else f"{under_way}: it takes its place"
    for why in sorted(set(given.frozen.values())):
        count = sum(each == why for each in given.frozen.values())
        yield f"{why} freezes content at {count} of {len(given.places)} destinations"
    yield from _gates(given)


def _gates(given: Prospect) -> Iterator[str]:
    """Yield what every wave, or one of them, has to show.

    Of the last wave no number is asked: there all that can be reached are evidence enough.
    """
    spec, wanted = given.spec, given.spec.judge.evidence
    for number in range(1, spec.last):
        wave = spec.wave(number)
        there = sum(selects(wave, p) and p.slot not in given.absent for p in given.places)
        if 0 < there < wanted:
            yield f"wave {wave.name}: {wanted} must be good, and {there} can be reached"
    for check in spec.judge.checks:
        yield f"StatusQuery {check.query} must hold after each wave"
    for kind in spec.judge.external:
        yield f"condition {kind} must be True after each wave"
