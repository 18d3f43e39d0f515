"""Numbers by which tools judge workloads."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.logic.fleet.summary.aggregate_numbers import COUNTING, Counts, Extent, count

NOTHING = Extent({}, {}, {})


def counts(kind: str, spec: dict[str, Any], **numbers: int) -> Counts:
    return COUNTING["apps", kind](spec, Extent(numbers, numbers, numbers), False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3), (-1, 0), (2.9, 2), (2**40, 2**31 - 1), (True, 7), ("3", 7), (None, 7)],
)
def test_a_count_is_whole_and_bounded(value: object, expected: int) -> None:
    assert count({"n": value}, "n", 7) == expected


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_where_all_are_healthy_the_numbers_are_those_of_the_source(kind: str) -> None:
    numbers = {"replicas": 9, "readyReplicas": 9}
    found = COUNTING["apps", kind]({"replicas": 4}, Extent(numbers, numbers, numbers), True)
    assert set(found.fields.values()) == {4}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"])
def test_what_nobody_reports_is_nothing_and_shows_where_something_is_wanted(kind: str) -> None:
    found = COUNTING["apps", kind]({"replicas": 2}, NOTHING, False)
    assert found.fields.get("replicas", 0) == 0
    # How many nodes there should be is not known then.
    assert found.shown is (kind != "DaemonSet")


def test_old_replicas_of_a_deployment_show_in_their_number() -> None:
    all_new = {"updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    found = counts("Deployment", {"replicas": 2}, replicas=3, **all_new)
    assert found.fields["replicas"] == 3
    assert found.shown
    assert not counts("Deployment", {"replicas": 2}, replicas=2, **all_new).shown


@pytest.mark.parametrize(
    ("strategy", "shown"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, True),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, False),
        ({"type": "RollingUpdate"}, False),
        ({"type": "OnDelete"}, False),
    ],
)
def test_what_tools_see_of_a_stateful_set_depends_on_its_strategy(
    strategy: dict[str, Any], shown: bool
) -> None:
    spec = {"replicas": 2, "updateStrategy": strategy}
    numbers = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 1}
    assert counts("StatefulSet", spec, **numbers).shown is shown


def test_nodes_that_are_not_updated_by_themselves_are_not_counted_by_tools() -> None:
    numbers = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 1}
    found = counts("DaemonSet", {}, **numbers)
    assert (found.shown, found.fields["numberUnavailable"]) == (True, 1)
    assert not counts("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, **numbers).shown
