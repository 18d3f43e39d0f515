"""Pods read once: what equal pods share, and what is each pod's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.cache.pod import ANY_ADDRESS, HostPort, PodInfo, PodReader, scheduled_volumes
from tests.kit.scheduler.fixtures import pod


def read(name: str = "p", **spec: Any) -> PodInfo:
    return PodReader().read(pod(name, **spec))


def test_copies_of_one_another_share_a_template() -> None:
    reader = PodReader()
    one, two = reader.read(pod("a")), reader.read(pod("b"))
    assert one.spec is two.spec
    assert (one.uid, two.uid) == ("a", "b")


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"a": "b"}},
        {"namespace": "other"},
        {"requests": {"cpu": "2"}},
        {"priority": 5},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"schedulerName": "mine"},
        {"hostNetwork": True},
        {"overhead": {"cpu": "1"}},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    ],
)
def test_pods_that_differ_in_what_decides_do_not(change: dict[str, Any]) -> None:
    reader = PodReader()
    assert reader.read(pod("a")).spec is not reader.read(pod("a", **change)).spec


@pytest.mark.parametrize(
    "change",
    [
        {"nodeName": "n"},
        {"schedulingGates": [{"name": "g"}]},
        {"status": {"phase": "Pending"}},
        {"volumes": [{"name": "kube-api-access-x7", "projected": {}}]},
    ],
)
def test_what_decides_nothing_keeps_nobody_apart(change: dict[str, Any]) -> None:
    reader = PodReader()
    assert reader.read(pod("a")).spec is reader.read(pod("a", **change)).spec


def test_only_so_many_templates_are_kept() -> None:
    reader = PodReader(kept=1)
    first = reader.read(pod("a")).spec
    reader.read(pod("a", priority=1))
    assert reader.read(pod("a")).spec is not first


def test_a_pod_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"quantities|lots"):
        read(requests={"cpu": "lots"})


def test_what_is_left_out_has_its_meaning() -> None:
    info = PodReader().read({"metadata": {"name": "p"}})
    assert (info.namespace, info.uid, info.key) == ("default", "default/p", "default/p")
    assert info.spec.scheduler_name == "default-scheduler"
    assert info.spec.preemption_policy == "PreemptLowerPriority"
    assert (info.priority, info.gates, info.terminating) == (0, (), False)
    assert not info.spec.affine


def test_a_pod_on_its_future_node_is_a_copy() -> None:
    info = read()
    there = info.on("n")
    assert (info.node_name, there.node_name) == ("", "n")
    assert there.spec is info.spec


def test_failures_are_reported_in_kubernetes_order() -> None:
    spec = read(requests={"z.com/a": 1, "memory": "1", "ephemeral-storage": "1", "cpu": "1m",
                          "a.com/b": 1, "pods": 0}).spec  # fmt: skip
    assert [name for name, _ in spec.checked] == [
        "cpu",
        "memory",
        "ephemeral-storage",
        "a.com/b",
        "z.com/a",
    ]


def test_only_ports_of_ordinary_containers_are_taken() -> None:
    made = pod("p")
    made["spec"]["containers"][0]["ports"] = [{"hostPort": 80}, {"containerPort": 1}]
    made["spec"]["initContainers"] = [{"name": "i", "ports": [{"hostPort": 81}]}]
    assert PodReader().read(made).spec.ports == (HostPort(ANY_ADDRESS, "TCP", 80),)


@pytest.mark.parametrize(
    ("image", "known"),
    [("a", "a:latest"), ("a:1", "a:1"), ("host:5000/a", "host:5000/a:latest"), ("", ":latest")],
)
def test_images_are_called_as_nodes_call_them(image: str, known: str) -> None:
    made = pod("p")
    made["spec"]["containers"][0]["image"] = image
    assert PodReader().read(made).spec.images == (known,)


PORTS = st.builds(
    HostPort, st.sampled_from([ANY_ADDRESS, "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["TCP", "UDP"]), st.sampled_from([80, 81]),
)  # fmt: skip


@given(PORTS, PORTS)
def test_conflicts_go_both_ways_and_everybody_conflicts_with_himself(
    one: HostPort, other: HostPort
) -> None:
    assert one.conflicts(other) == other.conflicts(one)
    assert one.conflicts(one)
    if one.port != other.port or one.protocol != other.protocol:
        assert not one.conflicts(other)


def test_volumes_that_decide() -> None:
    volumes: list[dict[str, Any]] = [{"csi": {}}, {"configMap": {}}, {"ephemeral": {}}, {}]
    assert scheduled_volumes(volumes) == [{"csi": {}}, {"ephemeral": {}}]
