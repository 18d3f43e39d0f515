"""Objects that are held: reported by workspace, released by exactly the id that is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge import CONFIRM, Mailbox
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.held import (
    HeldEntry,
    HeldObjects,
    HoldsPlan,
    ObservedHolds,
    decide_holds,
)
from skerry.logic.fleet.placement.consent_record import new_record
from skerry.logic.fleet.placement.holds import Group
from skerry.logic.machinery.plan import Update

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MAILBOX, OTHER = Mailbox("imw", "uid"), Mailbox("imw", "other")
SECRET = ObjectRef("", "", "secrets", "a", "s")
ROLE = ObjectRef("", "rbac.authorization.k8s.io", "clusterroles", "", "r")
HELD = HeldEntry("o-1", "root:bank", frozenset({(MAILBOX, *SECRET[1:]), (MAILBOX, *ROLE[1:])}))


def record(ids: str = "", **more: Any) -> dict[str, Any]:
    made = {**new_record("imw"), "held": 0, **more}
    if ids:
        made["metadata"]["annotations"][CONFIRM] = ids
    return made


def test_what_is_held_is_reported_once() -> None:
    plan = decide_holds(ObservedHolds("imw", record(), (HELD,)), NOW)
    [update] = plan
    assert isinstance(update, Update)
    assert update.object["objects"]["held"] == [
        {
            "id": "o-1",
            "workspace": "root:bank",
            "objects": 2,
            "resources": ["clusterroles.rbac.authorization.k8s.io", "secrets"],
        }
    ]
    assert [each.reason for each in plan.announcements] == ["RemovalHeld"]
    assert not decide_holds(ObservedHolds("imw", update.object, (HELD,)), NOW)


@pytest.mark.parametrize("ids", ["o-2", "d-1", "open-1", "o-1x"])
def test_another_id_releases_nothing(ids: str) -> None:
    plan = decide_holds(ObservedHolds("imw", record(ids), (HELD,)), NOW)
    assert isinstance(plan, HoldsPlan)
    assert plan.releases == frozenset()


def test_the_id_shown_releases_what_it_stands_for_and_is_used_up() -> None:
    plan = decide_holds(ObservedHolds("imw", record("d-9,o-1"), (HELD,)), NOW)
    assert isinstance(plan, HoldsPlan)
    assert plan.releases == HELD.elements
    [update] = plan
    assert isinstance(update, Update)
    assert update.object["metadata"]["annotations"][CONFIRM] == "d-9"
    assert update.object["confirmations"][0]["count"] == 2


def test_an_object_is_held_or_refused_or_neither() -> None:
    told: list[str] = []
    state = HeldObjects(told.append)
    group = Group("imw", "bank")
    state.note(MAILBOX, SECRET, "bank", held=True)
    assert (len(state.holds.elements(group)), state.refusals.count(group)) == (1, 0)
    state.note(MAILBOX, SECRET, "bank", held=False)
    assert (len(state.holds.elements(group)), state.refusals.count(group)) == (0, 1)
    state.settle(MAILBOX, SECRET)
    assert (len(state.holds.elements(group)), state.refusals.count(group)) == (0, 0)
    assert set(told) == {"imw"}
    told.clear()
    state.settle(MAILBOX, SECRET)
    assert told == []


def test_a_release_ends_with_the_copy_or_with_a_grant() -> None:
    state = HeldObjects(lambda _: None)
    for end in (state.gone, state.settle):
        state.release([(MAILBOX, *SECRET[1:])])
        assert state.is_released(MAILBOX, SECRET)
        end(MAILBOX, SECRET)
        assert not state.is_released(MAILBOX, SECRET)


def test_nothing_is_held_in_a_mailbox_that_has_gone() -> None:
    state = HeldObjects(lambda _: None)
    state.note(MAILBOX, SECRET, "bank", held=True)
    state.note(MAILBOX, ROLE, "bank", held=False)
    state.note(OTHER, SECRET, "bank", held=True)
    state.forget_mailbox(MAILBOX)
    assert state.holds.elements(Group("imw", "bank")) == {(OTHER, *SECRET[1:])}
    assert state.refusals.groups("imw") == []
