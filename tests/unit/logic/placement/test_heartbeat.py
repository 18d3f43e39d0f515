"""What heartbeats mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from skerry.logic.placement.heartbeat import heartbeat_health, renewal_of

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_target_never_heard_of_is_not_healthy_and_waits_for_nothing() -> None:
    assert heartbeat_health(None, NOW) == (False, "No heartbeat yet seen", None)


def test_a_recent_heartbeat_is_healthy_until_it_expires() -> None:
    last = NOW - timedelta(seconds=20)
    assert heartbeat_health(last, NOW) == (True, "", NOW + timedelta(seconds=40))


def test_a_minute_of_silence_is_a_failure() -> None:
    healthy, message, expires = heartbeat_health(NOW - timedelta(seconds=60), NOW)
    assert not healthy
    assert message == "No heartbeat since 2030-01-01T11:59:00Z"
    assert expires is None


def test_a_lease_that_was_never_renewed_says_nothing() -> None:
    assert renewal_of({}) == ""
    assert renewal_of({"spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}}).startswith("2030")
