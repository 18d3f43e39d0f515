"""How a placement fares: as its row, its summaries and their details say."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.fleet.console.edges import STATES, EdgeIndex
from skerry.logic.fleet.console.placements import (
    PlacementIndex,
    Stage,
    placement_state,
    stage_of,
    states_at,
    worst_by_edge,
)
from skerry.logic.fleet.overview.rows import PlacementRow, Status
from tests.kit.chain.console_objects import detail, placement, summary, sync_target


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"healthy": "True"}, "healthy"),
        ({"healthy": "False", "reason": "CrashLoopBackOff"}, "unhealthy"),
        ({"healthy": "False", "reason": "RollingOut"}, "progressing"),
        ({"healthy": "Unknown", "reason": "NoHealth"}, "healthy"),
        ({"healthy": "Unknown", "reason": "NotReported"}, "progressing"),
        ({"healthy": "Unknown", "reason": "LeaseLapsed"}, "away"),
        ({"healthy": "True", "delivered": False}, "progressing"),
    ],
)
def test_the_state_of_an_object_at_a_destination(more: dict[str, str], state: str) -> None:
    [fared] = stage_of(summary("w", "web", "web", detail("a", "one", **more))).fared
    assert STATES[fared.state] == state


@pytest.mark.parametrize(
    ("ready", "unhealthy", "unknown", "held", "state"),
    [
        ("True", 0, 0, False, "healthy"),
        ("True", 1, 0, False, "unhealthy"),
        ("True", 0, 1, False, "away"),
        ("False", 0, 0, False, "progressing"),
        ("False", 0, 0, True, "degraded"),
        ("Unknown", None, None, False, "unknown"),
    ],
)
def test_the_state_of_a_placement(
    ready: Status, unhealthy: int | None, unknown: int | None, held: bool, state: str
) -> None:
    row = PlacementRow("w", "web", ready, unhealthy=unhealthy, unknown=unknown, held=held)
    assert STATES[placement_state(row)] == state


def test_the_worst_object_decides_and_a_summary_that_goes_decides_no_more() -> None:
    edges, index = EdgeIndex(), PlacementIndex()
    edges.put_sync_target(sync_target("a", "one"))
    number = edges.number_of(("a", "one"))
    assert number is not None
    index.put_summary(summary("w", "web", "good", detail("a", "one")))
    bad = summary("w", "web", "bad", detail("a", "one", "False", reason="Bad"))
    index.put_summary(bad)
    assert STATES[states_at(index.stages(("w", "web")), edges)[number]] == "unhealthy"
    index.remove_summary(bad)
    assert STATES[states_at(index.stages(("w", "web")), edges)[number]] == "healthy"
    assert STATES[states_at(index.stages(("w", "other")), edges)[number]] == "unknown"


WEB = ("w", "web")


def stage(*details: dict[str, Any], destinations: int = 0) -> Stage:
    return stage_of(summary("w", "web", "web", *details, destinations=destinations))


def test_a_placement_is_there_with_its_conditions_until_it_goes() -> None:
    index = PlacementIndex()
    condition = {"type": "Ready", "status": "False", "message": "1 of 3"}
    index.put_placement(placement("w", "web", conditions=[condition], destinationCount=3))
    found = index.placements[WEB]
    assert (found.row.name, found.row.destinations, found.conditions) == ("web", 3, [condition])
    index.put_placement(placement("w", "web", conditions=None))
    assert index.placements[WEB].conditions == []
    index.remove_placement(placement("w", "web"))
    index.remove_placement(placement("w", "web"))
    assert index.placements == {}


def test_a_placement_shows_no_more_conditions_than_anybody_writes() -> None:
    index = PlacementIndex()
    many = [{"type": f"T{number}", "status": "True"} for number in range(100)]
    index.put_placement(placement("w", "web", conditions=many))
    assert index.placements[WEB].conditions == many[:32]


def test_every_change_is_a_new_version() -> None:
    index, seen = PlacementIndex(), [0]
    one = summary("w", "web", "one", detail("a", "one"))
    for change, obj in (
        (index.put_placement, placement("w", "web")),
        (index.put_summary, one),
        (index.remove_summary, one),
        (index.remove_placement, placement("w", "web")),
    ):
        change(obj)
        assert index.version > seen[-1]
        seen.append(index.version)


def test_stages_are_in_the_order_of_namespaces_and_names_and_of_the_kind_asked_for() -> None:
    index = PlacementIndex()
    for name, namespace in (("b", "shop"), ("a", "shop"), ("z", "bank"), ("c", "")):
        obj = summary("w", "web", name)
        obj["metadata"]["namespace"] = namespace
        index.put_summary(obj)
    every = [each.object["name"] for each in index.stages(WEB)]
    assert every == ["c", "z", "a", "b"]
    assert [e.object["name"] for e in index.stages(WEB, namespaced=False)] == ["c"]
    assert [e.object["name"] for e in index.stages(WEB, cluster_scoped=False)] == ["z", "a", "b"]
    assert index.stages(WEB, namespaced=False, cluster_scoped=False) == []


def test_a_summary_without_a_namespace_is_one_of_what_has_none() -> None:
    index = PlacementIndex()
    obj = summary("w", "web", "role")
    del obj["metadata"]["namespace"]
    index.put_summary(obj)
    assert len(index.stages(WEB, namespaced=False)) == 1
    index.remove_summary(obj)
    assert index.stages(WEB) == []


def test_a_summary_that_was_never_there_takes_no_other_along() -> None:
    index = PlacementIndex()
    index.put_summary(summary("w", "web", "one"))
    index.remove_summary(summary("w", "web", "two"))
    index.remove_summary(summary("w", "other", "one"))
    assert len(index.stages(WEB)) == 1


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("unhealthy", "away", "unhealthy"),
        ("away", "progressing", "away"),
        ("progressing", "healthy", "progressing"),
    ],
)
def test_of_two_objects_at_one_destination_the_worse_one_is_shown(
    first: str, second: str, shown: str
) -> None:
    of = {
        "unhealthy": {"healthy": "False", "reason": "Bad"},
        "away": {"healthy": "Unknown", "reason": "LeaseLapsed"},
        "progressing": {"healthy": "Unknown", "reason": "NotReported"},
        "healthy": {"healthy": "True"},
    }
    for pair in ((first, second), (second, first)):
        stages = [stage(detail("a", "one", **of[each])) for each in pair]
        [fared] = worst_by_edge(stages).values()
        assert STATES[fared.state] == shown
    same = [stage(detail("a", "one", "False", reason=each)) for each in ("First", "Second")]
    assert worst_by_edge(same)["a", "one"].reason == "First", "of equals the first stays"


BAD = {"healthy": "False", "reason": "Bad"}


@pytest.mark.parametrize(
    ("details", "destinations", "complete"),
    [
        ([BAD, {}], 10, True),
        # Those that are not well fill the list, so there may be more of them.
        ([BAD, BAD], 10, False),
        ([BAD, BAD], 2, True),
        ([], 0, True),
        ([], 3, False),
    ],
)
def test_who_is_not_named_is_well_only_if_there_was_room_to_name_it(
    details: list[dict[str, Any]], destinations: int, complete: bool
) -> None:
    found = stage(
        *(detail("a", f"e{n}", **each) for n, each in enumerate(details)), destinations=destinations
    )
    assert found.complete is complete
    edges = EdgeIndex()
    edges.put_sync_target(sync_target("a", "unnamed"))
    number = edges.number_of(("a", "unnamed"))
    assert number is not None
    assert STATES[states_at([found], edges)[number]] == ("healthy" if complete else "unknown")


def test_an_edge_that_is_named_and_unknown_here_is_left_out() -> None:
    edges = EdgeIndex()
    states = states_at([stage(detail("a", "stranger", **BAD))], edges)
    assert set(states) == {STATES.index("healthy")}


def test_a_summary_of_which_little_is_written_says_little() -> None:
    found = stage_of({"details": [{}], "destinations": "3", "object": None})
    assert (found.wanted, found.delivered, found.reported, found.healthy) == (0, 0, 0, 0)
    assert found.object == {}
    [fared] = found.fared
    assert (fared.edge, STATES[fared.state], fared.healthy) == (("", ""), "progressing", "Unknown")
