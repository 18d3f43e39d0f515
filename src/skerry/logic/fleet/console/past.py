"""The fleet as it was: what decision histories tell of every edge at a moment.

Histories know which placements led to an edge, which revision it was to have, to whom that was
delivered and how it was judged there. They know nothing of heartbeats, and of placements without a
Rollout nobody judged anything: such an edge is unknown then, and never said to have been well.

Two questions are answered from one history. Where a placement led is the state that its records
fold to. How an edge fared is the last that was recorded, up to the same record, of its slot with
the revision it was to have:

    09:00 Revised   slots 1, 2 to 7     1 and 2 under way with 7
    09:01 Delivered slots 1, 2 of 7     still under way
    09:05 Judged    Good, slot 1 of 7   1 good, 2 under way
    09:07 Revised   slot 1 to 6         1 under way with 6; what was said of it with 7 stays said

A checkpoint has destinations and no verdicts. For a slot that was last judged before the oldest
record that is kept, nothing is known but that it was placed, which is ``UNKNOWN`` here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pyroaring import BitMap

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.edges import EdgeKey
from skerry.logic.fleet.console.placements import HEALTHY, PROGRESSING, UNHEALTHY, UNKNOWN
from skerry.logic.fleet.history.fold import State, Timeline, state_at
from skerry.logic.fleet.history.record import Record

# Of several placements at one edge, the state of which is shown: what is unknown says least.
_PRECEDENCE: Final = {UNHEALTHY: 3, PROGRESSING: 2, HEALTHY: 1, UNKNOWN: 0}
_JUDGED: Final[Mapping[str, int]] = {"Good": HEALTHY, "Bad": UNHEALTHY, "Excused": UNKNOWN}
# The byte of a cell where a placement led and nothing was judged; after those of ``STATES``.
PLACED: Final = 6
_WORDS: Final = {
    HEALTHY: "good",
    PROGRESSING: "under way",
    UNHEALTHY: "bad",
    UNKNOWN: "placed",
}


class Then(NamedTuple):
    """How an edge stood, and by what that is known: the placement and its revision, in words."""

    state: int
    note: str


def moment_given(given: Mapping[str, Any], name: str) -> datetime | None:
    """Return the time that a member is, in UTC; None when it is left out.

    A time without a zone is refused: a browser and its hub need not be in the same one.
    """
    found = given.get(name) or ""
    if not isinstance(found, str):
        raise BadRequest(f"{name}: found {type(found).__name__}, want a text")
    if not found:
        return None
    wanted = f"{name}: found {found[:64]!r}, want a time as in 2026-11-15T03:00:00Z"
    try:
        moment = datetime.fromisoformat(found)
        if moment.tzinfo is None:
            raise BadRequest(wanted)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadRequest(wanted) from error


def edges_then(
    placement: str, line: Timeline, moment: datetime, now: datetime
) -> dict[EdgeKey, Then]:
    """Return how the destinations of *placement* stood; ``UnknownThen`` where nobody knows."""
    state = state_at(line, moment, now)
    slots = BitMap(each.slot for each in state.standings.values() if each.slot is not None)
    judged = _judged(_taken(line.records, state), slots)
    found = {}
    for destination, standing in state.standings.items():
        slot, revision = standing.slot, standing.revision
        at = UNKNOWN
        if slot is not None and revision is not None:
            at = judged.get((slot, revision), UNKNOWN)
        named = placement if revision is None else f"{placement} revision {revision}"
        key = (destination.cluster, destination.sync_target)
        found[key] = Then(at, f"{named}: {_WORDS[at]}")
    return found


def together(parts: Iterable[Mapping[EdgeKey, Then]]) -> dict[EdgeKey, Then]:
    """Return how edges stood by several placements: the worst that is known, the others beside."""
    found: dict[EdgeKey, list[Then]] = {}
    for part in parts:
        for key, then in part.items():
            found.setdefault(key, []).append(then)
    whole = {}
    for key, several in found.items():
        several.sort(key=lambda each: (-_PRECEDENCE[each.state], each.note))
        whole[key] = Then(several[0].state, "; ".join(each.note for each in several))
    return whole


def sentence_then(counts: Mapping[str, int], placed: int) -> str:
    """Return how the edges were, in one line; placements led to *placed* of them."""
    total = sum(counts.values())
    if not total:
        return "no edge is known of then"
    edges = f"{total:,} {'edge' if total == 1 else 'edges'}"
    judged = [
        f"{counts[state]:,} {word}"
        for state, word in (("unhealthy", "bad"), ("progressing", "under way"), ("healthy", "good"))
        if counts.get(state)
    ]
    return "; ".join((f"placements led to {placed:,} of {edges}", *judged))


def _taken(records: Sequence[Record], state: State) -> Iterable[Record]:
    """Yield the records that led to *state*, in their order: no verdict is from after it."""
    if state.last is None:
        return
    for each in records:
        if each.order > state.last.order:
            return
        yield each


def _judged(records: Iterable[Record], slots: BitMap) -> dict[tuple[int, int], int]:
    """Return how each of *slots* fared with each revision, by the last that was said of it."""
    found: dict[tuple[int, int], int] = {}
    uid = ""
    for record in records:
        # Slots of a namesake that was deleted are not these slots.
        if record.uid != uid:
            found, uid = {}, record.uid
        # What is about no revision, or about a single object, judges nobody.
        if record.to is None or "object" in record.object:
            continue
        if record.change in ("Joined", "Revised"):
            state: int | None = PROGRESSING
        elif record.change == "Delivered":
            state = None
        elif record.change == "Judged":
            reason = (record.object.get("reason") or {}).get("code", "")
            state = _JUDGED.get(str(reason), UNKNOWN)
        else:
            continue
        # Of those that are asked about: a record may say something of a billion slots.
        for slot in _slots(record) & slots:
            # A delivery may be recorded after the verdict, and takes nothing back.
            if state is None:
                found.setdefault((slot, record.to), PROGRESSING)
            else:
                found[slot, record.to] = state
    return found


def _slots(record: Record) -> BitMap:
    """Return whom a record is about. Newcomers may be named with their slots and without a set."""
    named = BitMap(each.slot for each in record.named if each.slot is not None)
    return named if record.slots is None else record.slots | named
