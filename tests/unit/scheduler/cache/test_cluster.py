"""What the scheduler believes: assumed pods, confirmed ones, and ghosts of nodes that are gone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skerry.scheduler.cache.cluster import AssumeError, Cluster
from skerry.scheduler.cache.pod import PodInfo
from tests.kit.scheduler.fixtures import node, pod


def read(cluster: Cluster, name: str, on: str = "", cpu: str = "100m") -> PodInfo:
    return cluster.reader.read(
        pod(name, requests={"cpu": cpu}, **({"nodeName": on} if on else dict[str, Any]()))
    )


def test_an_assumed_pod_counts_at_once_until_it_is_forgotten() -> None:
    cluster = Cluster()
    cluster.set_node(node("a"))
    placed = cluster.assume(read(cluster, "p"), "a")
    assert (placed.node_name, cluster.is_assumed("p")) == ("a", True)
    assert cluster.table.target(0).requested["cpu"] == 100
    cluster.forget("p")
    assert cluster.pod("p") is None
    assert cluster.table.target(0).requested["cpu"] == 0


def test_a_pod_is_assumed_and_forgotten_once() -> None:
    cluster = Cluster()
    cluster.set_node(node("a"))
    with pytest.raises(AssumeError, match="wasn't assumed"):
        cluster.forget("p")
    info = read(cluster, "p")
    cluster.assume(info, "a")
    with pytest.raises(AssumeError, match="is in the cache"):
        cluster.assume(info, "a")


def test_where_the_server_disagrees_the_server_is_right() -> None:
    cluster = Cluster()
    cluster.set_node(node("a"))
    cluster.set_node(node("b"))
    cluster.assume(read(cluster, "p"), "a")
    cluster.set_pod(read(cluster, "p", "b"))
    assert not cluster.is_assumed("p")
    by_name = {info.name: set(info.pods) for info in cluster.table.nodes()}
    assert by_name == {"a": set(), "b": {"p"}}


def test_pods_outlive_their_node_and_return_with_it() -> None:
    cluster = Cluster()
    cluster.set_pod(read(cluster, "early", "a"))
    assert cluster.counts == {"nodes": 0, "pods": 1, "assumed_pods": 0}
    cluster.set_node(node("a"))
    assert set(cluster.table.target(0).pods) == {"early"}
    cluster.remove_node("a")
    cluster.remove_node("unknown")
    assert [each.uid for each in cluster.pods()] == ["early"]
    assert cluster.remove_pod("early") is not None
    cluster.set_node(node("a"))
    assert cluster.table.target(0).pods == {}
    assert cluster.remove_pod("early") is None


def test_a_changed_weight_is_counted_anew() -> None:
    cluster = Cluster()
    cluster.set_node(node("a"))
    cluster.set_pod(read(cluster, "p", "a", "100m"))
    cluster.set_pod(read(cluster, "p", "a", "300m"))
    assert cluster.table.target(0).requested["cpu"] == 300


class Beliefs(RuleBasedStateMachine):
    """Whatever happens in whatever order, the sums are those of the pods that are there."""

    names, nodes = st.sampled_from(["p", "q", "r"]), st.sampled_from(["a", "b"])

    @initialize()
    def start(self) -> None:
        self.cluster = Cluster()
        self.where: dict[str, str] = {}
        self.here: set[str] = set()
        self.assumed: set[str] = set()

    @rule(name=nodes)
    def node_comes(self, name: str) -> None:
        self.cluster.set_node(node(name))
        self.here.add(name)

    @rule(name=nodes)
    def node_goes(self, name: str) -> None:
        self.cluster.remove_node(name)
        self.here.discard(name)

    @rule(name=names, on=nodes, cpu=st.sampled_from(["100m", "200m"]))
    def server_says(self, name: str, on: str, cpu: str) -> None:
        self.cluster.set_pod(read(self.cluster, name, on, cpu))
        self.where[name] = on
        self.assumed.discard(name)

    @rule(name=names, on=nodes)
    def assume(self, name: str, on: str) -> None:
        if name not in self.where:
            self.cluster.assume(read(self.cluster, name), on)
            self.where[name] = on
            self.assumed.add(name)

    @rule(name=names)
    def forget(self, name: str) -> None:
        if name in self.assumed:
            self.cluster.forget(name)
            self.assumed.discard(name)
            del self.where[name]

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.cluster.remove_pod(name)
        self.where.pop(name, None)
        self.assumed.discard(name)

    @invariant()
    def sums_agree(self) -> None:
        for info in self.cluster.table.nodes():
            mine = {name for name, on in self.where.items() if on == info.name}
            assert set(info.pods) == mine
            wanted = sum(each.spec.requests["cpu"] for each in info.pods.values())
            assert info.requested.get("cpu", 0) == wanted
            assert self.cluster.table.pod_count[info.row] == len(mine)
            column = self.cluster.table.resource(self.cluster.table.requested, "cpu")
            assert column[info.row] == wanted
        assert {info.name for info in self.cluster.table.nodes()} == self.here
        assert self.cluster.counts["pods"] == len(self.where)
        assert self.cluster.counts["assumed_pods"] == len(self.assumed)


TestBeliefs = Beliefs.TestCase
TestBeliefs.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
