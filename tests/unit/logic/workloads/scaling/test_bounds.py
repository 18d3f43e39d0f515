"""How far and how fast: windows, policies, and what is said of both."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.workloads.scaling.bounds import Bounded, History, Noted, bounded

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ago(number: int, seconds: int) -> Noted:
    return Noted(number, NOW - timedelta(seconds=seconds))


def spec(least: int = 1, limit: int = 100, **more: Any) -> Any:
    return {"minReplicas": least, "maxReplicas": limit, **more}


def rules(*policies: tuple[str, int, int], window: int = 0, select: str = "Max") -> Any:
    named = ("type", "value", "periodSeconds")
    listed = [dict(zip(named, each, strict=True)) for each in policies]
    return {"stabilizationWindowSeconds": window, "selectPolicy": select, "policies": listed}


def reasons(found: Bounded) -> tuple[int, str, str, bool]:
    return found.replicas, found.able[0], found.limited[0], found.is_limited


@pytest.mark.parametrize(
    ("current", "wanted", "expected"),
    [
        (3, 5, (5, "ReadyForNewScale", "DesiredWithinRange", False)),
        (1, 9, (4, "ReadyForNewScale", "ScaleUpLimit", True)),
        (5, 40, (10, "ReadyForNewScale", "ScaleUpLimit", True)),
        (60, 110, (100, "ReadyForNewScale", "TooManyReplicas", True)),
        (5, 1, (2, "ReadyForNewScale", "TooFewReplicas", True)),
    ],
)
def test_without_rules_growth_doubles_and_bounds_hold(
    current: int, wanted: int, expected: object
) -> None:
    assert reasons(bounded(spec(least=2), current, wanted, History(), NOW)) == expected


def test_a_higher_recommendation_of_the_last_five_minutes_holds() -> None:
    history = History((ago(8, 299), ago(20, 301)))
    found = bounded(spec(), 10, 3, history, NOW)
    assert reasons(found) == (8, "ScaleDownStabilized", "DesiredWithinRange", False)
    assert [each.number for each in found.history.recommended] == [8, 3], "the old one is gone"


def test_windows_of_both_directions_hold() -> None:
    behavior = {
        "scaleUp": rules(("Pods", 100, 60), window=60),
        "scaleDown": rules(("Pods", 100, 60), window=120),
    }
    history = History((ago(6, 30), ago(9, 90)))
    up = bounded(spec(behavior=behavior), 5, 20, history, NOW)
    assert reasons(up) == (6, "ScaleUpStabilized", "DesiredWithinRange", False)
    down = bounded(spec(behavior=behavior), 12, 2, history, NOW)
    assert reasons(down) == (9, "ScaleDownStabilized", "DesiredWithinRange", False)


def test_policies_count_what_was_done_in_their_period() -> None:
    behavior = {
        "scaleUp": rules(("Pods", 4, 60), ("Percent", 50, 60)),
        "scaleDown": rules(("Percent", 50, 60), ("Pods", 1, 60), select="Min"),
    }
    fresh = bounded(spec(behavior=behavior), 10, 50, History(), NOW)
    assert reasons(fresh) == (15, "ReadyForNewScale", "ScaleUpLimit", True)
    after = bounded(spec(behavior=behavior), 10, 50, History(grown=(ago(4, 30),)), NOW)
    assert after.replicas == 10, "four were added already"
    down = bounded(spec(behavior=behavior), 10, 1, History(), NOW)
    assert reasons(down) == (9, "ReadyForNewScale", "ScaleDownLimit", True)


def test_a_direction_that_is_disabled_is_not_taken() -> None:
    behavior = {"scaleUp": rules(("Pods", 4, 60)), "scaleDown": rules(select="Disabled")}
    assert bounded(spec(behavior=behavior), 10, 1, History(), NOW).replicas == 10


def test_history_holds_no_more_than_rules_look_back_to() -> None:
    behavior = {"scaleUp": rules(("Pods", 4, 60)), "scaleDown": rules(("Pods", 4, 30))}
    history = History(grown=(ago(1, 61), ago(2, 59)), shrunk=(ago(3, 31),))
    after = history.scaled(5, 9, NOW, behavior)
    assert [each.number for each in after.grown] == [2, 4]
    assert after.shrunk == ()


@given(
    st.integers(1, 50),
    st.integers(0, 100),
    st.integers(1, 5),
    st.integers(5, 60),
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 600)), max_size=5),
)
def test_a_size_is_between_the_present_one_or_a_bound_and_what_was_ever_wanted(
    current: int, wanted: int, least: int, limit: int, past: list[tuple[int, int]]
) -> None:
    current = min(max(current, least), limit)
    history = History(tuple(ago(*each) for each in past))
    found = bounded(spec(least, limit), current, wanted, history, NOW)
    assert least <= found.replicas <= limit
    again = bounded(spec(least, limit), current, wanted, found.history, NOW)
    assert again.replicas == found.replicas, "to look twice changes nothing"
