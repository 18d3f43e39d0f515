"""What is thought of one destination."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.rollout.verdict import Evidence, Judged, Terms, VerdictRecord, judge

TERMS = Terms(min_ready=30, deadline=900)
WELL = Evidence(translated=True, well=True)
UNWELL = Evidence(translated=True, unwell=True, message="no such image")


def judged(evidence: Evidence, record: VerdictRecord | None = None, now: float = 100,
           flown: float = 0, **more: bool) -> Judged:  # fmt: skip
    return judge(evidence, record or VerdictRecord(), TERMS, now, flown, **more)


def test_good_is_who_is_well_for_long_enough() -> None:
    first = judged(WELL)
    assert (first.record.verdict, first.again) == ("Waiting", 30)
    assert judged(WELL, first.record, now=129).record.verdict == "Waiting"
    assert judged(WELL, first.record, now=130).record.verdict == "Good"


def test_a_mailbox_that_has_not_got_the_target_is_no_evidence() -> None:
    waiting = judged(Evidence(well=True), VerdictRecord(well_since=0.0))
    assert waiting.record == VerdictRecord()


def test_who_is_not_good_at_the_deadline_is_bad() -> None:
    assert judged(UNWELL, flown=899).record.verdict == "Waiting"
    found = judged(UNWELL, flown=900).record
    assert (found.verdict, found.reason) == ("Bad", "DeadlineExceeded")
    assert found.message == "no such image"


def test_no_time_counts_while_the_edge_is_silent() -> None:
    silent = Evidence("2026-01-01T00:00:00Z", True, False, True)
    assert judged(silent, flown=10_000).record.verdict == "Waiting"


@pytest.mark.parametrize("reason", ["Rejected", "ImmutableField", "NotOurs", "EdgeForbidden"])
def test_a_refusal_that_lasts_is_bad_at_once(reason: str) -> None:
    found = judged(Evidence(translated=True, unwell=True, refusal=reason)).record
    assert (found.verdict, found.reason) == ("Bad", reason)


def test_fail_when_is_bad_at_once_and_an_error_in_it_waits() -> None:
    assert judged(Evidence(None, True, True, fails=True)).record.verdict == "Bad"
    failing = Evidence(None, True, True, fails=None)
    assert judged(failing, VerdictRecord(well_since=0.0)).record.verdict == "Waiting"
    assert judged(failing, flown=900).record.verdict == "Bad"


def test_good_stays_while_it_progresses_and_goes_when_it_is_unwell_for_long() -> None:
    good = VerdictRecord("Good")
    assert judged(Evidence(translated=True), good).record == good
    falling = judged(UNWELL, good)
    assert falling.record.verdict == "Good"
    assert judged(WELL, falling.record, now=110).record == good
    assert judged(UNWELL, falling.record, now=130).record.verdict == "Bad"


def test_who_was_unwell_before_is_excused_and_may_get_well() -> None:
    excused = judged(UNWELL, flown=900, unwell_before=True).record
    assert excused.verdict == "Excused"
    rising = judged(WELL, excused, flown=950, unwell_before=True)
    assert (rising.record.verdict, rising.again) == ("Excused", 30)
    assert judged(WELL, rising.record, now=130, flown=980).record.verdict == "Good"
