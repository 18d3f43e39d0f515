"""What a status remembers comes back, and verdicts of another attempt do not count."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.spec import RolloutSpec
from skerry.logic.fleet.rollout.state import (
    Batch,
    Failure,
    Quiet,
    Situation,
    State,
    Verdicts,
    approval_name,
    moment,
    state_of,
    verdicts_of,
    written,
    written_verdicts,
)
from skerry.logic.fleet.rollout.waves import Place


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
        Quiet("2026-01-01T00:10:00.000Z", 300),
        BitMap([1, 5]),
        1,
        (Batch("2026-01-01T00:00:00.000Z", BitMap([5])),),
        BitMap([1]),
        BitMap([9]),
        True,
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


BITMAPS = st.sets(st.integers(1, 5000), max_size=20).map(BitMap)


@given(members=BITMAPS, joining=BITMAPS, departing=BITMAPS, unwell=BITMAPS)
def test_every_set_of_slots_survives(
    members: BitMap, joining: BitMap, departing: BitMap, unwell: BitMap
) -> None:
    state = State(
        "Progressing", 1, 2, "d", 1, 1, "w", "t", members=members, joining=joining,
        departing=departing, unwell_before=unwell,
    )  # fmt: skip
    assert state_of(json.loads(json.dumps(written(state)))) == state


@given(good=BITMAPS, bad=BITMAPS, left=BITMAPS, errors=st.integers(0, 9))
def test_every_verdict_survives_within_its_attempt(
    good: BitMap, bad: BitMap, left: BitMap, errors: int
) -> None:
    failures = ({"slot": 1, "reason": "Bad"},)
    verdicts = Verdicts(3, good=good, bad=bad, left=left, failures=failures)
    raw = json.loads(json.dumps(written_verdicts(verdicts, errors)))
    assert raw["errors"] == errors
    assert verdicts_of({"verdicts": raw}, 3) == verdicts
    other = verdicts_of({"verdicts": raw}, 2)
    assert (other.good, other.bad, other.failures, other.left) == (BitMap(), BitMap(), (), left)


def test_what_is_not_there_is_written_as_null_so_that_a_merge_removes_it() -> None:
    fields = written(State(phase="Completed", attempt=4))
    assert {key for key, value in fields.items() if value is not None} == {"phase", "attempt"}
    assert set(written(State(wave=1, target=2, failure=Failure(1, "Bad")))) == set(fields)


def test_outside_a_wave_nothing_of_one_is_kept() -> None:
    assert written(State(wave=0, wave_name="left over", members=BitMap([1])))["wave"] is None


def situation(*places: tuple[int, int]) -> Situation:
    made = [Place(slot, f"edge-{slot}", {}, revision) for slot, revision in places]
    return Situation(RolloutSpec(), State(), Verdicts(), made, {}, 0, "", lambda _: 0.0)


@given(st.dictionaries(st.integers(1, 50), st.integers(0, 3)))
def test_slots_are_parted_by_what_they_were_given(given_: dict[int, int]) -> None:
    found = situation(*given_.items())
    assert found.slots == BitMap(given_)
    for revision in range(5):
        assert found.at(revision) == BitMap(s for s, r in given_.items() if r == revision)
    # What is returned may be changed without anybody noticing.
    found.at(1).add(99)
    assert 99 not in found.at(1)


def test_an_approval_is_named_after_all_it_is_about() -> None:
    assert approval_name("web", 4, "early") == "web-4-early"
