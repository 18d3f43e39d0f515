"""A row repeats what the hub says of an edge or a placement, and nothing it has not said."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.overview.rows import (
    EDGE_STATES,
    EdgeRow,
    EdgeState,
    PlacementRow,
    Status,
    edge_row,
    placement_row,
    row_key,
)

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


READY_OR_NOT = {True: READY, False: {"type": "Ready", "status": "False"}}


@pytest.mark.parametrize(
    ("conditions", "objects", "state"),
    [
        (("Held", "ObjectsRefused"), {"unhealthy": 1, "wanted": 2, "applied": 1}, "Held"),
        (("ObjectsRefused",), {"unhealthy": 1, "wanted": 2, "applied": 1}, "Refused"),
        ((), {"unhealthy": 1, "wanted": 2, "applied": 1}, "Unhealthy"),
        ((), {"unhealthy": 0, "wanted": 2, "applied": 1}, "Syncing"),
        ((), {"unhealthy": 0, "wanted": 2, "applied": 2}, "Ready"),
        ((), {"unhealthy": 0, "wanted": 2, "applied": 3}, "Ready"),
        # What the syncer has not reported is not taken for none.
        ((), {"applied": 1}, "Ready"),
        ((), {"wanted": 1}, "Ready"),
        ((), {}, "Ready"),
    ],
)
def test_of_several_things_that_are_wrong_the_worst_one_is_the_state(
    conditions: tuple[str, ...], objects: dict[str, int], state: str
) -> None:
    found = edge(READY, *({"type": each, "status": "True"} for each in conditions), objects=objects)
    assert found.state == state
    lost = edge(READY_OR_NOT[False], objects=objects)
    assert lost.state == "Lost"


def test_a_condition_without_a_message_is_shown_by_its_reason() -> None:
    lost = {"type": "Ready", "status": "False", "reason": "LeaseLapsed"}
    assert edge(lost).problem == "LeaseLapsed"
    assert edge({**lost, "message": "No heartbeat"}).problem == "No heartbeat"
    assert edge(READY, {"type": "Held", "status": "True"}).problem == ""


@pytest.mark.parametrize(("length", "shown"), [(299, 299), (300, 300), (301, 300)])
def test_a_message_is_cut_only_where_it_is_too_long(length: int, shown: int) -> None:
    row = edge(READY, {"type": "Held", "status": "True", "message": "x" * length})
    assert len(row.problem) == shown
    assert row.problem.endswith("…") == (length > 300)


def test_what_is_held_is_none_where_nothing_was_reported() -> None:
    assert edge(READY).held == 0
    assert edge(READY, objects={"held": 60}).held == 60
    assert edge(READY, objects={"held": "many"}).held == 0


@pytest.mark.parametrize("state", EDGE_STATES)
def test_somebody_should_look_where_something_is_lost_or_waits(state: EdgeState) -> None:
    quiet = {"Syncing", "NotJoined", "Ready"}
    assert EdgeRow("c", "n", state).is_problem == (state not in quiet)


edge_rows = st.builds(
    EdgeRow,
    st.sampled_from("ab"),
    st.sampled_from("xy"),
    st.sampled_from(EDGE_STATES),
    unhealthy=st.none() | st.integers(0, 3),
    held=st.integers(0, 3),
)


@given(edge_rows, edge_rows)
def test_an_edge_in_a_worse_state_comes_first_whatever_else_is_so(
    one: EdgeRow, other: EdgeRow
) -> None:
    if EDGE_STATES.index(one.state) < EDGE_STATES.index(other.state):
        assert one.order() < other.order()
    elif one.state == other.state:
        wanted = (-one.held, -(one.unhealthy or 0), one.name, one.cluster)
        given_ = (-other.held, -(other.unhealthy or 0), other.name, other.cluster)
        assert (one.order() < other.order()) == (wanted < given_)


@pytest.mark.parametrize(
    ("ready", "unknown", "problem"),
    [("True", 0, False), ("True", None, False), ("True", 1, True), ("False", 0, True),
     ("Unknown", None, True)],
)  # fmt: skip
def test_a_placement_is_a_problem_unless_all_of_it_is_seen_and_ready(
    ready: Status, unknown: int | None, problem: bool
) -> None:
    assert PlacementRow("c", "p", ready, unknown=unknown).is_problem is problem


def test_placements_are_ordered_by_how_bad_they_are_and_then_by_name() -> None:
    rows = [
        PlacementRow("a", "not-ready-2", "False", unhealthy=2),
        PlacementRow("a", "not-ready-1", "False", unhealthy=1, unknown=9),
        PlacementRow("a", "silent", "False", unknown=3),
        PlacementRow("b", "plain", "False"),
        PlacementRow("c", "plain", "False"),
        PlacementRow("a", "unjudged", "Unknown", unhealthy=9),
        PlacementRow("a", "ready", "True", unhealthy=9),
    ]
    backwards = rows[::-1]
    assert sorted(backwards, key=PlacementRow.order) == rows


@pytest.mark.parametrize("status", ["Maybe", None, "", 1])
def test_a_readiness_that_is_none_is_unknown(status: Any) -> None:
    assert placement({"type": "Ready", "status": status}).ready == "Unknown"


def test_an_object_of_one_cluster_needs_no_annotation() -> None:
    bare = {"metadata": {"name": "web"}}
    assert row_key(bare) == ("", "web")
    assert placement_row(bare).destinations == 0
    assert edge_row(bare).key == ("", "web")


def test_a_placement_without_lost_edges_has_nothing_more_to_say_when_it_is_ready() -> None:
    delivered = {"type": "Delivered", "status": "True", "message": "3 of 3 delivered"}
    assert placement(READY, delivered, unknownDestinations=0).problem == ""
    held = {"type": "Held", "status": "False"}
    assert not placement(READY, held).held
