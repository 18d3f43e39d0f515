"""What histories tell of edges at a moment, and nothing that they do not tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from skerry.api.errors import BadRequest
from skerry.logic.fleet.console.past import (
    Then,
    edges_then,
    moment_given,
    sentence_then,
    together,
)
from skerry.logic.fleet.console.placements import HEALTHY, PROGRESSING, UNHEALTHY, UNKNOWN
from skerry.logic.fleet.history.fold import UnknownThen, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import (
    Decision,
    Reason,
    Subject,
    checkpoint_of,
    digest,
    order_of,
    records_of,
)
from tests.kit.decisions import MAKER, NOW, SUBJECT, History, destination

FAR = NOW + timedelta(days=9)


def stands(number: int, revision: int = 1) -> Standing:
    return Standing(destination(number), number, revision)


def holding(*standings: Standing) -> dict[Any, Standing]:
    return {each.destination: each for each in standings}


def observe(history: History, change: Any, code: str, revision: int, *numbers: int) -> None:
    """Record what was seen of some destinations, as the history's controller does."""
    decision = Decision(
        change, tuple(stands(each, revision) for each in numbers), Reason(code), to=revision
    )
    history.now += timedelta(seconds=1)
    history.records += records_of(
        [decision],
        history.subject,
        MAKER,
        follows=history.revision,
        head=history.head,
        now=history.now,
    )
    history.revision += 2


def seen(history: History, moment: datetime | None = None) -> dict[str, int]:
    found = edges_then("web", timeline(history.records), moment or history.now, FAR)
    return {key[1]: then.state for key, then in found.items()}


def test_an_edge_is_under_way_until_it_is_judged_and_anew_with_each_revision() -> None:
    history = History()
    history.become(holding(stands(1), stands(2), stands(3)))
    began = history.now
    assert seen(history) == {"t1": PROGRESSING, "t2": PROGRESSING, "t3": PROGRESSING}
    observe(history, "Delivered", "Applied", 1, 1, 2)
    assert seen(history)["t1"] == PROGRESSING
    observe(history, "Judged", "Good", 1, 1)
    observe(history, "Judged", "Bad", 1, 2)
    observe(history, "Judged", "Excused", 1, 3)
    judged = history.now
    assert seen(history) == {"t1": HEALTHY, "t2": UNHEALTHY, "t3": UNKNOWN}
    # A late delivery does not undo a verdict.
    observe(history, "Delivered", "Applied", 1, 2)
    assert seen(history)["t2"] == UNHEALTHY
    history.become(holding(stands(1, 2), stands(2, 1)))
    assert seen(history) == {"t1": PROGRESSING, "t2": UNHEALTHY}
    # What came later changes nothing of what was.
    assert seen(history, judged) == {"t1": HEALTHY, "t2": UNHEALTHY, "t3": UNKNOWN}
    assert set(seen(history, began).values()) == {PROGRESSING}
    assert seen(history, NOW) == {}


def test_without_a_rollout_nothing_is_known_but_that_it_was_placed() -> None:
    history = History()
    history.become(holding(Standing(destination(1))))
    found = edges_then("web", timeline(history.records), history.now, FAR)
    assert found == {("inv", "t1"): Then(UNKNOWN, "web: placed")}


def test_verdicts_from_before_a_checkpoint_are_unknown_and_nobody_is_said_to_be_under_way() -> None:
    history = History()
    history.become(holding(stands(1)))
    observe(history, "Judged", "Good", 1, 1)
    last = history.records[-1]
    order = order_of(last["metadata"]["name"])
    assert order is not None
    checkpoint = checkpoint_of(
        [stands(1)], SUBJECT, MAKER, after=order, time=history.now, chains={"c": digest(last)}
    )
    found = edges_then("web", timeline(checkpoint), history.now, FAR)
    assert found == {("inv", "t1"): Then(UNKNOWN, "web revision 1: placed")}
    with pytest.raises(UnknownThen, match="begins at"):
        edges_then("web", timeline(checkpoint), NOW - timedelta(days=1), FAR)


def test_a_namesake_inherits_no_verdict() -> None:
    history = History()
    history.become(holding(stands(1)))
    observe(history, "Judged", "Bad", 1, 1)
    history.become({})
    history.subject = Subject("web", "uid-of-another", 1)
    history.become(holding(stands(1)))
    assert seen(history) == {"t1": PROGRESSING}


def test_the_worst_of_several_placements_is_shown_and_the_others_are_named() -> None:
    one = {("inv", "a"): Then(HEALTHY, "web: good"), ("inv", "b"): Then(UNKNOWN, "web: placed")}
    two = {("inv", "a"): Then(UNHEALTHY, "db: bad"), ("inv", "b"): Then(HEALTHY, "db: good")}
    assert together([one, two]) == {
        ("inv", "a"): Then(UNHEALTHY, "db: bad; web: good"),
        ("inv", "b"): Then(HEALTHY, "db: good; web: placed"),
    }


def test_a_sentence_says_what_is_known() -> None:
    assert sentence_then({}, 0) == "no edge is known of then"
    assert sentence_then({"unknown": 3}, 2) == "placements led to 2 of 3 edges"
    counts = {"unhealthy": 1, "progressing": 2, "healthy": 1000, "unknown": 1}
    wanted = "placements led to 1,003 of 1,004 edges; 1 bad; 2 under way; 1,000 good"
    assert sentence_then(counts, 1003) == wanted


def test_a_moment_has_a_zone() -> None:
    wanted = datetime(2026, 11, 15, 3, tzinfo=UTC)
    for text in ("2026-11-15T03:00Z", "2026-11-15T03:00:00Z", "2026-11-15T04:00:00+01:00"):
        assert moment_given({"at": text}, "at") == wanted
    assert moment_given({}, "at") is None
    for bad in ("yesterday", "2026-11-15T03:00", "9999-99-99T00:00Z", 7, ["x"], "x" * 10_000):
        with pytest.raises(BadRequest, match=r"^at: "):
            moment_given({"at": bad}, "at")
