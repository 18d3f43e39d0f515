"""What heartbeats mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import HEARTBEAT_LEASE_SECONDS
from skerry.kit.timestamps import rfc3339
from skerry.logic.fleet.placement.heartbeat import (
    RENEWALS,
    heartbeat_health,
    last_renewal,
    lean_lease,
    lease_seconds_of,
    lease_seconds_reported,
    relay_spacing,
    renewals_of,
)

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_target_never_heard_of_is_not_healthy_and_waits_for_nothing() -> None:
    assert heartbeat_health(None, NOW) == (False, "No heartbeat yet seen", None)


def test_a_recent_heartbeat_is_healthy_until_it_expires() -> None:
    last = NOW - timedelta(seconds=20)
    assert heartbeat_health(last, NOW) == (True, "", NOW + timedelta(seconds=40))


def test_a_lease_says_how_long_its_silence_is_tolerated() -> None:
    last = NOW - timedelta(seconds=90)
    assert not heartbeat_health(last, NOW).healthy
    assert heartbeat_health(last, NOW, 600) == (True, "", NOW + timedelta(seconds=510))
    assert not heartbeat_health(NOW - timedelta(seconds=20), NOW, 15).healthy
    assert heartbeat_health(NOW - timedelta(seconds=4), NOW, 1).healthy, "no shorter than times"


@given(st.integers(1, 2**31))
def test_a_lease_is_passed_on_several_times_before_it_runs_out(seconds: int) -> None:
    spacing = relay_spacing(seconds)
    assert spacing <= timedelta(seconds=10)
    assert spacing * 2 < timedelta(seconds=seconds)


@pytest.mark.parametrize("duration", [None, 0, -3, "10", 1.5])
def test_a_lease_of_no_duration_lasts_the_usual_time(duration: object) -> None:
    assert lease_seconds_of({"spec": {"leaseDurationSeconds": duration}}) == 60
    assert lease_seconds_of({}) == 60
    assert lease_seconds_of({"spec": {"leaseDurationSeconds": 20}}) == 20


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 60), ("20", 20), ("-1", 60), ("soon", 60), ("9" * 400, 60)]
)
def test_what_an_annotation_says_of_the_duration(text: str, seconds: int) -> None:
    annotations = {HEARTBEAT_LEASE_SECONDS: text}
    assert lease_seconds_reported({"metadata": {"annotations": annotations}}) == seconds
    assert lease_seconds_reported({"metadata": {}}) == 60


def test_a_minute_of_silence_is_a_failure() -> None:
    healthy, message, expires = heartbeat_health(NOW - timedelta(seconds=60), NOW)
    assert not healthy
    assert message == "No heartbeat since 2030-01-01T11:59:00Z"
    assert expires is None


def entry(time: str, field: str = "renewTime") -> dict[str, object]:
    fields: dict[str, object] = {"f:spec": {f"f:{field}": {}}}
    return {"manager": "m", "operation": "Update", "time": time, "fieldsV1": fields}


def lease(own: str, *entries: dict[str, object]) -> dict[str, object]:
    return {"metadata": {"managedFields": list(entries)}, "spec": {"renewTime": own}}


def test_a_lease_that_was_never_renewed_says_nothing() -> None:
    assert last_renewal(renewals_of({}), NOW) is None
    assert last_renewal((), NOW) is None
    renewed = last_renewal(renewals_of(lease("2030-01-01T11:59:00.000000Z")), NOW)
    assert renewed == NOW - timedelta(minutes=1)


def test_a_renewal_is_dated_by_the_hub_and_not_by_an_edge_whose_clock_is_wrong() -> None:
    found = lease(
        "2029-12-31T12:00:30.000000Z",
        entry("2030-01-01T11:58:00Z"),
        entry("2030-01-01T11:59:00Z"),
        entry("2030-01-01T11:59:59Z", "holderIdentity"),
    )
    assert last_renewal(renewals_of(found), NOW) == NOW - timedelta(minutes=1)


@pytest.mark.parametrize(
    "forged",
    [
        "2099-01-01T00:00:00Z",
        "2030-01-02T13:01:00Z",
        "9999-12-31T23:59:59-23:59",
        "2099-01-01T00:00:00+23:59",
        "never",
        "",
    ],
)
def test_a_forged_time_makes_nobody_fresh(forged: str) -> None:
    past = "2030-01-01T10:00:00.000000Z"
    earlier = NOW - timedelta(hours=2)
    assert last_renewal(renewals_of(lease(past, entry(forged))), NOW) == earlier
    assert last_renewal(renewals_of(lease(forged, entry(past))), NOW) == earlier
    assert last_renewal(renewals_of(lease(forged, entry(forged))), NOW) is None
    # Passing time does not make it count at once: it is judged anew whenever it is looked at.
    both = renewals_of(lease(past, entry(past), entry(forged)))
    assert last_renewal(both, NOW) == earlier


@given(st.datetimes(min_value=datetime(2030, 1, 1, 12, 1, 1)))  # noqa: DTZ001 - made aware below
def test_a_heartbeat_that_lies_ahead_is_none(last: datetime) -> None:
    moment = last.replace(tzinfo=UTC)
    assert not heartbeat_health(moment, NOW, 2**31).healthy


def test_a_relay_whose_clock_is_a_day_behind_passes_on_what_the_hub_will_judge() -> None:
    ahead = NOW + timedelta(days=1)
    assert last_renewal((rfc3339(ahead),), NOW) == ahead
    assert heartbeat_health(ahead, ahead).healthy
    assert not heartbeat_health(ahead, NOW).healthy, "by the clock of the hub it is forged"


def test_a_heartbeat_of_a_clock_slightly_ahead_counts() -> None:
    assert heartbeat_health(NOW + timedelta(seconds=30), NOW).healthy


@given(st.integers(3600, 2**31))
def test_no_lease_counts_for_longer_than_an_hour(seconds: int) -> None:
    assert lease_seconds_of({"spec": {"leaseDurationSeconds": seconds}}) == 3600
    annotations = {HEARTBEAT_LEASE_SECONDS: str(seconds)}
    assert lease_seconds_reported({"metadata": {"annotations": annotations}}) == 3600
    assert not heartbeat_health(NOW - timedelta(hours=1), NOW, seconds).healthy


def test_of_a_lease_its_renewals_and_its_length_are_kept() -> None:
    spec = {"renewTime": "2030-01-01T00:00:00.000000Z", "leaseDurationSeconds": 120}
    lean = lean_lease({"metadata": {"name": "l", "namespace": "n"}, "spec": spec})
    assert lean["spec"] == {"leaseDurationSeconds": 120}
    assert "2030-01-01T00:00:00.000000Z" in lean[RENEWALS]
