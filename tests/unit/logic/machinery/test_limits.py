"""LimitRanges: defaults they give, and objects they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.logic.machinery.limits import apply_defaults, violations

_RATIO = "cpu max limit to request ratio per Container is 2, "


def limit_range(kind: str = "Container", **item: Any) -> Object:
    return {"spec": {"limits": [{"type": kind, **item}]}}


def pod(*resources: Object) -> Object:
    containers = [{"name": f"c{i}", "resources": each} for i, each in enumerate(resources)]
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}


def test_defaults_fill_what_a_container_does_not_say() -> None:
    it = pod({"limits": {"cpu": "2"}}, {})
    ranges = [limit_range(default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "100m"})]
    apply_defaults(it, ranges)
    said, silent = (container["resources"] for container in it["spec"]["containers"])
    assert said == {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
    assert silent == {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}


@pytest.mark.parametrize(
    ("item", "resources", "message"),
    [
        (
            {"min": {"cpu": "1"}},
            {},
            "minimum cpu usage per Container is 1.  No request is specified",
        ),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "900m"}},
            "minimum cpu usage per Container is 1, but limit is 900m",
        ),
        (
            {"max": {"memory": "1Gi"}},
            {},
            "maximum memory usage per Container is 1Gi.  No limit is specified",
        ),
        (
            {"max": {"memory": "1Gi"}},
            {"limits": {"memory": "2Gi"}},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"max": {"memory": "1Gi"}},
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}},
            "maximum memory usage per Container is 1Gi, but request is 2Gi",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "1"}},
            _RATIO + "but no request is specified or request is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            _RATIO + "but no limit is specified or limit is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
    ],
)
def test_a_container_out_of_range_is_refused_in_kubernetes_words(
    item: Object, resources: Object, message: str
) -> None:
    assert violations(pod(resources), [limit_range(**item)]) == [message]


def test_a_container_at_the_bounds_is_within_them() -> None:
    inside = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    bounds = limit_range(min={"cpu": "1"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "2"})
    assert violations(pod(inside), [bounds]) == []


def test_a_pods_limit_counts_all_its_containers_together() -> None:
    half = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    ranges = [limit_range("Pod", max={"cpu": "1500m"})]
    assert violations(pod(half), ranges) == []
    (found,) = violations(pod(half, half), ranges)
    assert found.startswith("maximum cpu usage per Pod is 1500m, but limit is 2")


def test_a_claim_is_judged_by_what_it_requests() -> None:
    claim = {
        "kind": "PersistentVolumeClaim",
        "spec": {"resources": {"requests": {"storage": "5Gi"}}},
    }
    ranges = [
        limit_range("PersistentVolumeClaim", max={"storage": "2Gi"}),
        limit_range(max={"cpu": "1"}),
    ]
    assert violations(claim, ranges) == [
        "maximum storage usage per PersistentVolumeClaim is 2Gi, but limit is 5Gi"
    ]
