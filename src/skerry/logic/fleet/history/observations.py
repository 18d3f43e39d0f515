"""What edges made of a revision, as records tell it: to whom it was delivered, how it was judged.

These are observations and no decisions: nothing waits for them, and they come in batches. One
record tells what came about since the last, however many edges it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pyroaring import BitMap

from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Decision, Reason
from skerry.logic.fleet.rollout.state import Batch, state_of, verdicts_of

# A placement's observations are recorded at most so often.
BATCH_SECONDS = 10.0
_JUDGED = ("good", "bad", "excused")


class Seen(NamedTuple):
    """What has been observed of one attempt to bring a revision to destinations, by slots."""

    attempt: int
    revision: int
    delivered: BitMap
    good: BitMap
    bad: BitMap
    excused: BitMap

    def followed_by(self, later: Seen) -> Seen:
        """Return both together; of another attempt the later alone."""
        if self.attempt != later.attempt:
            return later
        sets = (mine | theirs for mine, theirs in zip(self[2:], later[2:], strict=True))
        return Seen(later.attempt, later.revision, *sets)


def seen_in(status: Mapping[str, Any]) -> Seen:
    """Return what the status of a Rollout says was observed of its target."""
    state = state_of(status)
    found = verdicts_of(status, state.attempt)
    judged = (getattr(found, name) for name in _JUDGED)
    return Seen(state.attempt, state.target, found.delivered, *judged)


def observed_since(
    before: Seen, status: Mapping[str, Any], standings: Mapping[int, Standing], now: datetime
) -> list[Decision]:
    """Return what the status of a Rollout tells that was not seen *before*, to be recorded.

    *standings* are the destinations by slot. Of each attempt a slot is recorded once for each.
    """
    seen = seen_in(status)
    if before.attempt != seen.attempt:
        before = Seen(seen.attempt, seen.revision, *(BitMap() for _ in range(4)))
    found = list[Decision]()
    state = state_of(status)

    def add(change: Any, slots: BitMap, reason: Reason) -> None:
        known = tuple(standings[slot] for slot in slots if slot in standings)
        if known:
            found.append(Decision(change, known, reason, to=seen.revision))

    delivered = seen.delivered - before.delivered
    add("Delivered", delivered, Reason("Applied", _applied(delivered, state.in_flight, now)))
    failures = verdicts_of(status, state.attempt).failures
    for name in _JUDGED:
        slots = getattr(seen, name) - getattr(before, name)
        add("Judged", slots, Reason(name.capitalize(), _why(slots, failures)))
    return found


def _applied(slots: BitMap, batches: Iterable[Batch], now: datetime) -> str:
    """Return how long it took, as far as is known since when it was under way."""
    begun = [_time_of(each.since) for each in batches if each.slots.intersect(slots)]
    taken = [(now - each).total_seconds() for each in begun if each is not None]
    return f"applied in {max(taken):.1f} s" if taken else ""


def _time_of(text: str) -> datetime | None:
    """Return a time as a status says it, which anybody may have written; None for what is none."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def _why(slots: BitMap, failures: Iterable[Mapping[str, Any]]) -> str:
    """Return what is wrong, by the first of those of whom it is known."""
    known = [each for each in failures if 0 <= int(each.get("slot") or 0) in slots]
    if not known:
        return ""
    first = known[0]
    text = str(first.get("message") or first.get("reason") or "")
    return f"{text} and {len(slots) - 1} more" if len(slots) > 1 else text


def by_slot(standings: Iterable[Standing]) -> Iterator[tuple[int, Standing]]:
    """Yield destinations with their slots; those without one have nothing to be judged at."""
    for each in standings:
        if each.slot is not None:
            yield each.slot, each
