"""What edges made of a revision is recorded once, in batches, with the reason that was given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyroaring import BitMap

from skerry.logic.fleet.history.observations import Seen, by_slot, observed_since, seen_in
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Decision
from skerry.logic.fleet.placement.records import Destination
from skerry.logic.fleet.rollout.bitmaps import encoded

NOW = datetime(2026, 9, 1, 14, 5, 9, 900000, tzinfo=UTC)
STANDINGS = {n: Standing(Destination("imw", f"l{n}", f"t{n}", f"u{n}"), n, 42) for n in (1, 2, 3)}
NOTHING = Seen(7, 42, BitMap(), BitMap(), BitMap(), BitMap())


def status(attempt: int = 7, **sets: list[int]) -> dict[str, Any]:
    """The status of a Rollout that brings revision 42 to everybody since six seconds."""
    failures = [{"slot": slot, "reason": "Unhealthy", "message": "web: CrashLoopBackOff"}
                for slot in sets.get("bad", ())]  # fmt: skip
    verdicts = {name: encoded(BitMap(slots)) for name, slots in sets.items()}
    flight = {"since": "2026-09-01T14:05:04.000Z", "slots": encoded(BitMap([1, 2, 3]))}
    return {
        "attempt": 7,
        "target": 42,
        "inFlight": [flight],
        "verdicts": {"attempt": attempt, "failures": failures, **verdicts},
    }


def news(before: Seen, found: dict[str, Any]) -> list[tuple[str, str, list[int | None]]]:
    def line(each: Decision) -> tuple[str, str, list[int | None]]:
        assert each.to == 42
        return each.change, each.reason.code, [standing.slot for standing in each.standings]

    return [line(each) for each in observed_since(before, found, STANDINGS, NOW)]


def test_what_was_delivered_and_judged_is_recorded_once() -> None:
    first = status(delivered=[1, 2])
    assert news(NOTHING, first) == [("Delivered", "Applied", [1, 2])]
    second = status(delivered=[1, 2, 3], good=[1], bad=[2])
    before = NOTHING.followed_by(seen_in(first))
    assert news(before, second) == [
        ("Delivered", "Applied", [3]),
        ("Judged", "Good", [1]),
        ("Judged", "Bad", [2]),
    ]
    # One that comes and goes is not recorded again.
    after = before.followed_by(seen_in(second))
    gone = after.followed_by(seen_in(status(good=[1])))
    assert news(gone, second) == []


def test_the_reason_is_the_one_that_was_given_and_says_how_long_it_took() -> None:
    [delivered, _] = observed_since(NOTHING, status(delivered=[1], bad=[1]), STANDINGS, NOW)
    assert delivered.reason.text == "applied in 5.9 s"
    found = observed_since(NOTHING, status(bad=[2, 3]), STANDINGS, NOW)
    assert [each.reason.text for each in found] == ["web: CrashLoopBackOff and 1 more"]


def test_another_attempt_begins_anew_and_verdicts_of_an_old_one_say_nothing() -> None:
    old = Seen(6, 41, *(BitMap([1, 2, 3]) for _ in range(4)))
    assert news(old, status(good=[1])) == [("Judged", "Good", [1])]
    assert news(NOTHING, status(attempt=6, good=[1])) == []
    assert old.followed_by(NOTHING) == NOTHING


def test_slots_of_nobody_are_not_recorded() -> None:
    assert news(NOTHING, status(good=[9])) == []


def test_destinations_without_a_slot_have_nothing_to_be_judged_at() -> None:
    numbered = Standing(Destination("imw", "l", "t", "u"), 4)
    assert list(by_slot([Standing(Destination("imw", "m", "t", "v"), None), numbered])) == [
        (4, numbered)
    ]


def test_nonsense_in_a_status_costs_a_sentence_and_no_record() -> None:
    found = status(delivered=[1], bad=[1])
    found["inFlight"][0]["since"] = "0001-01-01T00:00:00+14:00"
    found["verdicts"]["failures"] = [{"slot": -1, "message": "nobody"}, {"slot": 2**31 - 1}]
    [delivered, judged] = observed_since(NOTHING, found, STANDINGS, NOW)
    assert (delivered.reason.text, judged.reason.text) == ("", "")
