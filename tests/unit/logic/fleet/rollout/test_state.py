"""What a status remembers comes back, and verdicts of another attempt do not count."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from skerry.logic.fleet.rollout.bitmaps import MAX_SLOTS, encoded
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
    number_in,
    pair_in,
    state_of,
    verdicts_of,
    written,
    written_verdicts,
)
from skerry.logic.fleet.rollout.waves import WaveMember


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
    made = [WaveMember(slot, f"edge-{slot}", {}, revision) for slot, revision in places]
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


failures = st.builds(
    Failure,
    st.integers(1, 99),
    st.sampled_from(["TooManyBad", "CheckFailed"]),
    st.text(max_size=5),
    st.lists(st.integers(1, 9), max_size=3).map(tuple),
    st.just((0, 0)) | st.tuples(st.integers(1, 99), st.integers(1, 99)),
)
batches = st.lists(
    st.builds(Batch, st.sampled_from(["2026-01-01T00:00:00.000Z", "t"]), BITMAPS.filter(bool)),
    max_size=3,
).map(tuple)


@given(
    failure=st.none() | failures,
    in_flight=batches,
    proven=st.integers(0, 99),
    bad=st.integers(0, 9),
)
def test_why_a_revision_failed_and_what_is_in_flight_survive(
    failure: Failure | None, in_flight: tuple[Batch, ...], proven: int, bad: int
) -> None:
    state = State(
        "Paused", 1, 2, "d", 1, 1, "w", "t", Quiet("q", proven), bad_seen=bad,
        in_flight=in_flight, failure=failure,
    )  # fmt: skip
    assert state_of(json.loads(json.dumps(written(state)))) == state


@pytest.mark.parametrize(
    "status",
    [
        {"phase": None, "attempt": None, "target": None, "wave": None, "failure": None},
        {"wave": {}, "inFlight": [], "failure": {}, "joining": "", "departing": None},
        {"wave": {"number": None, "name": None, "slots": "no bitmap", "quietSince": None}},
        {"unwellBefore": 7, "joining": ["1"], "departing": {}},
    ],
)
def test_a_status_with_nothing_in_it_is_where_every_rollout_begins(status: dict[str, Any]) -> None:
    assert state_of(status) == State()


def test_a_failure_of_which_little_was_written_is_still_a_failure() -> None:
    assert state_of({"failure": {"revision": 7}}).failure == Failure(7, "")
    assert state_of({"failure": {"reason": "Bad", "undo": "40"}}).failure == Failure(
        0, "Bad", undo=(40, 0)
    )


def test_a_failure_names_the_wish_it_was_about_only_if_it_was_one() -> None:
    assert "undo" not in Failure(7, "Bad").as_object()
    assert Failure(40, "Bad", undo=(40, 42)).as_object()["undo"] == "40@42"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42), ("007", 7), ("0", 0), ("", 0), ("-3", 0), ("+3", 0), ("4.0", 0), ("4 2", 0),
        (" 42", 0), ("1e3", 0), ("\u0664\u0662", 0), ("\u00b2", 0), ("999999999", 999_999_999),
        ("9999999999", 0), ("9" * 5000, 0),
    ],
)  # fmt: skip
def test_a_number_that_a_person_wrote_is_one_or_no_revision(text: str, number: int) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("40@42", (40, 42)), ("40", (40, 0)), ("@42", (0, 42)), ("", (0, 0)), ("a@b", (0, 0)),
        ("1@2@3", (1, 0)), ("40@", (40, 0)),
    ],
)  # fmt: skip
def test_two_numbers_are_read_each_for_itself(text: str, pair: tuple[int, int]) -> None:
    assert pair_in(text) == pair


@given(st.integers(0, 999_999_999), st.integers(0, 999_999_999))
def test_a_pair_comes_back_as_it_was_written(one: int, other: int) -> None:
    assert pair_in(f"{one}@{other}") == (one, other)


def test_what_only_this_attempt_says_is_void_in_another_whichever_it_is() -> None:
    everything = {name: BitMap([number]) for number, name in enumerate(
        ("good", "bad", "excused", "settled", "joined", "unfit", "absent", "unavailable", "left",
         "delivered"), 1)}  # fmt: skip
    verdicts = Verdicts(5, failures=({"slot": 2},), **everything)
    status = {"verdicts": written_verdicts(verdicts, 0)}
    assert verdicts_of(status, 5) == verdicts
    for attempt in (4, 6, 0, -1):
        found = verdicts_of(status, attempt)
        kept = {name for name in everything if getattr(found, name)}
        assert kept == {"absent", "unavailable", "left"}
        assert (found.attempt, found.failures) == (-1, ())


def test_without_verdicts_nothing_is_thought_of_anybody() -> None:
    empty: list[dict[str, Any]] = [{}, {"verdicts": None}, {"verdicts": {}}]
    for status in empty:
        assert verdicts_of(status, 3) == Verdicts()
    assert verdicts_of({}, 0) == Verdicts(0), "the attempt before any is the one of an empty status"


def test_writing_verdicts_does_not_hand_out_what_is_kept() -> None:
    failure = {"slot": 1, "reason": "Bad"}
    raw = written_verdicts(Verdicts(1, failures=(failure,)), 0)
    raw["failures"][0]["reason"] = "changed"
    assert failure["reason"] == "Bad"


def test_without_places_there_are_no_slots() -> None:
    found = situation()
    assert found.slots == BitMap()
    assert found.at(0) == BitMap()


@pytest.mark.parametrize(
    ("microsecond", "text"), [(0, ".000Z"), (999, ".000Z"), (1000, ".001Z"), (999_999, ".999Z")]
)
def test_a_moment_is_never_later_than_it_was(microsecond: int, text: str) -> None:
    now = datetime(2026, 12, 31, 23, 59, 59, microsecond, UTC)
    assert moment(now) == "2026-12-31T23:59:59" + text


@pytest.mark.parametrize(
    ("number", "wave"), [(-(2**31), 0), (-1, 0), (3, 3), (33, 33), (34, 33), (2**31 - 1, 33)]
)
def test_a_wave_is_one_that_a_rollout_may_have(number: int, wave: int) -> None:
    assert state_of({"wave": {"number": number}}).wave == wave


def test_all_batches_together_have_no_more_slots_than_a_placement() -> None:
    batch = {"since": "2026-01-01T00:00:00Z", "slots": encoded(range(MAX_SLOTS))}
    few = {"since": "2026-01-02T00:00:00Z", "slots": encoded([1])}
    assert len(state_of({"inFlight": [batch] * 100}).in_flight) == 1
    assert [each.slots for each in state_of({"inFlight": [few, batch]}).in_flight] == [BitMap([1])]
