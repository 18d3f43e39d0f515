"""When a node counts as silent, what it is tainted with, and how long pods stay."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.objects import Object
from skerry.kit.timestamps import rfc3339
from skerry.logic.workloads.node_lifecycle import (
    NOT_READY,
    UNREACHABLE,
    UNSCHEDULABLE,
    Heard,
    heard,
    lapsed_conditions,
    not_ready_condition,
    seconds_left,
    seconds_to_stay,
    wanted_taints,
)
from tests.kit.workload_objects import NOW


def node(ready: str | None = "True", *, posted: datetime = NOW, **more: str) -> Object:
    conditions = [{"type": kind, "status": status} for kind, status in more.items()]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready, "lastHeartbeatTime": rfc3339(posted)})
    metadata = {"name": "n", "creationTimestamp": rfc3339(NOW - timedelta(seconds=50))}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": conditions}}


def lease(renewed: datetime) -> Object:
    return {"spec": {"renewTime": rfc3339(renewed)}}


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_renewed_lease_or_a_posted_status_is_heard_at_our_own_time() -> None:
    # The node's clock is an hour behind; nobody minds.
    old = NOW - timedelta(hours=1)
    first = heard(None, node(posted=old), lease(old), NOW)
    assert first.at == NOW
    assert heard(first, node(posted=old), lease(old), NOW + seconds(30)) == first
    assert heard(first, node(posted=old), lease(old + seconds(1)), NOW + seconds(30)).at > NOW
    assert heard(first, node(posted=old + seconds(1)), lease(old), NOW + seconds(30)).at > NOW


def test_a_lease_that_goes_back_in_time_is_not_news() -> None:
    first = heard(None, node(), lease(NOW), NOW)
    assert heard(first, node(), lease(NOW - seconds(5)), NOW + seconds(30)) == first


def test_a_node_that_never_said_anything_is_given_longer_from_its_creation_on() -> None:
    silent = node(None)
    last = heard(None, silent, None, NOW)
    assert seconds_left(silent, last, NOW) == 10
    spoken = node()
    assert seconds_left(spoken, heard(None, spoken, None, NOW), NOW) == 40


def test_what_a_silent_node_posted_becomes_unknown_and_the_rest_stays() -> None:
    found = lapsed_conditions(node(MemoryPressure="False", NetworkUnavailable="False"), NOW)
    assert {each["type"]: (each["status"], each.get("reason")) for each in found} == {
        "MemoryPressure": ("Unknown", "NodeStatusUnknown"),
        "NetworkUnavailable": ("False", None),
        "Ready": ("Unknown", "NodeStatusUnknown"),
        "DiskPressure": ("Unknown", "NodeStatusNeverUpdated"),
        "PIDPressure": ("Unknown", "NodeStatusNeverUpdated"),
    }
    again = {**node(), "status": {"conditions": found}}
    assert lapsed_conditions(again, NOW + seconds(99)) == found, "said once, it is said"


def marks(taints: list[Object]) -> set[tuple[str, str]]:
    return {(each["key"], each["effect"]) for each in taints}


@pytest.mark.parametrize(
    ("found", "disrupted", "wanted"),
    [
        (node(), False, set()),
        (node("False"), False, {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}),
        (node("Unknown"), False, {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}),
        (node("Unknown"), True, {(UNREACHABLE, "NoSchedule")}),
        (node(PIDPressure="True"), False, {("node.kubernetes.io/pid-pressure", "NoSchedule")}),
        (node(PIDPressure="Unknown"), False, set()),
    ],
)
def test_conditions_become_taints_and_nobody_is_evicted_while_no_node_is_ready(
    found: Object, disrupted: bool, wanted: set[tuple[str, str]]
) -> None:
    assert marks(wanted_taints(found, NOW, disrupted=disrupted)) == wanted


def test_taints_of_others_stay_and_ours_keep_their_time() -> None:
    other = {"key": "mine", "effect": "NoExecute", "value": "x"}
    found = node("False")
    found["spec"] = {"taints": [other], "unschedulable": True}
    first = wanted_taints(found, NOW, disrupted=False)
    assert (UNSCHEDULABLE, "NoSchedule") in marks(first)
    found["spec"]["taints"] = first
    assert wanted_taints(found, NOW + seconds(50), disrupted=False) == first
    ready = {**node(), "spec": {"taints": first}}
    assert wanted_taints(ready, NOW, disrupted=False) == [other]


def pod(*tolerations: dict[str, Any]) -> Object:
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"tolerations": [*tolerations]}}


def toleration(key: str, limit: int | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if limit is None else {**found, "tolerationSeconds": limit}


def taint(key: str, added: datetime | None = NOW) -> Object:
    found = {"key": key, "effect": "NoExecute"}
    return found if added is None else {**found, "timeAdded": rfc3339(added)}


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [
        ([], 0.0),
        ([toleration("b", 9)], 0.0),
        ([toleration("a")], None),
        ([toleration("a", 100)], 40.0),
        ([toleration("a", 100), toleration("a", 70)], 10.0),
        ([toleration("a", 30)], 0.0),
        ([toleration("a", -1)], 0.0),
    ],
)
def test_a_pod_stays_as_long_as_it_tolerates(
    tolerations: list[dict[str, Any]], stays: float | None
) -> None:
    later = NOW + seconds(60)
    assert seconds_to_stay([taint("a")], pod(*tolerations), NOW, later) == stays


def test_one_taint_that_is_not_tolerated_is_enough_and_other_effects_do_not_count() -> None:
    tolerant = pod(toleration("a"))
    assert seconds_to_stay([taint("a"), taint("b")], tolerant, NOW, NOW) == 0.0
    assert seconds_to_stay([{"key": "b", "effect": "NoSchedule"}], tolerant, NOW, NOW) is None
    assert seconds_to_stay([], pod(), NOW, NOW) is None


@given(st.integers(0, 600), st.integers(0, 600))
def test_a_pod_is_never_asked_to_go_before_its_time(limit: int, passed: int) -> None:
    stays = seconds_to_stay(
        [taint("a", None)], pod(toleration("a", limit)), NOW, NOW + seconds(passed)
    )
    assert stays == max(0, limit - passed)


def test_a_pod_is_not_ready_while_its_node_is_not() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "x"}
    started = {"type": "ContainersReady", "status": "True"}
    found = pod()
    found["status"] = {"conditions": [started, ready]}
    changed = not_ready_condition(found, NOW)
    assert changed is not None
    assert changed[0] == started
    assert (changed[1]["status"], changed[1]["reason"]) == ("False", "NodeNotReady")
    found["status"] = {"conditions": changed}
    assert not_ready_condition(found, NOW) is None
    assert not_ready_condition(pod(), NOW) is None


def test_heard_compares_what_was_said_and_nothing_else() -> None:
    assert heard(Heard(NOW, "a", "b"), node(None), None, NOW + seconds(1)).at == NOW + seconds(1)
