"""What a Rollout's status remembers, and what else a step of the rollout is decided from.

Everything that must outlive a process is here: phase, times, who is in the wave. Assignments are in
the slices. The edge scheduler writes all of it but ``verdicts``, which are the summarizer's; so the
two never write the same field.

``attempt`` counts the turns of a rollout: a target that starts, a return. Verdicts name the attempt
they are about, so that what was thought of a slot before a turn is never taken for what is thought
of it after.

The two writers do not wait for each other, so either may be behind. A scheduler that reads verdicts
of an older attempt reads them as none: slots wait a moment longer, and none passes or fails by
mistake. What is known of the edges themselves (``absent``, ``unavailable``, ``left``) is true of
any attempt and is kept; otherwise every turn would begin by waiting for edges that are lost.

Sets of slots are compressed bitmaps in base64: ten thousand slots are a few hundred bytes as a rule
and some kilobytes at worst, so a status stays small where one entry for each destination would end
at what one object may hold. They are sets of slots and not of names because a slot is never given
again: what is said of one is about the same edge for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from pyroaring import BitMap

from skerry.api.kcp.rollouts import MAX_WAVES, Phase
from skerry.logic.fleet.rollout.bitmaps import MAX_SLOTS, decoded, encoded
from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.waves import WaveMember

SETTLING: Final = "Settling"
PROGRESSING: Final = "Progressing"
SOAKING: Final = "Soaking"
AWAITING: Final = "Awaiting"
PAUSED: Final = "Paused"
ROLLING_BACK: Final = "RollingBack"
ROLLED_BACK: Final = "RolledBack"
COMPLETED: Final = "Completed"

# Times of assignments that are kept apart; older ones are counted from the next younger.
MAX_BATCHES: Final = 32
# Slots that a failure names.
MAX_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision as a rollout sees it.

    ``one_way``: it cannot be taken back. ``is_empty``: it has nothing.
    """

    number: int
    digest: str = ""
    verdict: str = "Candidate"
    one_way: bool = False
    is_empty: bool = False


class Batch(NamedTuple):
    """Slots that are in flight since a time, in RFC 3339."""

    since: str
    slots: BitMap


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a revision failed. ``undo`` is the wish that it was rolled out for, if it was one."""

    revision: int
    reason: str
    message: str = ""
    slots: tuple[int, ...] = ()
    undo: tuple[int, int] = (0, 0)

    def as_object(self) -> dict[str, Any]:
        back, newest = self.undo
        return {
            "revision": self.revision,
            "reason": self.reason,
            "message": self.message,
            "slots": list(self.slots),
            **({"undo": f"{back}@{newest}"} if back else {}),
        }


class Quiet(NamedTuple):
    """Since when a wave is full and good, in RFC 3339, and how many seconds of it are proven.

    Proven is what was seen by a clock that does not jump and was written down since.
    """

    since: str = ""
    proven: int = 0


NOT_QUIET: Final = Quiet()


@dataclass(frozen=True, slots=True)
class State:
    """What was remembered of a rollout."""

    phase: Phase = "Settling"
    attempt: int = 0
    target: int = 0
    digest: str = ""
    stable: int = 0
    wave: int = 0
    wave_name: str = ""
    opened: str = ""
    quiet: Quiet = NOT_QUIET
    # Everybody in the waves up to this one, and the Bad that were there when it was quiet.
    members: BitMap = field(default_factory=BitMap)
    bad_seen: int = 0
    in_flight: tuple[Batch, ...] = ()
    unwell_before: BitMap = field(default_factory=BitMap)
    # Newcomers at the stable revision that are not judged yet.
    joining: BitMap = field(default_factory=BitMap)
    # Nobody has shown yet that the stable revision is good: it is the first, of a new placement.
    unproven: bool = False
    failure: Failure | None = None
    # Those that nobody wants any more, until nothing is left of them.
    departing: BitMap = field(default_factory=BitMap)


def state_of(status: Mapping[str, Any]) -> State:
    """Read what a Rollout's status remembers.

    Anybody who may write the status may have written it: what is gone through one by one, waves and
    slots, is no more than there can be.
    """
    wave, failure = status.get("wave") or {}, status.get("failure")
    return State(
        status.get("phase") or "Settling",
        int(status.get("attempt") or 0),
        int(status.get("target") or 0),
        status.get("digest") or "",
        int(status.get("stable") or 0),
        min(max(int(wave.get("number") or 0), 0), MAX_WAVES + 1),
        wave.get("name") or "",
        wave.get("opened") or "",
        Quiet(wave.get("quietSince") or "", int(wave.get("soakedSeconds") or 0)),
        decoded(wave.get("slots")),
        int(wave.get("badSeen") or 0),
        tuple(_batches(status.get("inFlight") or ())),
        decoded(status.get("unwellBefore")),
        decoded(status.get("joining")),
        bool(status.get("unproven")),
        Failure(
            int(failure.get("revision") or 0),
            failure.get("reason") or "",
            failure.get("message") or "",
            tuple(failure.get("slots") or ()),
            pair_in(str(failure.get("undo") or "")),
        )
        if failure
        else None,
        decoded(status.get("departing")),
    )


def _batches(found: Iterable[Mapping[str, Any]]) -> Iterator[Batch]:
    """Yield what is in flight: of all batches together no more than a placement has."""
    left = MAX_SLOTS
    for each in found:
        slots = decoded(each["slots"])
        left -= len(slots)
        if left >= 0:
            yield Batch(each["since"], slots)


def written(state: State) -> dict[str, Any]:
    """Return *state* as fields of a status, every one of ours: what is not there is null.

    A merge patch of them replaces exactly these and leaves the verdicts alone.
    """
    wave: dict[str, Any] | None = None
    if state.wave:
        wave = {
            "number": state.wave,
            "name": state.wave_name,
            "opened": state.opened or None,
            "quietSince": state.quiet.since or None,
            "soakedSeconds": state.quiet.proven or None,
            "slots": encoded(state.members) or None,
            "badSeen": state.bad_seen or None,
        }
    return {
        "phase": state.phase,
        "attempt": state.attempt,
        "target": state.target or None,
        "digest": state.digest or None,
        "stable": state.stable or None,
        "wave": wave,
        "inFlight": [
            {"since": each.since, "slots": encoded(each.slots)} for each in state.in_flight
        ]
        or None,
        "unwellBefore": encoded(state.unwell_before) or None,
        "joining": encoded(state.joining) or None,
        "unproven": state.unproven or None,
        "failure": state.failure.as_object() if state.failure is not None else None,
        "departing": encoded(state.departing) or None,
    }


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the summarizer thinks of slots.

    ``good``, ``bad`` and ``excused`` are about the target, ``delivered`` are those whose edge has
    applied it. ``settled`` are those whose mailbox has the revision that their slice says,
    whichever it is; ``joined`` and ``unfit`` are newcomers that are well, or not, at the stable
    revision. ``absent`` and ``unavailable`` are about edges, and ``left`` are those that depart
    whose mailbox has nothing of the placement any more.
    """

    attempt: int = -1
    good: BitMap = field(default_factory=BitMap)
    bad: BitMap = field(default_factory=BitMap)
    excused: BitMap = field(default_factory=BitMap)
    settled: BitMap = field(default_factory=BitMap)
    joined: BitMap = field(default_factory=BitMap)
    unfit: BitMap = field(default_factory=BitMap)
    absent: BitMap = field(default_factory=BitMap)
    unavailable: BitMap = field(default_factory=BitMap)
    left: BitMap = field(default_factory=BitMap)
    failures: tuple[Mapping[str, Any], ...] = ()
    delivered: BitMap = field(default_factory=BitMap)


