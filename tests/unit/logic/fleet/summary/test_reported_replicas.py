"""The ReplicaSet that reports on a Deployment, judged as Helm 3 judges it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.api.edge import REPORTED_REPLICAS, is_system_object
from skerry.api.kinds import GroupResource
from skerry.logic.fleet.summary.reported_replicas import replica_set_name, replica_set_plan
from skerry.logic.machinery.plan import Create, Delete, Patch, Plan, Update

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
DONE = {"replicas": 4, "updatedReplicas": 4, "readyReplicas": 4, "availableReplicas": 4}


def deployment(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "template": TEMPLATE,
            "strategy": {"type": "RollingUpdate"},
            **spec,
        },
    }


def carried_out(plan: Plan, live: dict[str, Any]) -> dict[str, Any]:
    """Return the ReplicaSet after *plan*, as a server would leave it."""
    for action in plan:
        match action:
            case Create():
                made = {"uid": "r1", "generation": 1, **action.object["metadata"]}
                live = {**action.object, "metadata": made}
            case Update():
                generation = live["metadata"]["generation"] + 1
                live = {**action.object, "metadata": {**live["metadata"], "generation": generation}}
            case Patch():
                live = {**live, **action.patch}
            case _:
                raise AssertionError(action)
    return live


def judged_ready(deployment: dict[str, Any], replica_set: dict[str, Any], spare: int = 0) -> bool:
    """Tell what Helm 3 does of a Deployment whose own generation was observed."""
    [owner] = replica_set["metadata"]["ownerReferences"]
    return bool(
        owner["uid"] == deployment["metadata"]["uid"]
        and owner["controller"]
        and replica_set["spec"]["template"] == deployment["spec"]["template"]
        and replica_set["status"]["observedGeneration"] == replica_set["metadata"]["generation"]
        and replica_set["status"]["readyReplicas"] >= deployment["spec"]["replicas"] - spare
    )


def test_a_deployment_that_is_done_everywhere_is_ready() -> None:
    made = carried_out(replica_set_plan("wmw", deployment(), DONE, {}), {})

    assert judged_ready(deployment(), made)
    assert made["metadata"]["labels"] == {"app": "web"}
    assert not replica_set_plan("wmw", deployment(), DONE, made)


def test_it_never_travels() -> None:
    made = carried_out(replica_set_plan("wmw", deployment(), DONE, {}), {})

    kind = GroupResource("apps", "replicasets")
    assert is_system_object(kind, made)
    assert not is_system_object(kind, {"metadata": {"name": "web", "annotations": {"a": "b"}}})


def test_another_template_is_reported_with_its_own_numbers() -> None:
    before = carried_out(replica_set_plan("wmw", deployment(), DONE, {}), {})
    other = deployment(template={**TEMPLATE, "spec": {"containers": [{"name": "other"}]}})
    begun = {**DONE, "updatedReplicas": 1, "replicas": 5}

    after = carried_out(replica_set_plan("wmw", other, begun, before), before)

    assert not judged_ready(other, after)
    assert after["status"]["readyReplicas"] == 0
    done = carried_out(replica_set_plan("wmw", other, DONE, after), after)
    assert judged_ready(other, done)


@given(
    old=st.integers(0, 6), new=st.integers(0, 6), old_ready=st.integers(0, 6),
    new_ready=st.integers(0, 6),
)  # fmt: skip
def test_no_more_is_said_to_be_ready_than_is(
    old: int, new: int, old_ready: int, new_ready: int
) -> None:
    old_ready, new_ready = min(old, old_ready), min(new, new_ready)
    ready = old_ready + new_ready
    status = {"replicas": old + new, "updatedReplicas": new, "readyReplicas": ready}

    made = carried_out(replica_set_plan("wmw", deployment(), status, {}), {})

    assert made["status"]["readyReplicas"] <= new_ready
    if not old:
        assert made["status"]["readyReplicas"] == new_ready


def test_that_of_a_deployment_of_before_makes_room() -> None:
    before = carried_out(replica_set_plan("wmw", deployment(), DONE, {}), {})
    anew = deployment()
    anew["metadata"] = {**anew["metadata"], "uid": "u2"}

    plan = replica_set_plan("wmw", anew, DONE, before)

    [gone] = plan
    assert isinstance(gone, Delete)
    assert gone.uid == "r1"
    assert plan.requeue_after_seconds == 1.0


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {}},
        {"annotations": {REPORTED_REPLICAS: "true"}, "ownerReferences": []},
        {
            "annotations": {REPORTED_REPLICAS: "true"},
            "ownerReferences": [{"name": "other", "uid": "u3", "controller": True}],
        },
    ],
)
def test_somebody_elses_is_left_alone(metadata: dict[str, Any]) -> None:
    live = {"metadata": {"name": "web-reported", "uid": "r2", **metadata}, "spec": {}}

    assert not replica_set_plan("wmw", deployment(), DONE, live)


def test_a_name_has_room_for_its_ending() -> None:
    assert replica_set_name("web") == "web-reported"
    assert len(replica_set_name("a" * 253)) == 253
    assert replica_set_name("a" * 243 + "." + "b" * 9) == "a" * 243 + "-reported"
