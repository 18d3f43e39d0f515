"""How an edge stands is passed on: holds at once, numbers now and then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from skerry.controllers.mailbox.standing import (
    Standing,
    decide,
    enqueue_on_report,
    lean_config,
    with_standing,
)
from skerry.logic.fleet.syncing.reported import Reason, Reported
from skerry.logic.machinery.plan import Patch

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HELD = Reason("DeletionsHeld", "60 deletions are held")
COUNTS = {"wanted": 5, "applied": 5, "refused": 0, "unhealthy": 0, "held": 0}
WELL = Reported(None, None, COUNTS, "1.0")


def sync_target(**status: Any) -> dict[str, Any]:
    annotations = {"kcp.io/cluster": "imw"}
    metadata = {"name": "florin", "uid": "u", "resourceVersion": "7", "annotations": annotations}
    return with_standing({"metadata": metadata, "spec": {}, "status": status})


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
    assert plan.look_again_seconds == 4.0
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
