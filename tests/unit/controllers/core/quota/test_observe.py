"""Of an object only what counting needs is kept, and nothing that it would count is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.controllers.core.quota.observe import _credits, pared
from skerry.logic.machinery import quota as rules
from skerry.logic.machinery.quantity import Quantity

NOW = datetime(2024, 1, 1, tzinfo=UTC)
PODS = GroupResource("", "pods")


def pod(**spec: Any) -> Object:
    container = {
        "name": "c",
        "image": "nginx",
        "env": [{"name": "A", "value": "x" * 100}],
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    }
    return {
        "metadata": {"name": "p", "namespace": "n", "managedFields": [{}], "labels": {"a": "b"}},
        "spec": {"containers": [container], "volumes": [{}], **spec},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{}]},
    }


@pytest.mark.parametrize(
    "made",
    [
        pod(),
        pod(priorityClassName="high"),
        pod(activeDeadlineSeconds=5),
        pod(overhead={"cpu": "2"}),
        pod(initContainers=[{"name": "i", "resources": {"requests": {"cpu": "9"}}}]),
        pod(initContainers=[{"name": "i", "restartPolicy": "Always",
                             "resources": {"requests": {"cpu": "9"}}}]),
        {**pod(), "status": {"phase": "Succeeded"}},
        {**pod(), "status": {}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("scopes", [None, ["Terminating"], ["BestEffort"], ["NotTerminating"]])
def test_a_pod_is_counted_the_same_before_and_after(made: Object, scopes: list[str] | None) -> None:
    hard = {"pods": "9", "requests.cpu": "9", "limits.memory": "9Gi", "count/pods": "9"}
    quota = {"metadata": {"name": "q"}, "spec": {"hard": hard, **({"scopes": scopes} if scopes
                                                                else {})}}  # fmt: skip
    before, after = (
        rules.used_by(quota, (rules.Counted(PODS, each),), NOW) for each in (made, pared(made))
    )
    assert before == after


def test_most_of_a_pod_is_let_go() -> None:
    kept = pared(pod())
    assert "managedFields" not in kept["metadata"]
    assert set(kept["spec"]) == {"containers"}
    assert set(kept["spec"]["containers"][0]) == {"name", "resources"}
    assert kept["status"] == {"phase": "Running"}


def test_other_objects_lose_only_who_wrote_which_field() -> None:
    obj: Object = {"metadata": {"name": "s", "managedFields": [{}]}, "spec": {"type": "NodePort"}}
    assert pared(obj) == {"metadata": {"name": "s"}, "spec": {"type": "NodePort"}}
    assert "managedFields" in obj["metadata"]


@pytest.mark.parametrize(
    ("reported", "used", "less"),
    [({}, "1", False), ({"pods": "1"}, "1", False), ({"pods": "2"}, "1", True),
     ({"pods": "1"}, "2", False), ({"other": "5"}, "1", False)],
)  # fmt: skip
def test_only_less_than_was_charged_needs_evidence(
    reported: dict[str, str], used: str, less: bool
) -> None:
    assert _credits({"status": {"used": reported}}, {"pods": Quantity.parse(used)}) is less
