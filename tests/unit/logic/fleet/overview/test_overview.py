"""Rows kept up one object at a time, the worst first."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.api.refs import CLUSTER_ANNOTATION
from skerry.logic.fleet.overview.overview import Overview


def named(name: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {CLUSTER_ANNOTATION: "c1"}}
    return {"metadata": metadata, "status": status}


def target(name: str, ready: str = "True", held: int = 0, unhealthy: int = 0) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    if held:
        conditions.append({"type": "Held", "status": "True"})
    objects = {"wanted": 9, "applied": 9, "unhealthy": unhealthy, "held": held}
    return named(
        name,
        conditions=conditions,
        objects=objects,
        lastSyncerHeartbeatTime="2026-03-01T12:00:00Z",
    )


def placed(name: str, ready: str, unhealthy: int = 0) -> dict[str, Any]:
    return named(
        name, conditions=[{"type": "Ready", "status": ready}], unhealthyDestinations=unhealthy
    )


def test_the_worst_edges_come_first_and_equals_by_name() -> None:
    overview = Overview()
    for obj in (
        target("b"),
        target("a"),
        target("sick", unhealthy=1),
        target("sicker", unhealthy=3),
        target("held", held=60),
        target("lost", ready="False"),
    ):
        overview.put_edge(obj)
    found = overview.edges()
    assert [row.name for row in found.rows] == ["lost", "held", "sicker", "sick", "a", "b"]
    assert found.omitted == 0
    shown = overview.edges(2)
    assert [row.name for row in shown.rows] == ["lost", "held"]
    assert shown.omitted == 4
    assert overview.counts().edges == {"Lost": 1, "Held": 1, "Unhealthy": 2, "Ready": 2}


def test_problems_alone_leave_out_what_is_well() -> None:
    overview = Overview()
    overview.put_edge(target("well"))
    overview.put_placement(placed("fine", "True"))
    assert not overview.has_problem()
    overview.put_placement(placed("broken", "False"))
    assert overview.has_problem()
    assert overview.edges(problems=True).rows == []
    assert [row.name for row in overview.placements(problems=True).rows] == ["broken"]


def test_placements_are_counted_by_readiness() -> None:
    overview = Overview()
    for number, ready in enumerate(("True", "False", "False", "Unknown")):
        overview.put_placement(placed(f"p{number}", ready))
    counts = overview.counts()
    assert (counts.ready, counts.not_ready, counts.not_judged) == (1, 2, 1)


def test_workspaces_of_rows_are_known_until_the_last_row_goes() -> None:
    overview = Overview()
    overview.put_edge(target("a"))
    assert overview.clusters() == {"c1"}
    overview.drop_edge(target("a"))
    overview.drop_edge(target("never there"))
    assert overview.clusters() == set()


edges = st.builds(
    target,
    st.sampled_from("abcdefgh"),
    st.sampled_from(["True", "False"]),
    st.integers(0, 2),
    st.integers(0, 2),
)


@given(st.lists(st.tuples(st.booleans(), edges), max_size=30), st.integers(0, 8))
def test_rows_kept_up_equal_rows_read_at_once(
    changes: list[tuple[bool, dict[str, Any]]], limit: int
) -> None:
    kept, last = Overview(), dict[str, dict[str, Any]]()
    for there, obj in changes:
        (kept.put_edge if there else kept.drop_edge)(obj)
        last.pop(obj["metadata"]["name"], None)
        if there:
            last[obj["metadata"]["name"]] = obj
    fresh = Overview()
    for obj in last.values():
        fresh.put_edge(obj)
    assert kept.counts() == fresh.counts()
    whole = [*fresh.edges().rows]
    part = kept.edges(limit)
    assert [*part.rows] == (whole[:limit] if limit else whole)
    assert part.omitted == len(whole) - len(part.rows)


def test_an_edge_of_the_same_name_in_another_workspace_is_another_edge() -> None:
    overview = Overview()
    here, there = target("a"), target("a", ready="False")
    there["metadata"]["annotations"][CLUSTER_ANNOTATION] = "c2"
    overview.put_edge(here)
    overview.put_edge(there)
    assert [(row.cluster, row.state) for row in overview.edges().rows] == [
        ("c2", "Lost"), ("c1", "Ready"),
    ]  # fmt: skip
    assert overview.clusters() == {"c1", "c2"}
    overview.drop_edge(there)
    assert overview.clusters() == {"c1"}


def test_an_edge_and_a_placement_of_one_name_do_not_meet() -> None:
    overview = Overview()
    overview.put_edge(target("web"))
    overview.put_placement(placed("web", "True"))
    overview.drop_placement(placed("web", "True"))
    overview.drop_placement(placed("never", "True"))
    assert len(overview.edges().rows) == 1
    assert overview.placements().rows == []


def test_a_row_is_replaced_and_not_kept_beside_the_new_one() -> None:
    overview = Overview()
    for ready in ("False", "Unknown", "True"):
        overview.put_placement(placed("web", ready))
    assert [row.ready for row in overview.placements().rows] == ["True"]
    assert not overview.has_problem()


placements = st.builds(
    placed,
    st.sampled_from("abcdef"),
    st.sampled_from(["True", "False", "Unknown"]),
    st.integers(0, 2),
)


@given(st.lists(placements, max_size=12), st.integers(1, 8), st.booleans())
def test_a_part_is_the_beginning_of_the_whole_and_says_how_much_it_leaves_out(
    objects: list[dict[str, Any]], limit: int, problems: bool
) -> None:
    overview = Overview()
    for obj in objects:
        overview.put_placement(obj)
    whole = overview.placements(problems=problems)
    part = overview.placements(limit, problems=problems)
    assert whole.omitted == 0
    assert [*part.rows] == [*whole.rows][:limit]
    assert part.omitted + len(part.rows) == len(whole.rows)
    if problems:
        assert all(row.is_problem for row in whole.rows)
    assert overview.has_problem() == any(row.is_problem for row in overview.placements().rows)
    counts = overview.counts()
    assert counts.ready + counts.not_ready + counts.not_judged == len(overview.placements().rows)