_OF_ATTEMPT = ("good", "bad", "excused", "settled", "delivered", "joined", "unfit")
_OF_EDGES = ("absent", "unavailable", "left")


def verdicts_of(status: Mapping[str, Any], attempt: int) -> Verdicts:
    """Read verdicts; of another attempt only what is known of the edges themselves counts."""
    given = status.get("verdicts") or {}
    current = int(given.get("attempt") or 0) == attempt
    found = {name: decoded(given.get(name)) for name in _OF_EDGES}
    if current:
        found |= {name: decoded(given.get(name)) for name in _OF_ATTEMPT}
    failures = tuple(given.get("failures") or ()) if current else ()
    return Verdicts(attempt if current else -1, failures=failures, **found)


def written_verdicts(verdicts: Verdicts, errors: int) -> dict[str, Any]:
    """Return verdicts as the status has them."""
    return {
        "attempt": verdicts.attempt,
        **{name: encoded(getattr(verdicts, name)) for name in (*_OF_ATTEMPT, *_OF_EDGES)},
        "errors": errors,
        "failures": [dict(each) for each in verdicts.failures],
    }


@dataclass(frozen=True, slots=True)
class Wishes:
    """What people ask for by annotations; each names what it is about, so that it is met once."""

    # Past the gates of this wave, as in ``42/early``.
    promote: str = ""
    # Give up this revision.
    abort: int = 0
    # Go on with this revision although so many are Bad, as in ``42@3``.
    accept: tuple[int, int] = (0, 0)
    # Go to this revision as long as the workspace's is not newer than that, as in ``40@42``.
    undo: tuple[int, int] = (0, 0)


def number_in(text: str) -> int:
    """Return a number that a person wrote, zero for anything else: zero is no revision."""
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0


def pair_in(text: str) -> tuple[int, int]:
    """Return two numbers written as ``40@42``; zero for what is none."""
    first, _, second = text.partition("@")
    return number_in(first), number_in(second)


class Gate(NamedTuple):
    """Whether checks and conditions of others hold; if not, why."""

    holds: bool = True
    reason: str = ""
    message: str = ""


OPEN: Final = Gate()


@dataclass(frozen=True)
class Situation:
    """Everything a step of a rollout is decided from."""

    spec: RolloutSpec
    state: State
    verdicts: Verdicts
    places: Sequence[WaveMember]
    revisions: Mapping[int, Revision]
    # The revision that the workspace's objects are; 0 while none has been cut.
    live: int
    now: str
    # Seconds that a wave has been quiet, by both clocks.
    elapsed: Callable[[Quiet], float]
    wishes: Wishes = Wishes()
    approved: frozenset[str] = frozenset()
    gate: Gate = OPEN
    frozen: BitMap = field(default_factory=BitMap)

    @property
    def slots(self) -> BitMap:
        """All slots there are."""
        return BitMap.union(BitMap(), *self._by_revision.values())

    def at(self, revision: int) -> BitMap:
        """Return the slots that were given a revision."""
        return BitMap(self._by_revision.get(revision, ()))

    @cached_property
    def _by_revision(self) -> Mapping[int, BitMap]:
        """Slots by what they were given: asked for many times a step, counted once."""
        found: dict[int, list[int]] = {}
        for place in self.places:
            found.setdefault(place.revision, []).append(place.slot)
        return {revision: BitMap(slots) for revision, slots in found.items()}


def approval_name(rollout: str, revision: int, wave: str) -> str:
    """Return the name of the RolloutApproval that a wave asks for."""
    return f"{rollout}-{revision}-{wave}"


def moment(now: datetime) -> str:
    """Return a time in RFC 3339 with milliseconds, as the status has it."""
    return now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z"
