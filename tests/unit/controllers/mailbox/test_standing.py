"""How an edge stands is passed on: holds at once, numbers now and then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from skerry.api.edge import SYNCER_CONFIG_NAME, SYNCER_CONFIGS, Mailbox
from skerry.api.errors import Conflict
from skerry.api.kcp.resources import SYNC_TARGETS, WORKSPACES
from skerry.controllers.mailbox.events import BY_CONTENT, BY_UID, by_content, by_uid
from skerry.controllers.mailbox.relay import MailboxContent
from skerry.controllers.mailbox.standing import (
    PassedOn,
    Standing,
    StandingObserver,
    decide,
    enqueue_on_report,
    lean_config,
)
from skerry.kit.clock import LoopClock
from skerry.logic.fleet.placement.records import lean_sync_target
from skerry.logic.fleet.syncing.reported import Reason, Reported
from skerry.logic.machinery.plan import Patch
from skerry.runtime.execute import Outcome
from skerry.runtime.index import Key
from tests.kit.caches import cache
from tests.kit.sim.loop import virtual

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HELD = Reason("DeletionsHeld", "60 deletions are held")
COUNTS = {"wanted": 5, "applied": 5, "refused": 0, "unhealthy": 0, "held": 0}
WELL = Reported(None, None, COUNTS, "1.0")


def sync_target(**status: Any) -> dict[str, Any]:
    annotations = {"kcp.io/cluster": "imw"}
    metadata = {"name": "florin", "uid": "u", "resourceVersion": "7", "annotations": annotations}
    return lean_sync_target({"metadata": metadata, "spec": {}, "status": status})


def patched(standing: Standing) -> dict[str, Any]:
    """Return the SyncTarget with the plan carried out."""
    (action,) = decide(standing, NOW)
    assert isinstance(action, Patch)
    assert (action.subresource, action.target.cluster) == ("status", "imw")
    status = {**standing.sync_target["status"], **action.patch["status"]}
    return sync_target(**status)


def conditions(target: dict[str, Any]) -> dict[str, Any]:
    return {each["type"]: each for each in target["status"]["conditions"]}


def test_the_first_report_says_everything_and_nothing_again() -> None:
    others = [{"type": "Ready", "status": "True", "lastTransitionTime": "t"}]
    target = patched(Standing(sync_target(conditions=others), WELL))
    found = conditions(target)
    assert found["Ready"]["status"] == "True"
    assert found["Held"]["status"] == found["ObjectsRefused"]["status"] == "False"
    assert target["status"]["objects"] == COUNTS
    assert target["status"]["syncerVersion"] == "1.0"
    assert not decide(Standing(target, WELL), NOW)


def test_a_hold_is_passed_on_at_once_and_announced_once_each_way() -> None:
    target = patched(Standing(sync_target(), WELL))
    held = Standing(target, WELL._replace(hold=HELD), due=9.0)
    plan = decide(held, NOW)
    (action,) = plan
    assert isinstance(action, Patch)
    assert action.patch["metadata"] == {"resourceVersion": "7"}, "others write conditions too"
    [event] = plan.announcements
    assert (event.type, event.reason, event.message) == ("Warning", *HELD)
    assert event.about["kind"] == "SyncTarget"
    target = patched(held)
    assert conditions(target)["Held"]["status"] == "True"
    more = HELD._replace(message="61 deletions are held")
    plan = decide(Standing(target, WELL._replace(hold=more)), NOW)
    assert plan
    assert not plan.announcements
    plan = decide(Standing(target, WELL), NOW)
    [event] = plan.announcements
    assert event.type == "Normal"


def test_what_is_refused_is_said_by_its_kind() -> None:
    refused = WELL._replace(refusal=Reason("NotOurs", "NotOurs: configmaps/shop/page"))
    found = conditions(patched(Standing(sync_target(), refused)))["ObjectsRefused"]
    assert (found["status"], found["reason"]) == ("True", "NotOurs")


def test_numbers_alone_wait_for_their_turn() -> None:
    target = patched(Standing(sync_target(), WELL))
    hasty = Standing(target, WELL._replace(objects={**COUNTS, "wanted": 6}), due=4.0)
    plan = decide(hasty, NOW)
    assert not plan
    assert plan.requeue_after_seconds == 4.0
    (action,) = decide(replace(hasty, due=0.0), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"status": {"objects": {**COUNTS, "wanted": 6}}}


def test_only_a_report_that_is_another_one_enqueues() -> None:
    def config(name: str, message: str, spec: str = "") -> dict[str, Any]:
        held = {"type": "DeletionsHeld", "status": "True", "message": message}
        annotations = {"kcp.io/cluster": "mailbox"}
        metadata = {"name": name, "uid": "u", "resourceVersion": "1", "annotations": annotations}
        obj = {"metadata": metadata, "spec": spec, "status": {"conditions": [held]}}
        return lean_config(obj)

    found: list[Any] = []
    handle = enqueue_on_report(found.append)
    handle(None, config("other", "a"))
    handle(config("the-one", "a"), config("the-one", "a", "more"))
    assert not found
    handle(config("the-one", "a"), config("the-one", "b"))
    assert [str(each) for each in found] == ["mailbox"]


MAILBOX = Mailbox("imw", "0e395079-f849-41e9-bd4f-0bcc07a16d3a")
CONTENT = MailboxContent("xq5f")


def config(**status: Any) -> dict[str, Any]:
    notes = {"kcp.io/cluster": CONTENT.cluster}
    metadata = {"name": SYNCER_CONFIG_NAME, "uid": "c", "resourceVersion": "1"}
    return lean_config({"metadata": {**metadata, "annotations": notes}, "status": status})


WELL_THERE = {"type": "DeletionsHeld", "status": "False", "reason": "NoneHeld"}
REPORT = {"conditions": [WELL_THERE], "objects": COUNTS, "syncerVersion": "1.0"}


@virtual
async def test_a_report_is_observed_with_its_sync_target_and_observing_changes_nothing() -> None:
    space = {"metadata": {"name": MAILBOX.workspace}, "spec": {"cluster": CONTENT.cluster}}
    target = sync_target()
    target["metadata"]["uid"] = MAILBOX.uid
    configs = cache(SYNCER_CONFIGS)
    spaces = cache(WORKSPACES, space, indexes={BY_CONTENT: by_content})
    targets = cache(SYNC_TARGETS, target, indexes={BY_UID: by_uid})
    clock = LoopClock()
    observer = StandingObserver(configs, spaces, targets, PassedOn(clock).due)
    assert await observer.observe(CONTENT) is None, "nothing reports yet"
    configs.apply("ADDED", config(**REPORT))
    first = await observer.observe(CONTENT)
    assert first is not None
    assert (first.due, first.sync_target["metadata"]["name"]) == (0.0, "florin")
    await clock.sleep(4)
    assert await observer.observe(CONTENT) == first, "nothing has been passed on"
    targets.apply("DELETED", target)
    assert await observer.observe(CONTENT) is None


@virtual
async def test_what_one_change_comes_to_is_passed_on_as_it_comes_and_churn_now_and_then() -> None:
    clock = LoopClock()
    passed_on, key = PassedOn(clock), Key("imw", "", "florin")
    (action,) = decide(Standing(sync_target(), WELL), NOW)

    def due_after_some() -> list[float]:
        found = []
        for _ in range(6):
            found.append(round(passed_on.due(key), 3))
            if not found[-1]:
                passed_on.done(Outcome(action, "patched", sync_target()))
        return found

    assert due_after_some() == [0.0, 0.0, 0.0, 0.0, 0.0, 10.0]
    await clock.sleep(10)
    assert due_after_some() == [0.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    await clock.sleep(600)
    assert due_after_some() == [0.0, 0.0, 0.0, 0.0, 0.0, 10.0], "a rest saves up no more"


@virtual
async def test_numbers_are_due_some_time_after_they_were_passed_on_and_anew_for_a_new_edge() -> (
    None
):
    clock = LoopClock()
    passed_on, key = PassedOn(clock), Key("imw", "", "florin")
    (action,) = decide(Standing(sync_target(), WELL), NOW)
    passed_on.begin(action)
    passed_on.failed(action, Conflict("changed"))
    passed_on.done(Outcome(action, "gone"))
    assert passed_on.due(key) == 0.0, "nothing was passed on"
    for _ in range(5):
        passed_on.done(Outcome(action, "patched", sync_target()))
    await clock.sleep(4)
    assert round(passed_on.due(key)) == 6
    passed_on.sync_target_changed(sync_target(), sync_target(objects=COUNTS))
    assert round(passed_on.due(key)) == 6
    assert passed_on.due(Key("imw", "", "guilder")) == 0.0
    passed_on.sync_target_changed(sync_target(), None)
    assert passed_on.due(key) == 0.0
    for _ in range(5):
        passed_on.done(Outcome(action, "patched", sync_target()))
    await clock.sleep(10)
    assert passed_on.due(key) == 0.0
