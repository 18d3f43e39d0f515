"""How many pods measurements ask for, as kube-controller-manager has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.logic.workloads.scaling.usage import (
    Sample,
    Unusable,
    by_average,
    by_share,
    by_total,
    by_utilization,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = rfc3339(NOW - timedelta(hours=1))


def pod(name: str, *, phase: str = "Running", ready: bool = True, request: str = "1") -> Object:
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": LONG_AGO}
    container: Any = {"name": "c", "resources": {"requests": {"cpu": request}}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container]},
        "status": {"phase": phase, "startTime": LONG_AGO, "conditions": [condition]},
    }


def pods(count: int, **more: Any) -> list[Object]:
    return [pod(f"p{number}", **more) for number in range(count)]


def samples(*amounts: int) -> dict[str, Sample]:
    return {f"p{number}": Sample(amount, NOW) for number, amount in enumerate(amounts)}


def utilized(current: int, target: int, found: list[Object], amounts: dict[str, Sample]) -> int:
    return by_utilization(current, target, "cpu", "", found, amounts, NOW).replicas


def test_the_ratio_of_use_to_target_gives_the_size() -> None:
    usage = by_utilization(3, 30, "cpu", "", pods(3), samples(300, 500, 700), NOW)
    assert usage == (5, 500, 50)
    assert utilized(5, 50, pods(5), samples(100, 300, 500, 250, 250)) == 3


def test_what_is_near_enough_changes_nothing() -> None:
    found = pods(3, request="0.9")
    assert utilized(3, 100, found, samples(1000, 1000, 1000)) == 4
    assert utilized(3, 100, pods(3), samples(1010, 1030, 1020)) == 3


def test_unready_pods_count_as_idle_on_the_way_up() -> None:
    found = [*pods(2), pod("p2", ready=False)]
    found[2]["status"]["startTime"] = rfc3339(NOW)
    assert utilized(3, 30, found, samples(500, 900, 700)) == 5
    assert utilized(3, 30, found, samples(300, 500, 700)) == 3, "that would be the other way"


def test_pods_without_measurement_count_as_full_on_the_way_down_and_idle_on_the_way_up() -> None:
    assert utilized(5, 50, pods(5), samples(100, 300, 500)) == 5
    found = pods(3)
    assert utilized(3, 30, found, {"p0": Sample(1000, NOW), "p1": Sample(1000, NOW)}) == 7


def test_failed_and_terminating_pods_do_not_count() -> None:
    gone = pod("p2")
    gone["metadata"]["deletionTimestamp"] = LONG_AGO
    found = [*pods(2), gone, pod("p3", phase="Failed")]
    assert utilized(2, 50, found, samples(500, 700, 900, 900)) == 3


def test_what_nothing_can_be_said_of_is_an_error_in_kubernetes_words() -> None:
    with pytest.raises(Unusable, match="no pods returned by selector"):
        utilized(2, 50, [], samples(1))
    with pytest.raises(Unusable, match="did not receive metrics for targeted pods"):
        utilized(2, 50, pods(2), {})
    bare = pods(1)
    bare[0]["spec"]["containers"][0]["resources"] = {}
    with pytest.raises(Unusable, match="missing request for cpu in container c of Pod p0"):
        utilized(1, 50, bare, samples(10))


def test_an_average_and_one_amount_for_all_give_the_size_too() -> None:
    assert by_average(3, 15000, pods(3), samples(20000, 10000, 30000), NOW) == (4, 20000, None)
    assert by_total(3, 15000, 20000, pods(3)).replicas == 4
    assert by_total(0, 15000, 20000, []).replicas == 2
    assert by_total(3, 10000, 10500, pods(3)).replicas == 3
    assert by_share(3, 10000, 60000) == (6, 20000, None)
    assert by_share(3, 10000, 31000).replicas == 3
    with pytest.raises(Unusable, match="unable to calculate ready pods: no pods returned"):
        by_total(3, 15000, 20000, [])


@given(
    st.integers(1, 20),
    st.integers(1, 200),
    st.lists(st.integers(0, 5000), min_size=1, max_size=20),
    st.integers(0, 19),
)
def test_what_is_not_known_never_turns_the_direction_round(
    current: int, target: int, amounts: list[int], missing: int
) -> None:
    found = pods(len(amounts) + missing)
    known = utilized(current, target, pods(len(amounts)), samples(*amounts))
    ratio = sum(amounts) * 100 // (1000 * len(amounts)) / target
    wanted = utilized(current, target, found, samples(*amounts))
    if missing and ratio > 1:
        assert wanted >= current or wanted == known
    if missing and ratio < 1:
        assert wanted <= max(current, known)
