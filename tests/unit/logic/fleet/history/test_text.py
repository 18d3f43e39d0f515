"""The story as a table."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from skerry.logic.fleet.history.compare import compare
from skerry.logic.fleet.history.fold import State, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Cause, Decision, Item, Reason, records_of
from skerry.logic.fleet.history.text import (
    HEADER,
    Selection,
    difference_rows,
    selected,
    state_rows,
    table,
)
from skerry.logic.fleet.history.times import moment_of
from tests.kit.decisions import MAKER, NOW, SUBJECT, History, destination

OSLO, ROME = Standing(destination(1)), Standing(destination(2))


def test_the_story_of_a_placement() -> None:
    history = History()
    history.become({each.destination: each for each in (OSLO, ROME)})
    history.become({ROME.destination: ROME})
    cause = "Location/l1 label env=dr by ann"
    assert table(timeline(history.records).records, NOW) == [
        HEADER,
        ("14:00:01", "Joined", "2", "", "locationSelectors[0]", cause),
        ("14:00:02", "Left", "1", "", "because 1", cause),
    ]


def times(history: History, now: datetime) -> list[str]:
    return [each[0] for each in table(timeline(history.records).records, now)[1:]]


def test_times_of_several_days_have_their_dates() -> None:
    history = History()
    history.become({OSLO.destination: OSLO})
    history.now += timedelta(days=1)
    history.become({ROME.destination: ROME})
    assert times(history, history.now) == [
        "2026-09-01T14:00:01+00:00",
        "2026-09-02T14:00:02+00:00",
        "2026-09-02T14:00:02+00:00",
    ]


def test_times_that_are_not_of_today_have_their_dates() -> None:
    history = History()
    history.become({OSLO.destination: OSLO})
    assert times(history, NOW + timedelta(hours=9)) == ["14:00:01"]
    assert times(history, NOW + timedelta(hours=11)) == ["2026-09-01T14:00:01+00:00"]
    assert times(history, NOW - timedelta(days=1)) == ["2026-09-01T14:00:01+00:00"]


def test_a_day_is_one_in_the_zone_of_whoever_asks() -> None:
    history = History()
    history.become({OSLO.destination: OSLO})
    tokyo, hawaii = timezone(timedelta(hours=9)), timezone(timedelta(hours=-10))
    late = NOW + timedelta(hours=2)
    assert times(history, late.astimezone(tokyo)) == ["2026-09-01T23:00:01+09:00"]
    assert times(history, late.astimezone(hawaii)) == ["04:00:01"]


def test_what_is_shown_as_a_time_can_be_typed_as_one() -> None:
    history = History()
    history.become({OSLO.destination: OSLO})
    for now in (NOW, NOW + timedelta(days=3)):
        (shown,) = times(history, now)
        assert moment_of(shown, now) == history.now
    assert table([], NOW) == [HEADER]


def test_the_story_of_one_location() -> None:
    history = History()
    history.become({OSLO.destination: OSLO})
    history.become({each.destination: each for each in (OSLO, ROME)})
    history.become({ROME.destination: ROME})
    line = timeline(history.records)
    assert [each.change for each in selected(line, Selection(location="l1"))] == ["Joined", "Left"]
    assert [each.change for each in selected(line, Selection(location="l2"))] == ["Joined"]
    assert selected(line, Selection(location="elsewhere")) == []
    assert len(selected(line, Selection(since=history.now))) == 1


def test_the_end_of_a_placement_is_reported_to_those_that_were_there() -> None:
    history = History()
    history.become({OSLO.destination: OSLO})
    end = Decision("Left", (), Reason("PlacementDeleted"), everybody=1)
    last = records_of([end], SUBJECT, MAKER, follows=999, head=history.head, now=history.now)
    line = timeline([*history.records, *last])
    found = selected(line, Selection(location="l1"))
    assert [each.change for each in found] == ["Joined", "Left"]


ANEW = SUBJECT._replace(uid="uid-anew")


def test_a_slot_is_one_of_its_placement_alone() -> None:
    """A placement made anew gives its slots from the beginning, to whoever comes first."""
    old, new = History(), History(ANEW, revision=200)
    old.become({OSLO.destination: Standing(OSLO.destination, 1, 1)})
    new.become({ROME.destination: Standing(ROME.destination, 1, 1)})
    new.become({ROME.destination: Standing(ROME.destination, 1, 2)})
    line = timeline([*old.records, *new.records])
    assert [each.uid for each in selected(line, Selection(location="l1"))] == ["uid-web"]
    found = [(each.uid, each.change) for each in selected(line, Selection(location="l2"))]
    assert found == [("uid-anew", "Joined"), ("uid-anew", "Revised")]


def test_slots_without_names_are_known_by_their_placement_too() -> None:
    """Beyond a few destinations a record has slots alone."""
    old, new = History(), History(ANEW, revision=200)
    many = {destination(n): Standing(destination(n), n, 1) for n in range(1, 31)}
    old.become(many)
    new.become({destination(n + 100): Standing(destination(n + 100), n, 1) for n in range(1, 31)})
    new.become({each: found._replace(revision=2) for each, found in new.present.items()})
    line = timeline([*old.records, *new.records])
    assert [each.uid for each in selected(line, Selection(location="l1"))] == ["uid-web"]
    assert [each.change for each in selected(line, Selection(location="l101"))] == [
        "Joined",
        "Revised",
    ]


def test_the_end_of_a_placement_is_not_that_of_its_namesake_before() -> None:
    old = History()
    old.become({OSLO.destination: OSLO})
    end = Decision("Left", (), Reason("PlacementDeleted"), everybody=0)
    last = records_of([end], ANEW, MAKER, follows=999, head=None, now=old.now)
    found = selected(timeline([*old.records, *last]), Selection(location="l1"))
    assert [each.uid for each in found] == ["uid-web"]


def test_records_of_one_object_and_revisions() -> None:
    item = Item("apps", "deployments", "shop", "web")
    standing = Standing(destination(1), 1, 42)
    made = [
        Decision("Joined", (standing,), Reason("Selected"), to=42),
        Decision("Judged", (standing,), Reason("Bad", "down"), to=42, item=item),
        Decision("Left", (standing,), Reason("Gone"), (Cause("L", "l", manager="k"),), start=42),
    ]
    objects = records_of(made, SUBJECT, MAKER, follows=1, head=None, now=NOW)
    line = timeline(objects)
    rows = table(line.records, NOW)
    assert [each[1:4] for each in rows[1:]] == [
        ("Joined", "1", "\N{EN DASH}→42"),
        ("Judged Bad", "1", "42"),
        ("Left", "1", "42→\N{EN DASH}"),
    ]
    assert rows[2][4] == "deployments shop/web: down"
    assert rows[3][5] == "L/l by k (unverified)"
    for text in ("deployment/shop/web", "deployments.apps/shop/web", "deployments/web"):
        assert len(selected(line, Selection(object=text))) == 1
    for text in ("deployment/other/web", "pods/shop/web", "deployment", ""):
        assert len(selected(line, Selection(object=text))) == (0 if text else 3)


def test_a_difference_is_a_row_for_each_destination() -> None:
    before = State({OSLO.destination: OSLO})
    after = State({ROME.destination: Standing(ROME.destination, 2, 42)})
    assert difference_rows(compare(before, after))[1:] == [
        ("Left", "l1", "t1", ""),
        ("Joined", "l2", "t2", "\N{EN DASH}→42"),
    ]


def test_a_state_is_a_row_for_each_destination() -> None:
    state = State({each.destination: each for each in (ROME, OSLO)})
    assert state_rows(state)[1:] == [("l1", "t1", "\N{EN DASH}"), ("l2", "t2", "\N{EN DASH}")]
    assert len(state_rows(state, "l2")) == 2
