"""Conditions of SyncTargets follow their heartbeats."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from skerry.controllers.tenancy.heartbeat import Observed, decide
from skerry.logic.machinery.plan import Patch, Plan
from skerry.runtime.client import cluster_of
from skerry.runtime.index import Key

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
KEY = Key("imw", "", "florin")
NEVER = [
    {
        "type": kind,
        "status": "False",
        "reason": "ErrorHeartbeat",
        "message": "No heartbeat yet seen",
        "severity": "Warning",
        "lastTransitionTime": "2029-01-01T00:00:00Z",
    }
    for kind in ("Ready", "HeartbeatHealthy")
]


def observed(seconds_ago: float | None, *conditions: dict[str, Any]) -> Observed:
    last = None if seconds_ago is None else NOW - timedelta(seconds=seconds_ago)
    return Observed(KEY, "7", last, conditions)


def written(plan: Plan) -> dict[str, dict[str, Any]]:
    (action,) = plan
    assert isinstance(action, Patch)
    assert action.patch["metadata"] == {"resourceVersion": "7"}
    return {each["type"]: each for each in action.patch["status"]["conditions"]}


def test_a_target_never_heard_of_says_so_and_is_left_alone() -> None:
    assert not decide(observed(None, *NEVER), NOW)
    assert written(decide(observed(None), NOW))["Ready"]["message"] == "No heartbeat yet seen"


def test_a_heartbeat_makes_a_target_ready_and_is_looked_at_when_it_expires() -> None:
    plan = decide(observed(10, *NEVER), NOW)
    conditions = written(plan)
    for kind in ("Ready", "HeartbeatHealthy"):
        assert conditions[kind] == {
            "type": kind,
            "status": "True",
            "lastTransitionTime": "2030-01-01T12:00:00Z",
        }
    assert plan.requeue_after_seconds == 50.0
    again = decide(observed(5, *conditions.values()), NOW)
    assert not again
    assert again.requeue_after_seconds == 55.0


def test_silence_makes_it_unready() -> None:
    ready = tuple(written(decide(observed(10, *NEVER), NOW)).values())
    plan = decide(observed(61, *ready), NOW + timedelta(seconds=1))
    conditions = written(plan)
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Ready"]["message"] == "No heartbeat since 2030-01-01T11:58:59Z"
    assert plan.requeue_after_seconds is None


def test_a_hub_that_was_away_gives_edges_the_time_of_their_lease_to_come_back() -> None:
    ready = tuple(written(decide(observed(10, *NEVER), NOW)).values())
    began = NOW - timedelta(seconds=20)
    plan = decide(observed(3600, *ready), NOW, began)
    assert not plan, "it could not be heard for most of that hour"
    assert plan.requeue_after_seconds == 40.0
    late = decide(observed(3600, *ready), NOW + timedelta(seconds=41), began)
    assert written(late)["Ready"]["message"] == "No heartbeat since 2030-01-01T11:00:00Z"


def test_who_was_silent_before_the_hub_went_away_stays_so() -> None:
    ready = tuple(written(decide(observed(10, *NEVER), NOW)).values())
    silent = tuple(written(decide(observed(100, *ready), NOW)).values())
    assert not decide(observed(100, *silent), NOW, NOW - timedelta(seconds=1))
    heard = decide(observed(0, *silent), NOW, NOW - timedelta(seconds=1))
    assert written(heard)["Ready"]["status"] == "True"


def test_a_heartbeat_counts_from_when_it_came_however_long_the_hub_listens() -> None:
    ready = tuple(written(decide(observed(10, *NEVER), NOW)).values())
    began = NOW - timedelta(hours=1)
    assert decide(observed(10, *ready), NOW, began).requeue_after_seconds == 50.0
    assert written(decide(observed(61, *ready), NOW, began))["Ready"]["status"] == "False"


def test_a_longer_lease_is_waited_for() -> None:
    ready = tuple(written(decide(observed(10, *NEVER), NOW)).values())
    plan = decide(replace(observed(70, *ready), lasts=600), NOW)
    assert not plan
    assert plan.requeue_after_seconds == 530.0


def test_ready_sums_up_what_else_is_said_and_that_stays() -> None:
    syncer = {"type": "SyncerReady", "status": "False", "reason": "Busy", "message": "wait"}
    conditions = written(decide(observed(1, syncer), NOW))
    assert conditions["SyncerReady"] == syncer
    assert conditions["HeartbeatHealthy"]["status"] == "True"
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", "Busy")
    assert not decide(observed(1, *conditions.values()), NOW)


def announced(plan: Plan) -> list[tuple[str, str, str]]:
    return [(each.type, each.reason, each.message) for each in plan.announcements]


def test_an_edge_that_comes_and_one_that_is_lost_are_announced() -> None:
    assert not announced(decide(observed(None), NOW))
    joined = decide(observed(10, *NEVER), NOW)
    assert announced(joined) == [("Normal", "HeartbeatHealthy", "heard of at 2030-01-01T11:59:50Z")]
    (announcement,) = joined.announcements
    about = announcement.about
    assert (about["kind"], about["metadata"]["name"]) == ("SyncTarget", "florin")
    assert cluster_of(about) == "imw"

    ready = tuple(written(joined).values())
    assert not announced(decide(observed(5, *ready), NOW))
    silent = decide(observed(61, *ready), NOW)
    message = "No heartbeat since 2030-01-01T11:58:59Z"
    assert announced(silent) == [("Warning", "ErrorHeartbeat", message)]
    assert not announced(decide(observed(61, *written(silent).values()), NOW))
