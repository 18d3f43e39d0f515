"""What a batch of commits does to a known state: pure, shared by memory and SQLite.

Commits are taken in order. Each sees what the ones before it did; one whose expectations do not
hold changes nothing and harms nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skerry.store.base import Conflict, Event, Write

# Key -> (revision, value) of the keys that exist.
State = dict[str, tuple[int, bytes]]


def misfit(state: State, writes: Sequence[Write]) -> Conflict | None:
    """Return the first expectation that *state* does not meet."""
    for index, write in enumerate(writes):
        if write.expected is None:
            continue
        had = state.get(write.key)
        actual = had[0] if had else 0
        if actual != write.expected:
            return Conflict(index, write.key, write.expected, actual)
    return None


def apply(state: State, writes: Sequence[Write], newest: int, events: list[Event]) -> list[int]:
    """Change *state* as *writes* ask, append what happened to *events*, return the revisions.

    Revisions go on from *newest*; a delete of a key that is not there takes none.
    """
    revisions = []
    for write in writes:
        key, value = write.key, write.value
        revision, previous = state.get(key, (0, None))
        if value is None and previous is None:
            revisions.append(0)
            continue
        newest += 1
        if value is None:
            del state[key]
        else:
            state[key] = (newest, value)
        events.append(Event(newest, key, value, previous, revision))
        revisions.append(newest)
    return revisions


def evaluate(
    state: State, commits: Iterable[Sequence[Write]], newest: int
) -> tuple[list[list[int] | Conflict], list[Event]]:
    """Return each commit's outcome and all events of the batch; *state* is changed in place."""
    outcomes: list[list[int] | Conflict] = []
    events: list[Event] = []
    for writes in commits:
        conflict = misfit(state, writes)
        if conflict is not None:
            outcomes.append(conflict)
            continue
        before = len(events)
        outcomes.append(apply(state, writes, newest, events))
        newest += len(events) - before
    return outcomes, events
