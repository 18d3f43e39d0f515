"""What a refusal changes in a pod's status: only what is not said already."""

from __future__ import annotations

from typing import Any, cast

from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.cache.pod import PodInfo
from skerry.scheduler.framework.status import unschedulable
from skerry.scheduler.outcome import Refused, pod_status_change
from tests.kit.scheduler.fixtures import pod

NOW, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


def info(**status: Any) -> PodInfo:
    return Cluster().reader.read(pod("p", status=status))


def refused(nominated: str | None = None, message: str = "no room") -> Refused:
    nobody = cast(Any, None)
    return Refused(nobody, nobody, unschedulable(message), message, 0.0, nominated=nominated)


def condition(**more: str) -> dict[str, str]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastTransitionTime": BEFORE,
        **more,
    }


def test_a_first_refusal_is_written_with_its_time() -> None:
    found = pod_status_change(info(), "Unschedulable", refused(), NOW)
    assert found == {"conditions": [condition(lastTransitionTime=NOW)]}


def test_what_is_said_already_is_not_written_again() -> None:
    said = info(conditions=[condition()])
    assert pod_status_change(said, "Unschedulable", refused(), NOW) == {}


def test_another_message_keeps_the_time_of_the_status() -> None:
    said = info(conditions=[condition(message="other")])
    [found] = pod_status_change(said, "Unschedulable", refused(), NOW)["conditions"]
    assert (found["message"], found["lastTransitionTime"]) == ("no room", BEFORE)


def test_a_nomination_is_written_withdrawn_or_left_alone() -> None:
    said = info(conditions=[condition()], nominatedNodeName="a")
    assert pod_status_change(said, "Unschedulable", refused("b"), NOW) == {"nominatedNodeName": "b"}
    assert pod_status_change(said, "Unschedulable", refused(""), NOW) == {"nominatedNodeName": None}
    assert pod_status_change(said, "Unschedulable", refused("a"), NOW) == {}
    assert pod_status_change(said, "Unschedulable", refused(None), NOW) == {}
