from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.quota import (
    PODS,
    Counted,
    added,
    as_text,
    charged,
    concerns,
    increase,
    pod_limits,
    pod_requests,
    refusal,
    subtracted,
    tracked_types,
    unstated,
    usage_of,
    used_by,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CONFIG_MAPS = GroupResource("", "configmaps")
SERVICES = GroupResource("", "services")
CLAIMS = GroupResource("", "persistentvolumeclaims")
DEPLOYMENTS = GroupResource("apps", "deployments")


def quota(used: dict[str, str] | None = None, **spec: Any) -> Object:
    found: Object = {"metadata": {"name": "q"}, "spec": spec}
    if used is not None:
        found["status"] = {"hard": spec["hard"], "used": used}
    return found


def container(name: str = "c", restart: str = "", **resources: Any) -> Object:
    found: Object = {"name": name, "resources": resources}
    if restart:
        found["restartPolicy"] = restart
    return found


def pod(*containers: Object, init: tuple[Object, ...] = (), **spec: Any) -> Object:
    body = {"containers": list(containers), "initContainers": list(init), **spec}
    return {"metadata": {"name": "p"}, "spec": body, "status": {"phase": "Running"}}


def text(usage: dict[str, Quantity]) -> dict[str, str]:
    return as_text(usage)


def test_an_object_counts_by_its_type() -> None:
    assert text(usage_of(Counted(CONFIG_MAPS, {"metadata": {}}), NOW)) == {
        "configmaps": "1",
        "count/configmaps": "1",
    }
    deployment = Counted(DEPLOYMENTS, {"metadata": {}})
    assert text(usage_of(deployment, NOW)) == {"count/deployments.apps": "1"}


def test_a_pod_counts_with_what_its_containers_state() -> None:
    asks = {"cpu": "100m", "memory": "1Gi", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"}
    running = pod(container(requests=asks, limits={"cpu": "1"}), container("d", requests=asks))
    assert text(usage_of(Counted(PODS, running), NOW)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "200m",
        "requests.cpu": "200m",
        "limits.cpu": "1",
        "memory": "2Gi",
        "requests.memory": "2Gi",
        "requests.example.com/gpu": "4",
        "hugepages-2Mi": "8Mi",
        "requests.hugepages-2Mi": "8Mi",
    }


def test_starting_counts_when_it_needs_more_and_sidecars_stay() -> None:
    started = pod(
        container(requests={"cpu": "1"}),
        init=(
            container("side", "Always", requests={"cpu": "500m"}),
            container("setup", requests={"cpu": "2"}),
        ),
        overhead={"cpu": "100m", "memory": "10Mi"},
    )
    assert text(pod_requests(started)) == {"cpu": "2600m", "memory": "10Mi"}
    assert text(pod_limits(started)) == {}


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_an_object_only(phase: str) -> None:
    ended = pod(container(requests={"cpu": "1"})) | {"status": {"phase": phase}}
    assert text(usage_of(Counted(PODS, ended), NOW)) == {"count/pods": "1"}


def test_a_pod_that_overstays_its_grace_is_an_object_only() -> None:
    terminating = pod(container(requests={"cpu": "1"}))
    terminating["metadata"] |= {
        "deletionTimestamp": "2029-12-31T23:59:00Z",
        "deletionGracePeriodSeconds": 59,
    }
    assert text(usage_of(Counted(PODS, terminating), NOW)) == {"count/pods": "1"}
    terminating["metadata"]["deletionGracePeriodSeconds"] = 60
    assert "pods" in usage_of(Counted(PODS, terminating), NOW)


@pytest.mark.parametrize(
    ("spec", "node_ports", "balancers"),
    [
        ({"ports": [{}, {}]}, "0", "0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "2", "0"),
        ({"type": "LoadBalancer", "ports": [{}]}, "1", "1"),
        (
            {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": False,
                "ports": [{}, {"nodePort": 30000}],
            },
            "1",
            "1",
        ),
    ],
)
def test_a_service_counts_by_how_it_is_exposed(
    spec: Object, node_ports: str, balancers: str
) -> None:
    used = text(usage_of(Counted(SERVICES, {"metadata": {}, "spec": spec}), NOW))
    assert used["services"] == "1"
    assert used["services.nodeports"] == node_ports
    assert used["services.loadbalancers"] == balancers


def test_a_claim_counts_in_its_storage_class_too() -> None:
    spec = {"storageClassName": "gold", "resources": {"requests": {"storage": "10Gi"}}}
    used = text(usage_of(Counted(CLAIMS, {"metadata": {}, "spec": spec}), NOW))
    assert used == {
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "10Gi",
        "gold.storageclass.storage.k8s.io/requests.storage": "10Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    }


def test_a_quota_reports_which_types_it_is_about() -> None:
    hard = dict.fromkeys(
        (
            "pods",
            "requests.cpu",
            "services.nodeports",
            "secrets",
            "count/deployments.apps",
            "requests.storage",
        ),
        "1",
    )
    assert tracked_types(quota(hard=hard)) == {
        PODS,
        SERVICES,
        GroupResource("", "secrets"),
        DEPLOYMENTS,
        CLAIMS,
    }


def cross(term: Object) -> Object:
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rules}}


@pytest.mark.parametrize(
    ("spec", "subject", "wanted"),
    [
        ({"scopes": ["Terminating"]}, pod(activeDeadlineSeconds=5), True),
        ({"scopes": ["Terminating"]}, pod(), False),
        ({"scopes": ["NotTerminating"]}, pod(), True),
        ({"scopes": ["BestEffort"]}, pod(container()), True),
        ({"scopes": ["BestEffort"]}, pod(container(limits={"cpu": "1"})), False),
        ({"scopes": ["NotBestEffort"]}, pod(container(requests={"memory": "1"})), True),
        ({"scopes": ["NotBestEffort", "Terminating"]}, pod(container()), False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, pod(**cross({"namespaces": ["x"]})), True),
        ({"scopes": ["CrossNamespacePodAffinity"]}, pod(**cross({})), False),
        ({"scopes": ["Unheard"]}, pod(), False),
    ],
)
def test_scopes_select_pods(spec: Object, subject: Object, wanted: bool) -> None:
    assert concerns(quota(**spec), Counted(PODS, subject)) is wanted


@pytest.mark.parametrize(
    ("operator", "values", "name", "wanted"),
    [
        ("In", ["high"], "high", True),
        ("In", ["high"], "", False),
        ("NotIn", ["high"], "low", True),
        ("Exists", [], "low", True),
        ("Exists", [], "", False),
        ("DoesNotExist", [], "", True),
    ],
)
def test_priority_classes_are_selected_by_expression(
    operator: str, values: list[str], name: str, wanted: bool
) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    limited = quota(scopeSelector={"matchExpressions": [expression]})
    assert concerns(limited, Counted(PODS, pod(priorityClassName=name))) is wanted


def test_a_quota_with_scopes_is_about_pods_alone() -> None:
    assert not concerns(quota(scopes=["NotTerminating"]), Counted(CONFIG_MAPS, {"metadata": {}}))


def test_usage_is_reported_of_every_limit_even_if_nothing_is_used() -> None:
    limited = quota(hard={"pods": "5", "requests.cpu": "2"})
    assert text(used_by(limited, [], NOW)) == {"pods": "0", "requests.cpu": "0"}


def test_a_refusal_says_what_was_asked_used_and_limited() -> None:
    limited = quota({"pods": "1", "requests.cpu": "900m"}, hard={"pods": "5", "requests.cpu": "1"})
    asked = Counted(PODS, pod(container(requests={"cpu": "200m"})))
    assert refusal(limited, asked, None, NOW) == (
        "exceeded quota: q, requested: requests.cpu=200m, used: requests.cpu=900m, "
        "limited: requests.cpu=1"
    )
    small = Counted(PODS, pod(container(requests={"cpu": "100m"})))
    assert refusal(limited, small, None, NOW) is None


def test_limited_compute_must_be_stated_by_every_container() -> None:
    limited = quota({"limits.cpu": "0", "memory": "0"}, hard={"limits.cpu": "1", "memory": "1Gi"})
    asked = Counted(PODS, pod(container("b"), container("a", requests={"memory": "1Mi"})))
    assert unstated(limited, asked) == "limits.cpu for: a,b; memory for: b"
    assert refusal(limited, asked, None, NOW) == (
        "failed quota: q: must specify limits.cpu for: a,b; memory for: b"
    )
    assert unstated(limited, Counted(CONFIG_MAPS, {"metadata": {}})) == ""


def test_a_quota_not_counted_yet_admits_nothing_it_limits() -> None:
    fresh = quota(hard={"configmaps": "5"})
    asked = Counted(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert refusal(fresh, asked, None, NOW) == (
        "status unknown for quota: q, resources: configmaps"
    )
    assert refusal(fresh, Counted(DEPLOYMENTS, {"metadata": {}}), None, NOW) is None


def test_an_update_may_shrink_and_keep_what_it_had() -> None:
    limited = quota({"requests.cpu": "5"}, hard={"requests.cpu": "1"})
    large = Counted(PODS, pod(container(requests={"cpu": "3"})))
    small = Counted(PODS, pod(container(requests={"cpu": "2"})))
    assert refusal(limited, small, large, NOW) is None
    assert refusal(limited, large, large, NOW) is None
    change, asked = increase(limited, small, large, NOW)
    assert (text(change), asked) == ({"requests.cpu": "-1"}, {})
    assert charged(limited, change) == {"requests.cpu": "4"}


amounts = st.dictionaries(
    st.sampled_from(["pods", "requests.cpu", "x"]),
    st.integers(-(10**6), 10**6).map(Quantity.of_milli),
)
pods = st.builds(
    lambda cpu, phase: pod(container(requests={"cpu": f"{cpu}m"})) | {"status": {"phase": phase}},
    st.integers(0, 2000),
    st.sampled_from(["Running", "Failed"]),
)


@given(amounts, amounts)
def test_adding_and_subtracting_undo_each_other(
    one: dict[str, Quantity], other: dict[str, Quantity]
) -> None:
    back = subtracted(added(one, other), other)
    assert {name: amount for name, amount in back.items() if amount} == {
        name: amount for name, amount in one.items() if amount
    }


@settings(max_examples=100)
@given(st.lists(pods, max_size=8), st.integers(0, 8))
def test_charging_one_by_one_equals_counting_all(everything: list[Object], limit: int) -> None:
    hard = {"pods": str(limit), "requests.cpu": "4", "count/pods": "8"}
    limited = quota({"pods": "0", "requests.cpu": "0", "count/pods": "0"}, hard=hard)
    admitted = []
    for body in everything:
        counted = Counted(PODS, body)
        if refusal(limited, counted, None, NOW) is None:
            change, _ = increase(limited, counted, None, NOW)
            limited["status"]["used"] = charged(limited, change)
            admitted.append(counted)
    assert limited["status"]["used"] == text(used_by(limited, admitted, NOW))
    used = used_by(limited, admitted, NOW)
    assert all(used[name] <= Quantity.parse(hard[name]) for name in hard)
