"""Heartbeats are passed on, not too often, and nonsense is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from skerry.api.edge import HEARTBEAT_LEASE_SECONDS
from skerry.controllers.mailbox.relay import Heartbeat, decide
from skerry.logic.machinery.plan import Patch
from skerry.runtime.index import Key

NOW = datetime(2030, 1, 1, 12, 0, 30, tzinfo=UTC)
KEY = Key("imw", "", "florin")


def heartbeat(renewed: str, relayed: str = "") -> Heartbeat:
    return Heartbeat(KEY, (renewed,), relayed)


def test_the_first_heartbeat_is_passed_on_at_once() -> None:
    (action,) = decide(heartbeat("2030-01-01T12:00:29.500000Z"), NOW)
    assert isinstance(action, Patch)
    assert action.subresource == "status"
    assert action.patch == {"status": {"lastSyncerHeartbeatTime": "2030-01-01T12:00:29Z"}}
    assert (action.target.cluster, action.target.name) == ("imw", "florin")


def test_a_newer_heartbeat_is_passed_on() -> None:
    assert decide(heartbeat("2030-01-01T12:00:29Z", "2030-01-01T12:00:00Z"), NOW)


def test_a_heartbeat_already_reported_is_not_reported_again() -> None:
    plan = decide(heartbeat("2030-01-01T12:00:00.700000Z", "2030-01-01T12:00:00Z"), NOW)
    assert not plan
    assert plan.look_again_seconds is None


def test_a_hasty_heartbeat_waits_for_its_turn() -> None:
    plan = decide(heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z"), NOW)
    assert not plan
    assert plan.look_again_seconds == 7.0


def test_a_hasty_heartbeat_waits_no_longer_where_the_hub_is_a_day_ahead() -> None:
    behind = NOW - timedelta(days=1)
    plan = decide(heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z"), behind)
    assert not plan
    assert plan.look_again_seconds == 7.0


def test_a_short_lease_is_passed_on_more_often() -> None:
    hasty = replace(
        heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:25Z"), lasts=12, reported=12
    )
    assert decide(hasty, NOW)


def test_how_long_a_lease_lasts_is_reported_where_it_is_unusual() -> None:
    known = heartbeat("2030-01-01T12:00:28Z", "2030-01-01T12:00:28Z")
    (action,) = decide(replace(known, lasts=600), NOW)
    assert isinstance(action, Patch)
    assert action.subresource == ""
    assert action.patch == {"metadata": {"annotations": {HEARTBEAT_LEASE_SECONDS: "600"}}}
    assert not decide(replace(known, lasts=600, reported=600), NOW)
    (action,) = decide(replace(known, reported=600), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"metadata": {"annotations": {HEARTBEAT_LEASE_SECONDS: None}}}


def test_an_older_heartbeat_never_replaces_a_newer() -> None:
    assert not decide(heartbeat("2030-01-01T11:00:00Z", "2030-01-01T12:00:00Z"), NOW)


def test_what_is_no_time_is_passed_over() -> None:
    assert not decide(heartbeat(""), NOW)
    assert not decide(heartbeat("yesterday"), NOW)
    assert decide(heartbeat("2030-01-01T12:00:29Z", "nonsense"), NOW)


def test_a_forged_time_is_not_passed_on_and_one_that_was_is_replaced() -> None:
    forged, renewed = "2099-01-01T00:00:00Z", "2030-01-01T12:00:29Z"
    assert not decide(heartbeat(forged, "2030-01-01T12:00:00Z"), NOW)
    (action,) = decide(heartbeat(renewed, forged), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"status": {"lastSyncerHeartbeatTime": renewed}}
    (action,) = decide(Heartbeat(KEY, (forged, forged, renewed), ""), NOW)
    assert isinstance(action, Patch)
    assert action.patch == {"status": {"lastSyncerHeartbeatTime": renewed}}
