"""The one line that tells why something is not well."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import MAX_CAUSE_BYTES, NOT_ENFORCED
from skerry.logic.fleet.syncing.cause import (
    Cause,
    LogLine,
    Seen,
    find,
    inert,
    is_fine,
    last_line,
    lean_event,
    lean_pod,
)
from skerry.logic.fleet.syncing.present import present

Raw = dict[str, Any]


def container(state: Raw, *, name: str = "web", last: Raw | None = None, **members: Any) -> Raw:
    return {"name": name, "ready": False, "restartCount": 0, "state": state,
            "lastState": last or {}, **members}  # fmt: skip


def waiting(reason: str, message: str = "", **members: Any) -> Raw:
    return container({"waiting": {"reason": reason, "message": message}}, **members)


def ended(code: int, reason: str = "Error", run: str = "run-1", **members: Any) -> Raw:
    return {"terminated": {"exitCode": code, "reason": reason, "containerID": run, **members}}


def crashing(code: int = 1, run: str = "run-1", **members: Any) -> Raw:
    back_off = "back-off 40s restarting failed container=web pod=web-1_shop(u)"
    return waiting(
        "CrashLoopBackOff", back_off, last=ended(code, run=run, **members), restartCount=3
    )


def pod(*containers: Raw, name: str = "web-1", phase: str = "Pending", **status: Any) -> Raw:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    return lean_pod(
        {"metadata": metadata,
         "status": {"phase": phase, "containerStatuses": list(containers), **status}}
    )  # fmt: skip


def unscheduled(message: str, name: str = "web-1") -> Raw:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return pod(name=name, conditions=[{**condition, "message": message}])


def warning(reason: str, message: str, about: str = "uid-web-1", time: str = "1") -> Raw:
    return lean_event(
        {"metadata": {"name": "e", "namespace": "shop"}, "involvedObject": {"uid": about},
         "type": "Warning", "reason": reason, "message": message, "lastTimestamp": time}
    )  # fmt: skip


def about(*warnings: Raw) -> dict[str, list[Raw]]:
    found: dict[str, list[Raw]] = {}
    for each in warnings:
        found.setdefault(each["about"], []).append(each)
    return found


def text(*pods: Raw, **seen: Any) -> str:
    cause = find(Seen(pods, **seen)).cause
    return "" if cause is None else cause.text


PULL = 'rpc error: code = NotFound desc = failed to pull "nope:1": not found'
UNHEALTHY = warning("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
RUNNING = {"running": {"startedAt": "2030-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("found", "warnings", "wanted"),
    [
        (waiting("ImagePullBackOff", "no such image"), (), "ImagePullBackOff: no such image"),
        (waiting("ErrImagePull", PULL), (), f"ImagePullBackOff: {PULL}"),
        (waiting("InvalidImageName", "couldn't parse"), (), "InvalidImageName: couldn't parse"),
        (
            waiting("CreateContainerConfigError", 'configmap "settings" not found'),
            (),
            'CreateContainerConfigError: configmap "settings" not found',
        ),
        (
            crashing(2, message="no such table\n"),
            (),
            "CrashLoopBackOff: exit code 2: no such table",
        ),
        (container(ended(3)), (), "Error: exit code 3"),
        (container(ended(137, "OOMKilled"), restartCount=2), (), "OOMKilled: exit code 137"),
        (waiting("CrashLoopBackOff", last=ended(137, "OOMKilled")), (), "OOMKilled: exit code 137"),
        (waiting("ContainerCreating"), (), ""),
        (
            waiting("ContainerCreating"),
            (warning("FailedMount", 'secret "keys" not found'),),
            'FailedMount: secret "keys" not found',
        ),
        (container(RUNNING), (), ""),
        (
            container(RUNNING),
            (UNHEALTHY,),
            "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503",
        ),
        (
            crashing(137),
            (warning("Unhealthy", "Liveness probe failed: timeout"),),
            "CrashLoopBackOff: exit code 137: Liveness probe failed: timeout",
        ),
        (container(RUNNING, ready=True, last=ended(1), restartCount=1), (), ""),
        (container(RUNNING, last=ended(1), restartCount=1), (), "CrashLoopBackOff: exit code 1"),
        (container(ended(0, "Completed")), (), ""),
    ],
)
def test_a_container_names_what_keeps_it(
    found: Raw, warnings: tuple[Raw, ...], wanted: str
) -> None:
    assert text(pod(found), warnings=about(*warnings)) == wanted


def test_a_pod_says_that_no_node_takes_it_or_that_it_was_evicted() -> None:
    message = "0/3 nodes are available: 3 Insufficient cpu."
    assert text(unscheduled(message)) == f"Unschedulable: {message}"
    evicted = pod(phase="Failed", reason="Evicted", message="The node was low on memory.")
    assert text(evicted) == "Evicted: The node was low on memory."


def test_pods_that_go_or_are_done_say_nothing() -> None:
    going = pod(waiting("ImagePullBackOff", "x"))
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    done = pod(container(ended(1)), phase="Succeeded")
    assert text(going, done) == ""
    assert is_fine(going)
    assert is_fine(done)


def test_an_init_container_that_fails_is_reported_by_its_name() -> None:
    found = pod(waiting("PodInitializing"), initContainerStatuses=[crashing(1) | {"name": "setup"}])
    assert text(found) == "CrashLoopBackOff: container setup: exit code 1"


def test_an_evicted_pod_is_past_once_another_is_under_way() -> None:
    evicted = pod(phase="Failed", reason="Evicted", message="The node was low on memory.")
    assert text(evicted, pod(waiting("ContainerCreating"), name="web-2")) == ""
    assert text(evicted, unscheduled("full", "web-2")) == "Unschedulable: full"


def test_what_cannot_be_created_is_reported_where_no_pod_is_under_way() -> None:
    quota = 'Error creating: pods "web-5d6f-x2x9k" is forbidden: exceeded quota: compute'
    seen = {"warnings": about(warning("FailedCreate", quota, "rs")), "creators": ["uid", "rs"]}
    wanted = "FailedCreate: Error creating: pods is forbidden: exceeded quota: compute"
    assert text(**seen) == wanted
    assert text(pod(waiting("ImagePullBackOff", "x")), **seen) == "ImagePullBackOff: x"
    assert text(pod(waiting("ContainerCreating")), **seen) == ""


WORST_FIRST = [
    pod(waiting("ErrImagePull", "m")),
    pod(waiting("CreateContainerConfigError", "m")),
    pod(container(ended(137, "OOMKilled"))),
    pod(crashing()),
    unscheduled("m"),
    pod(container(RUNNING)),
    pod(phase="Failed", reason="Evicted"),
]


@given(st.lists(st.integers(0, len(WORST_FIRST) - 1), min_size=1), st.randoms())
def test_the_worst_is_reported_in_whatever_order_pods_come(chosen: list[int], random: Any) -> None:
    seen = {"warnings": about(UNHEALTHY)}
    pods = [WORST_FIRST[index] for index in chosen]
    shuffled = random.sample(pods, len(pods))
    assert text(*shuffled, **seen) == text(WORST_FIRST[min(chosen)], **seen)


def test_of_equals_the_one_that_is_reported_stays() -> None:
    one, other = unscheduled("a", "web-1"), unscheduled("b", "web-2")
    assert text(one, other) == "Unschedulable: a"
    assert text(one, other, reported="Unschedulable: b") == "Unschedulable: b"
    assert text(one, reported="Unschedulable: b") == "Unschedulable: a"


def test_a_failing_pull_is_reported_once_however_often_it_is_tried() -> None:
    reported = text(pod(waiting("ErrImagePull", PULL)))
    later = (
        'Back-off pulling image "nope:1"',
        f'Back-off pulling image "nope:1": ErrImagePull: {PULL}',
    )
    for message in later:
        assert text(pod(waiting("ImagePullBackOff", message)), reported=reported) == reported
    another = waiting("ImagePullBackOff", 'Back-off pulling image "other:1"')
    assert (
        text(pod(another), reported=reported)
        == 'ImagePullBackOff: Back-off pulling image "other:1"'
    )


def test_the_last_line_is_asked_for_once_per_run_and_what_is_reported_stays_until_then() -> None:
    first = find(Seen([pod(crashing(1, "run-1"))]))
    assert first.ask == LogLine("shop", "web-1", "web", True, "run-1")
    assert first.cause == Cause("CrashLoopBackOff", "exit code 1")
    lines = {first.ask: "panic: no route"}
    reported = text(pod(crashing(1, "run-1")), lines=lines)
    assert reported == "CrashLoopBackOff: exit code 1: panic: no route"
    again = find(Seen([pod(crashing(1, "run-2"))], lines=lines, reported=reported))
    assert again.cause is not None
    assert again.cause.text == reported
    assert again.ask is not None
    assert again.ask.run == "run-2"
    assert (
        find(Seen([pod(crashing(1, "run-2"))], lines={again.ask: ""}, reported=reported)).ask
        is None
    )


def test_a_message_of_the_container_itself_needs_no_log() -> None:
    assert find(Seen([pod(crashing(1, message="no such table"))])).ask is None


def test_a_job_that_gave_up_says_so_with_what_its_pods_ended_with() -> None:
    failed = pod(container(ended(4, message="cannot connect")), phase="Failed")
    wanted = "BackoffLimitExceeded: exit code 4: cannot connect"
    assert text(failed, verdict="BackoffLimitExceeded") == wanted
    assert text(verdict="BackoffLimitExceeded") == ""


def test_what_has_no_effect_at_the_edge_is_a_cause() -> None:
    policy = {"metadata": {"name": "p", "annotations": {NOT_ENFORCED: "not filtered", "a": "b"}}}
    assert inert(present(policy)) == "NotEnforced: not filtered"
    assert inert(present({"metadata": {"name": "p"}})) == ""
    assert inert(None) == ""


@given(st.text(max_size=400), st.text(max_size=400))
def test_a_cause_is_one_bounded_line(reason: str, message: str) -> None:
    found = Cause(reason, message).text
    assert len(found.encode()) <= MAX_CAUSE_BYTES
    assert found.isprintable()


@given(st.text())
def test_the_last_line_is_one_line_of_the_text(words: str) -> None:
    found = last_line(words)
    assert found.isprintable()
    assert last_line(f"first\n{found}\n\n\x07\n") == (found or "first")


def test_nothing_of_a_spec_is_kept_of_a_pod() -> None:
    secret = {"env": [{"name": "PASSWORD", "value": "hunter2"}]}
    kept = lean_pod({"metadata": {"name": "a"}, "spec": {"containers": [secret]}, "status": {}})
    assert "hunter2" not in str(kept)


_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["containerStatuses", "state", "waiting", "terminated", "lastState",
                         "reason", "message", "conditions", "type", "phase", "exitCode"]),
        inner, max_size=4),
)  # fmt: skip


@given(_JSON)
def test_whatever_an_edge_reports_is_tolerated(status: Any) -> None:
    found = lean_pod({"metadata": {"name": "a", "uid": "u"}, "status": status})
    find(Seen([found]))
    is_fine(found)
