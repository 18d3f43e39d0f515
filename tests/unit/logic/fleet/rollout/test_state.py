"""What a status remembers comes back, and verdicts of another attempt do not count."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pyroaring import BitMap

from skerry.logic.fleet.rollout.state import (
    Batch,
    Failure,
    State,
    Verdicts,
    moment,
    state_of,
    verdicts_of,
    written,
    written_verdicts,
)


def test_a_state_comes_back_from_json() -> None:
    state = State(
        "Soaking",
        7,
        42,
        "ab",
        41,
        2,
        "early",
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:10:00.000Z",
        BitMap([1, 5]),
        1,
        (Batch("2026-01-01T00:00:00.000Z", BitMap([5])),),
        BitMap([1]),
        BitMap([9]),
        Failure(40, "Bad", "why", (1,)),
    )
    assert state_of(json.loads(json.dumps(written(state)))) == state
    assert state_of(json.loads(json.dumps(written(State())))) == State()
    assert state_of({}) == State()


def test_verdicts_of_another_attempt_say_only_what_edges_are_like() -> None:
    verdicts = Verdicts(3, good=BitMap([1]), absent=BitMap([2]), unavailable=BitMap([3]))
    status = {"verdicts": json.loads(json.dumps(written_verdicts(verdicts, 0)))}
    assert verdicts_of(status, 3) == verdicts
    other = verdicts_of(status, 4)
    assert (other.good, other.absent, other.unavailable) == (BitMap(), BitMap([2]), BitMap([3]))


def test_a_moment_has_milliseconds() -> None:
    assert moment(datetime(2026, 1, 2, 3, 4, 5, 67_890, UTC)) == "2026-01-02T03:04:05.067Z"
