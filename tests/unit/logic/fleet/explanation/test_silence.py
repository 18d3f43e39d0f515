"""How long an edge has not been heard of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.logic.fleet.explanation.silence import silence

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


def _target(last: str, **notes: str) -> dict[str, Any]:
    status = {"lastSyncerHeartbeatTime": last} if last else {}
    return {"metadata": {"name": "berlin", "annotations": notes}, "status": status}


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("2026-05-01T11:59:30Z", None),
        ("2026-05-01T11:58:30Z", ("LeaseLapsed", "last heard of 90 s ago")),
        ("2026-05-01T09:00:00Z", ("LeaseLapsed", "last heard of 3h ago")),
        ("", ("NeverHeardOf", "was never heard of")),
    ],
)
def test_an_edge_counts_for_as_long_as_its_lease(last: str, said: tuple[str, str] | None) -> None:
    assert silence(_target(last), NOW) == said


def test_a_longer_lease_is_waited_for() -> None:
    notes = {"edge.kcp.io/heartbeat-lease-seconds": "300"}
    assert silence(_target("2026-05-01T11:58:30Z", **notes), NOW) is None
