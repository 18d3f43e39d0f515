"""Objects that are held: reported by workspace, released by exactly the id that is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.edge import CONFIRM, LOCATION_CONSENTS, Mailbox
from skerry.api.refs import ObjectRef
from skerry.controllers.placement_translator.held import (
    HeldEntry,
    HeldObjects,
    HoldsExecutor,
    HoldsObserver,
    HoldsPlan,
    ObservedHolds,
    Patience,
    decide_holds,
)
from skerry.logic.fleet.placement.consent_record import new_record
from skerry.logic.fleet.placement.holds import Group
from skerry.logic.fleet.translation.difference import Hold
from skerry.logic.machinery.plan import Update
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.caches import cache
from tests.kit.sim.twin import Twin, served

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
    reported: list[str] = []
    state = HeldObjects(reported.append)
    group = Group("imw", "bank")
    state.put(MAILBOX, SECRET, Hold("bank", held=True))
    assert (len(state.holds.elements(group)), state.refusals.count(group)) == (1, 0)
    state.put(MAILBOX, SECRET, Hold("bank"))
    assert (len(state.holds.elements(group)), state.refusals.count(group)) == (0, 1)
    state.put(MAILBOX, SECRET, Hold())
    assert (len(state.holds.elements(group)), state.refusals.count(group)) == (0, 0)
    assert set(reported) == {"imw"}
    reported.clear()
    state.put(MAILBOX, SECRET, Hold())
    assert reported == []


@pytest.mark.parametrize(
    ("hold", "stays"),
    [
        (Hold(gone=True), False),
        (Hold(), False),
        (Hold(released=True), True),
        (Hold("bank", held=True), True),
        (Hold("bank", gone=True), False),
    ],
)
def test_a_release_ends_with_the_copy_or_with_a_grant(hold: Hold, stays: bool) -> None:
    state = HeldObjects(lambda _: None)
    state.release([(MAILBOX, *SECRET[1:])])
    assert state.is_released(MAILBOX, SECRET)
    state.put(MAILBOX, SECRET, hold)
    assert state.is_released(MAILBOX, SECRET) is stays


def test_whoever_led_meanwhile_holds_again_what_was_confirmed() -> None:
    state = HeldObjects(lambda _: None)
    state.release([(MAILBOX, *SECRET[1:])])
    state.forget_released()
    assert not state.is_released(MAILBOX, SECRET)


def test_nothing_is_held_in_a_mailbox_that_has_gone() -> None:
    state = HeldObjects(lambda _: None)
    state.put(MAILBOX, SECRET, Hold("bank", held=True))
    state.put(MAILBOX, ROLE, Hold("bank"))
    state.put(OTHER, SECRET, Hold("bank", held=True))
    state.forget_mailbox(MAILBOX)
    assert state.holds.elements(Group("imw", "bank")) == {(OTHER, *SECRET[1:])}
    assert state.refusals.groups("imw") == []


async def test_an_inventory_is_seen_once_its_record_is_there() -> None:
    state = HeldObjects(lambda _: None)
    state.put(MAILBOX, SECRET, Hold("bank", held=True))
    state.put(MAILBOX, ROLE, Hold("bank", held=False))
    records = cache(LOCATION_CONSENTS)
    settled = Patience(lambda _: True, lambda _: None, lambda: 0.0)
    observer = HoldsObserver(state, records, lambda cluster: f"root:{cluster}", settled)
    assert await observer.observe("imw") is None, "the edge scheduler makes it"
    made = record()
    made["metadata"].setdefault("annotations", {})["kcp.io/cluster"] = "imw"
    records.apply("ADDED", made)
    found = await observer.observe("imw")
    assert found is not None
    [held] = found.held
    assert (held.workspace, held.elements) == ("root:bank", frozenset({(MAILBOX, *SECRET[1:])}))
    assert found.refused == (
        {
            "workspace": "root:bank",
            "objects": 1,
            "resources": ["clusterroles.rbac.authorization.k8s.io"],
        },
    )


@pytest.mark.parametrize("dry_run", [False, True])
async def test_copies_go_when_the_confirmation_is_written_and_not_in_a_dry_run(
    dry_run: bool,
) -> None:
    twin = Twin(types=[served("edge.kcp.io", "v1alpha1", "locationconsents", "LocationConsent",
                              namespaced=False)])  # fmt: skip
    client = Client(twin)
    made = await client.for_cluster("imw").create(LOCATION_CONSENTS, record("o-1"))
    plan = decide_holds(ObservedHolds("imw", made, (HELD,)), NOW)
    assert isinstance(plan, HoldsPlan)
    assert plan.releases == HELD.elements
    state = HeldObjects(lambda _: None)
    marked: dict[Mailbox, set[ObjectRef]] = {}
    executor = HoldsExecutor(
        client,
        state,
        lambda mailbox, items: marked.update({mailbox: set(items)}),
        "translator",
        metrics=RuntimeMetrics(),
        announce=None,
        dry_run=dry_run,
    )
    await executor.execute(plan)
    assert marked == ({} if dry_run else {MAILBOX: {SECRET, ROLE}})
    assert state.is_released(MAILBOX, SECRET) is not dry_run


async def test_nothing_is_reported_before_everything_was_evaluated_but_not_for_ever() -> None:
    """After a start a report would say that nothing is held, and then that it is."""
    now, again = [0.0], list[str]()
    open_rows = {"imw"}
    patience = Patience(lambda cluster: cluster not in open_rows, again.append, lambda: now[0])
    records = cache(LOCATION_CONSENTS)
    made = record()
    made["metadata"].setdefault("annotations", {})["kcp.io/cluster"] = "imw"
    records.apply("ADDED", made)
    observer = HoldsObserver(HeldObjects(lambda _: None), records, str, patience)
    assert await observer.observe("imw") is None
    assert again == ["imw"]
    now[0] = 29.0
    assert await observer.observe("imw") is None
    now[0] = 30.0
    assert await observer.observe("imw") is not None
    assert again == ["imw", "imw"]
    open_rows.clear()
    assert await observer.observe("imw") is not None
    open_rows.add("imw")
    assert await observer.observe("imw") is None, "its time begins anew"
