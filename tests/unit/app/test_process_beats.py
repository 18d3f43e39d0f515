"""Who is stuck, in a time that the tests decide about."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from skerry.app.process_beats import (
    BEAT_SECONDS,
    ENDED,
    LOOK_SECONDS,
    STUCK,
    STUCK_SECONDS,
    RestartCounts,
    SharedBeats,
    Silence,
)
from skerry.kit.clock import LoopClock
from tests.kit.sim.loop import run_virtual


def looks(silence: Silence, counts: list[list[int]], every: float = LOOK_SECONDS) -> list[int]:
    """Return who was found stuck while the counts were those, one after another."""
    found: list[int] = []
    now = 0.0
    for each in counts:
        now += every
        found += silence.look(each, now)
    return found


def test_who_stops_beating_is_stuck_after_half_a_minute_and_once() -> None:
    enough = round(STUCK_SECONDS / LOOK_SECONDS)
    silent = [[7, beat] for beat in range(1, enough + 2)]
    assert looks(Silence(2, 0.0), silent[:-1]) == []
    assert looks(Silence(2, 0.0), silent) == [0]
    # Killed, it is started again with a count of its own; nobody waits for that to begin.
    starting = [[0, beat] for beat in range(100, 150)]
    assert looks(Silence(2, 0.0), silent + starting) == [0]


def test_who_sleeps_itself_blames_nobody() -> None:
    """Everything was stopped for an hour, as by Ctrl-Z; the others go on with their next beat."""
    silence = Silence(1, 0.0)
    assert silence.look([1], LOOK_SECONDS) == []
    assert silence.look([1], 3600.0) == []
    assert silence.look([2], 3600.0 + LOOK_SECONDS) == []


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=60))
def test_only_who_was_silent_for_long_is_stuck(beaten: list[list[bool]]) -> None:
    silence = Silence(3, 0.0)
    counts, quiet = [1, 1, 1], [0.0, 0.0, 0.0]
    silence.look(counts, 0.0)
    for number, turn in enumerate(beaten, start=1):
        counts = [count + beat for count, beat in zip(counts, turn, strict=True)]
        quiet = [
            0.0 if beat else seconds + LOOK_SECONDS
            for seconds, beat in zip(quiet, turn, strict=True)
        ]
        found = silence.look(counts, number * LOOK_SECONDS)
        assert found == [n for n, seconds in enumerate(quiet) if seconds >= STUCK_SECONDS]
        for process in found:
            quiet[process] = 0.0


def test_a_process_beats_while_its_loop_runs_and_begins_anew_when_started_again() -> None:
    beats = SharedBeats(2)

    async def run() -> None:
        beating = asyncio.create_task(beats.of(1).run(LoopClock()))
        await asyncio.sleep(10 * BEAT_SECONDS)
        beating.cancel()

    run_virtual(run())
    assert beats.counts()[0] == 0
    assert 10 <= beats.counts()[1] <= 11
    beats.reset(1)
    assert list(beats.counts()) == [0, 0]


def test_restarts_are_counted_by_their_reason() -> None:
    restarts = RestartCounts()
    restarts.add(STUCK)
    restarts.add(STUCK)
    restarts.add(ENDED)
    assert restarts.by_reason() == {(ENDED,): 1, (STUCK,): 2}
