"""A node and its pods: sums that come and go with them, and copies nobody notices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.scheduler.cache.node import NodeInfo
from skerry.scheduler.cache.pod import HostPort, PodInfo, PodReader
from tests.kit.scheduler.fixtures import node, pod

READER = PodReader()
AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
        ]
    }
}


def read(name: str, cpu: int = 1, port: int = 0, *, affine: bool = False) -> PodInfo:
    made = pod(name, requests={"cpu": f"{cpu}m"}, **({"affinity": AFFINITY} if affine else {}))
    if port:
        made["spec"]["containers"][0]["ports"] = [{"hostPort": port, "containerPort": port}]
    return READER.read(made)


def sums(info: NodeInfo) -> tuple[object, ...]:
    requested = {name: value for name, value in info.requested.items() if value}
    return (
        requested,
        info.nonzero_cpu,
        info.nonzero_memory,
        set(info.pods),
        set(info.affine),
        dict(info.ports),
    )


PODS = [read(f"p{n}", n, port=8000 + n % 2 if n % 3 else 0, affine=n % 4 == 0) for n in range(1, 9)]


@given(st.lists(st.sampled_from(PODS), unique_by=lambda p: p.uid), st.data())
def test_what_comes_and_goes_leaves_no_trace(found: list[PodInfo], data: st.DataObject) -> None:
    info, never = NodeInfo(node("n")), NodeInfo(node("n"))
    gone = data.draw(st.lists(st.sampled_from(found), unique_by=lambda p: p.uid)) if found else []
    left = [each for each in found if each not in gone]
    for each in found:
        info.add(each)
    for each in gone:
        assert info.remove(each.uid) is each
    for each in left:
        never.add(each)
    assert sums(info) == sums(never)
    whole = NodeInfo(node("n"))
    for each in found:
        whole.add(each)
    assert sums(whole.without(gone)) == sums(never)
    assert len(whole.pods) == len(found)


def test_a_pod_that_is_not_there_is_not_removed() -> None:
    info = NodeInfo(node("n"))
    before = info.changes
    assert info.remove("nobody") is None
    assert info.changes == before


def test_a_copy_is_its_own_and_the_original_stays() -> None:
    info = NodeInfo(node("n"))
    info.add(PODS[0])
    other = info.copy()
    other.add(PODS[1])
    other.remove(PODS[0].uid)
    assert set(info.pods) == {PODS[0].uid}
    assert set(other.pods) == {PODS[1].uid}


def test_every_change_is_counted() -> None:
    info = NodeInfo(node("n"))
    seen = [info.changes]
    info.add(PODS[0])
    seen.append(info.changes)
    info.remove(PODS[0].uid)
    seen.append(info.changes)
    info.describe(node("n", unschedulable=True))
    seen.append(info.changes)
    assert seen == sorted(set(seen))


def test_a_new_description_keeps_the_pods() -> None:
    info = NodeInfo(node("n"))
    info.add(PODS[0])
    info.describe(node("n", {"zone": "b"}, allocatable={"cpu": "1"}))
    assert info.labels["zone"] == "b"
    assert info.free("cpu") == 1000 - PODS[0].spec.requests["cpu"]
    assert info.free("unheard") == 0


def test_ports_are_free_again_when_the_last_holder_leaves() -> None:
    info, port = NodeInfo(node("n")), HostPort("0.0.0.0", "TCP", 80)
    one, two = read("one", port=80), read("two", port=80)
    info.add(one)
    info.add(two)
    info.remove("one")
    assert info.ports == {port: 1}
    info.remove("two")
    assert info.ports == {}


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "z"}, ":\x00:z"),
        ({"topology.kubernetes.io/region": "r"}, "r:\x00:"),
        ({"failure-domain.beta.kubernetes.io/zone": "old"}, ":\x00:old"),
        (
            {"topology.kubernetes.io/zone": "z", "failure-domain.beta.kubernetes.io/zone": "old"},
            ":\x00:z",
        ),
    ],
)
def test_zones_by_new_labels_or_old_ones(labels: dict[str, str], zone: str) -> None:
    assert NodeInfo(node("n", labels)).zone == zone


def test_for_scoring_pods_that_ask_for_nothing_count_as_something() -> None:
    info = NodeInfo(node("n"))
    info.add(READER.read(pod("p", requests={})))
    assert info.requested.get("cpu", 0) == 0
    assert info.nonzero("cpu") == 100
    assert info.nonzero("memory") == 200 * 1024 * 1024
    assert info.nonzero("example.com/gpu") == 0


def test_images_are_known_by_every_name() -> None:
    made = node("n")
    made["status"]["images"] = [{"names": ["a:1", "a@sha256:x"], "sizeBytes": 5}, {"names": None}]
    assert NodeInfo(made).images == {"a:1": 5, "a@sha256:x": 5}
