"""What a report is worth beside the Lease of its edge."""

from __future__ import annotations

from skerry.logic.fleet.summary.freshness import LIVE, NEVER, fresh_report, lapsed
from skerry.logic.fleet.summary.health import HEALTHY
from skerry.logic.fleet.summary.report import ABSENT, Report

WELL = Report(delivered=True, reported=True, health=HEALTHY, numbers=(("replicas", 2),))


def test_a_report_counts_while_its_lease_lives() -> None:
    assert fresh_report(WELL, LIVE) is WELL
    assert fresh_report(None, LIVE) is ABSENT


def test_nothing_of_a_report_counts_once_its_lease_has_lapsed() -> None:
    found = fresh_report(WELL, lapsed("2030-01-01T00:00:00Z"))

    assert not found.delivered
    assert not found.reported
    assert found.numbers == ()
    assert found.last_heard == "2030-01-01T00:00:00Z"
    assert (found.health.status, found.health.reason, found.health.message) == (
        "Unknown",
        "LeaseLapsed",
        "last heard of 2030-01-01T00:00:00Z",
    )


def test_an_edge_without_a_lease_was_never_heard_of() -> None:
    found = fresh_report(WELL, None)

    assert found is NEVER.report
    assert found.last_heard == ""
    assert (found.health.reason, found.health.message) == ("NeverHeardOf", "not heard of yet")
