"""What a pod asks for: running, starting, and what scoring makes up for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.cache.resources import (
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    amounts,
    is_extended,
    is_scalar,
    pod_nonzero_requests,
    pod_requests,
)

CPUS = st.lists(st.integers(0, 8), max_size=4)


def container(cpu: int | None = None, **more: Any) -> dict[str, Any]:
    requests = {} if cpu is None else {"cpu": str(cpu)}
    return {"resources": {"requests": requests}, **more}


def test_cpu_counts_in_thousandths_and_everything_else_in_units_rounded_up() -> None:
    assert amounts({"cpu": "1500m", "memory": "1Ki", "x.io/gpu": 2}) == {
        "cpu": 1500,
        "memory": 1024,
        "x.io/gpu": 2,
    }
    assert amounts({"memory": "1500m"}) == {"memory": 2}
    assert amounts(None) == {}


@given(CPUS, CPUS, CPUS)
def test_a_pod_needs_what_runs_together_or_its_worst_moment_at_start_up(
    running: list[int], sidecars: list[int], starting: list[int]
) -> None:
    spec = {
        "containers": [container(cpu) for cpu in running],
        "initContainers": [
            *(container(cpu, restartPolicy="Always") for cpu in sidecars),
            *(container(cpu) for cpu in starting),
        ],
        "overhead": {"cpu": "1"},
    }
    together = sum(running) + sum(sidecars)
    worst = max((sum(sidecars) + cpu for cpu in starting), default=0)
    assert pod_requests(spec).get("cpu", 0) == 1000 * (max(together, worst) + 1)


def test_a_sidecar_that_starts_later_does_not_run_beside_who_started_before() -> None:
    spec = {"initContainers": [container(5), container(3, restartPolicy="Always")]}
    assert pod_requests(spec) == {"cpu": 5000}


def test_scoring_makes_up_what_is_missing_and_takes_zero_for_a_statement() -> None:
    assert pod_nonzero_requests({"containers": [container()]}) == {
        "cpu": DEFAULT_MILLI_CPU,
        "memory": DEFAULT_MEMORY,
    }
    assert pod_nonzero_requests({"containers": [container(0)]})["cpu"] == 0
    assert pod_requests({"containers": [container()]}) == {}


@pytest.mark.parametrize(
    ("resource", "extended", "scalar"),
    [
        ("cpu", False, False),
        ("example.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("kubernetes.io/batch", False, True),
        ("requests.example.com/gpu", False, False),
        ("attachable-volumes-aws-ebs", False, True),
        ("x/" + "y" * 400, False, False),
    ],
)
def test_resources_of_others_count_in_units_of_their_own(
    resource: str, extended: bool, scalar: bool
) -> None:
    assert is_extended(resource) is extended
    assert is_scalar(resource) is scalar
