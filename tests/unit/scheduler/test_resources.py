"""What pods ask for, as metrics: one sample for each pod, resource and kind."""

from __future__ import annotations

from typing import Any

from skerry.scheduler.cache.pod import PodReader
from skerry.scheduler.resources import resource_metrics
from tests.kit.scheduler.fixtures import pod


def samples(**spec: Any) -> dict[tuple[str, str, str], float]:
    """Return what the page says: kind, resource and unit to value."""
    limits = spec.pop("limits", None)
    made = pod("p", nodeName="n", priority=7, **spec)
    if limits:
        made["spec"]["containers"][0]["resources"]["limits"] = limits
    found = {}
    for line in resource_metrics([PodReader().read(made)]).decode().splitlines():
        if not line.startswith("#"):
            head, value = line.rsplit(" ", 1)
            labels = dict(part.split("=") for part in head.partition("{")[2][:-1].split(","))
            assert labels["node"] == '"n"'
            assert labels["priority"] == '"7"'
            kind = head.partition("{")[0].rpartition("_")[2]
            key = (kind, labels["resource"].strip('"'), labels["unit"].strip('"'))
            found[key] = float(value)
    return found


def test_cores_are_whole_and_bytes_are_bytes() -> None:
    assert samples(requests={"cpu": "250m", "memory": "1Ki"}) == {
        ("request", "cpu", "cores"): 0.25,
        ("request", "memory", "bytes"): 1024,
    }


def test_limits_are_shown_beside_requests_and_zero_is_not() -> None:
    found = samples(
        requests={"cpu": "0", "a.com/gpu": "2"}, limits={"a.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    )
    assert found == {
        ("request", "a.com/gpu", "integer"): 2,
        ("limit", "a.com/gpu", "integer"): 2,
        ("limit", "hugepages-2Mi", "bytes"): 4 * 1024 * 1024,
    }


def test_nobody_asks_for_anything() -> None:
    lines = resource_metrics([]).decode().splitlines()
    assert lines
    assert all(line.startswith("#") for line in lines)
