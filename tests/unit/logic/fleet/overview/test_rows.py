"""A row repeats what the hub says of an edge or a placement, and nothing it has not said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.overview.rows import EdgeRow, edge_row, placement_row

HEARD = "2026-03-01T12:00:00Z"
READY = {"type": "Ready", "status": "True"}


def obj(name: str = "berlin", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: "c1"}}
    return {"metadata": metadata, "status": status}


def edge(*conditions: dict[str, str], heard: str | None = HEARD, **status: Any) -> EdgeRow:
    times = {"lastSyncerHeartbeatTime": heard} if heard else {}
    return edge_row(obj(conditions=list(conditions), **times, **status))


def test_an_edge_that_is_heard_of_and_has_everything_is_ready() -> None:
    objects = {"wanted": 4, "applied": 4, "unhealthy": 0, "held": 0}
    assert edge(READY, objects=objects, syncerVersion="1.2") == EdgeRow(
        "c1", "berlin", "Ready", datetime(2026, 3, 1, 12, tzinfo=UTC), "1.2", 4, 4, 0
    )


def test_an_edge_not_heard_of_any_more_is_lost_whatever_it_last_said() -> None:
    lost = {"type": "Ready", "status": "False", "message": f"No heartbeat since {HEARD}"}
    held = {"type": "Held", "status": "True", "message": "60 deletions are held"}
    row = edge(lost, held, objects={"wanted": 4, "applied": 4, "unhealthy": 4})
    assert row.state == "Lost"
    assert row.problem == f"No heartbeat since {HEARD}"
    assert row.is_problem


def test_an_edge_nobody_ever_heard_of_has_not_joined_and_is_no_problem_yet() -> None:
    never = {"type": "Ready", "status": "False", "message": "No heartbeat yet seen"}
    row = edge(never, heard=None)
    assert (row.state, row.problem, row.is_problem) == (
        "NotJoined",
        "No heartbeat yet seen",
        False,
    )


def test_an_edge_nobody_has_judged_is_not_said_to_be_ready() -> None:
    assert edge(heard=None).state == "NotJoined"
    assert edge().problem == "the controllers have not judged it yet"


@pytest.mark.parametrize(("condition", "state"), [("Held", "Held"), ("ObjectsRefused", "Refused")])
def test_what_waits_for_a_person_comes_with_its_sentence(condition: str, state: str) -> None:
    row = edge(READY, {"type": condition, "status": "True", "message": "see\n  this"})
    assert (row.state, row.problem) == (state, "see this")
    assert edge(READY, {"type": condition, "status": "False"}).state == "Ready"


def test_unhealthy_objects_and_missing_ones_are_counted() -> None:
    unhealthy = edge(READY, objects={"wanted": 9, "applied": 8, "unhealthy": 2})
    assert (unhealthy.state, unhealthy.problem) == ("Unhealthy", "2 of 9 objects are unhealthy")
    behind = edge(READY, objects={"wanted": 9, "applied": 8, "unhealthy": 0})
    assert (behind.state, behind.problem) == ("Syncing", "1 of 9 objects are not applied yet")
    assert not behind.is_problem


def test_a_long_message_is_cut_to_a_line() -> None:
    row = edge(READY, {"type": "Held", "status": "True", "message": "x" * 5000})
    assert len(row.problem) == 300
    assert row.problem.endswith("…")


def test_a_status_that_is_malformed_is_read_as_not_said() -> None:
    row = edge_row(obj(lastSyncerHeartbeatTime="yesterday", objects=[1], conditions=None))
    assert (row.heard, row.wanted, row.state) == (None, None, "NotJoined")


def placement(*conditions: dict[str, str], **status: Any) -> Any:
    return placement_row(obj("shop", conditions=list(conditions), **status))


def test_a_placement_shows_its_counts_and_why_it_is_not_ready() -> None:
    row = placement(
        {"type": "Ready", "status": "False", "message": "1 of 3 destinations is unhealthy"},
        {"type": "Held", "status": "True"},
        destinationCount=3,
        deliveredDestinations=3,
        healthyDestinations=2,
        unhealthyDestinations=1,
        unknownDestinations=0,
    )
    assert (row.destinations, row.delivered, row.healthy, row.unhealthy, row.unknown) == (
        3, 3, 2, 1, 0,
    )  # fmt: skip
    assert (row.ready, row.held, row.is_problem) == ("False", True, True)
    assert row.problem == "1 of 3 destinations is unhealthy"


def test_a_placement_that_is_ready_but_for_lost_edges_still_names_them() -> None:
    delivered = {"type": "Delivered", "status": "True", "message": "2 of 3 delivered, 1 unknown"}
    row = placement(READY, delivered, destinationCount=3, unknownDestinations=1)
    assert (row.ready, row.is_problem, row.problem) == (
        "True", True, "2 of 3 delivered, 1 unknown",
    )  # fmt: skip
    assert not placement(READY, delivered, destinationCount=3, unknownDestinations=0).is_problem


def test_what_is_not_delivered_shows_the_cause_where_one_is_known() -> None:
    missing = "0 of 2 destinations delivered; not yet at north, south"
    ready = {"type": "Ready", "status": "False", "reason": "NotDelivered", "message": missing}
    cause = "0 of 2 destinations healthy; 2 unhealthy: north configmaps shop/page Refused: too big"
    ill = {"type": "Healthy", "status": "False", "reason": "Unhealthy", "message": cause}
    assert placement(ready, ill).problem == cause
    pending = {"type": "Healthy", "status": "False", "reason": "Pending", "message": "2 pending"}
    assert placement(ready, pending).problem == missing
    assert placement(ready).problem == missing


def test_a_placement_nobody_has_judged_is_unknown() -> None:
    row = placement(destinationCount=2)
    assert (row.ready, row.delivered, row.problem) == (
        "Unknown", None, "the controllers have not judged it yet",
    )  # fmt: skip
