"""How a placement fares: as its row, its summaries and their details say."""

from __future__ import annotations

import pytest

from skerry.logic.fleet.console.edges import STATES, EdgeIndex
from skerry.logic.fleet.console.placements import (
    PlacementIndex,
    placement_state,
    stage_of,
    states_at,
)
from skerry.logic.fleet.overview.rows import PlacementRow, Status
from tests.kit.chain.console_objects import detail, summary, sync_target


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
