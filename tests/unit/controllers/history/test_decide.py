"""Checkpoints come before what they stand for goes, and answers stay as they were."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from skerry.api.edge import edge_placement_ref
from skerry.api.objects import Object
from skerry.controllers.history.decide import ObservedHistory, decide
from skerry.logic.fleet.history.chain import verify
from skerry.logic.fleet.history.fold import state_at, timeline
from skerry.logic.fleet.history.packing import Standing
from skerry.logic.fleet.history.record import Maker, in_order
from skerry.logic.fleet.history.retention import Limits
from skerry.logic.machinery.plan import Create, Delete, Plan
from tests.kit.decisions import History, destination, random_history

P = edge_placement_ref("wmw", "web")
SMALL = Limits(records=8)


def applied(objects: list[Object], plan: Plan) -> list[Object]:
    found = {each["metadata"]["name"]: each for each in objects}
    for action in plan.actions:
        if isinstance(action, Create):
            found[action.target.name] = action.object
        elif isinstance(action, Delete):
            del found[action.target.name]
    return in_order(found.values())


def planned(objects: list[Object], limits: Limits, now: datetime) -> Plan:
    return decide(ObservedHistory(P, objects, limits), now, Maker("history"))


@pytest.mark.parametrize("seed", range(25))
def test_pruning_changes_no_answer_younger_than_the_oldest_that_is_left(seed: int) -> None:
    history = random_history(seed, 20)
    plan = planned(history.records, SMALL, history.now)
    kinds = [type(action) for action in plan.actions]
    assert kinds == sorted(kinds, key=lambda kind: kind is Delete), "checkpoints come first"
    left = applied(history.records, plan)
    assert len(left) <= SMALL.records
    assert verify(left) == []
    line = timeline(left)
    for moment, _, held in history.moments:
        if moment >= line.records[0].time:
            assert state_at(line, moment, history.now).standings == held
    # Dying between the two leaves a state from which the same rules go on.
    half = applied(history.records, Plan([a for a in plan.actions if isinstance(a, Create)]))
    assert applied(half, planned(half, SMALL, history.now)) == left


def large_history() -> History:
    """Return a history whose checkpoints have two pages."""
    history = History()
    everybody = {destination(number): Standing(destination(number)) for number in range(5_010)}
    for step in range(10):
        left = destination(step)
        history.become({each: found for each, found in everybody.items() if each != left})
    return history


def test_dying_between_two_pages_of_a_checkpoint_loses_nothing() -> None:
    history = large_history()
    plan = planned(history.records, SMALL, history.now)
    created = [action for action in plan.actions if isinstance(action, Create)]
    assert len(created) == 2
    for written in (1, 2, 3):
        objects = applied(history.records, Plan(plan.actions[:written]))
        line = timeline(objects)
        assert state_at(line, history.now, history.now).standings == history.present
        left = applied(objects, planned(objects, SMALL, history.now))
        assert left == applied(history.records, plan)
        assert state_at(timeline(left), history.now, history.now).standings == history.present


def test_a_daily_checkpoint_that_was_begun_is_completed() -> None:
    history = large_history()
    tomorrow = history.now + timedelta(days=1)
    plan = planned(history.records, Limits(), tomorrow)
    assert [type(action) for action in plan.actions] == [Create, Create]
    begun = applied(history.records, Plan(plan.actions[:1]))
    whole = applied(begun, planned(begun, Limits(), tomorrow))
    assert whole == applied(history.records, plan)


def test_a_history_with_a_record_that_cannot_be_believed_is_left_alone() -> None:
    history = random_history(3, 20)
    history.records[4] = {**history.records[4], "change": "Held"}
    assert not planned(history.records, SMALL, history.now)


def test_a_placement_that_keeps_none_loses_all() -> None:
    history = random_history(3)
    off = Limits(age=timedelta(0))
    assert applied(history.records, planned(history.records, off, history.now)) == []


def test_what_ended_long_ago_goes_without_a_trace() -> None:
    history: History = random_history(3)
    later = history.now + timedelta(days=31)
    kept = applied(history.records, planned(history.records, Limits(), later))
    assert [each["change"] for each in kept] == ["Checkpoint"]
    history.become({})
    later += timedelta(days=1)
    assert applied(history.records, planned(history.records, Limits(), later)) == []
