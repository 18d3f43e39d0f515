"""Single decisions: who is chosen, what is said when nobody is, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.scheduler.config.load import complete, load
from skerry.scheduler.cycle import Decider, DecisionFailed, nodes_to_find
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.framework.status import Code
from skerry.scheduler.registry import in_tree_registry
from tests.kit.scheduler.fixtures import Bench, node, pod

ZONE = "topology.kubernetes.io/zone"


def pinned(name: str, *nodes: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": list(nodes)}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    rule = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod(name, affinity=rule)


def test_the_emptiest_node_wins() -> None:
    bench = Bench().nodes(node("a"), node("b"))
    bench.place(pod("old"), "a")
    assert bench.decide(pod("new")) == "b"


def test_without_nodes_there_is_nothing_to_say() -> None:
    with pytest.raises(DecisionFailed, match="no nodes available to schedule pods"):
        Bench().decide(pod("p"))


def test_the_familiar_message() -> None:
    bench = Bench().nodes(
        node("a", allocatable={"cpu": "1"}),
        node("b", allocatable={"cpu": "1", "memory": "1Gi"}),
        node("c", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        node("d", unschedulable=True),
    )
    assert bench.why(pod("p", requests={"cpu": "2", "memory": "2Gi"})) == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint "
        "{gpu: yes}, 1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_reasons_are_sorted_as_text() -> None:
    bench = Bench().nodes(*(node(f"n{i}", allocatable={"cpu": "1"}) for i in range(10)))
    bench.nodes(node("x", unschedulable=True), node("y", unschedulable=True))
    assert bench.why(pod("p", requests={"cpu": "2"})) == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were unschedulable."
    )


def test_a_pod_pinned_to_a_node_costs_nothing_elsewhere() -> None:
    bench = Bench().nodes(*(node(f"n{i}") for i in range(50)))
    assert bench.decide(pinned("p", "n7")) == "n7"
    _, found = bench.decider.decide(bench.profile, bench.cluster.reader.read(pinned("q", "n7")))
    assert found.evaluation is None


def test_pinned_pods_do_not_crowd_out_what_is_remembered() -> None:
    bench = Bench().nodes(*(node(f"n{i}") for i in range(4)))
    bench.decide(pod("ordinary"))
    for index in range(4):
        assert bench.decide(pinned(f"p{index}", f"n{index}")) == f"n{index}"
    assert len(bench.profile.evaluator._kept) == 1


def test_a_pod_pinned_to_a_full_node_says_who_else_was_not_asked() -> None:
    bench = Bench().nodes(node("a", allocatable={"cpu": "0"}), node("b"), node("c"))
    assert bench.why(pinned("p", "a")) == (
        "0/3 nodes are available: 1 Insufficient cpu, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_conflicting_pins_end_in_pre_filter() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [n]} for n in ("a", "b")]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    rule = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    bench = Bench().nodes(node("a"), node("b"))
    assert bench.why(pod("p", affinity=rule)) == (
        "0/2 nodes are available: pod affinity terms conflict."
    )


def test_random_ties_use_all_the_best_nodes() -> None:
    bench = Bench().nodes(*(node(f"n{i}") for i in range(4)))
    decider = Decider(bench.cluster, bench.handle.nominations, SeededIds(7), ties="random")
    info = bench.cluster.reader.read(pod("p"))
    chosen = {decider.decide(bench.profile, info)[0] for _ in range(100)}
    assert chosen == {"n0", "n1", "n2", "n3"}


def test_room_promised_to_a_pod_is_not_given_to_a_lesser_one() -> None:
    bench = Bench().nodes(node("a", allocatable={"cpu": "1"}))
    promised = bench.cluster.reader.read(pod("big", requests={"cpu": "1"}, priority=5))
    bench.handle.nominations.nominate(promised, "a")
    assert bench.why(pod("small")) == "0/1 nodes are available: 1 Insufficient cpu."
    assert bench.decide(pod("greater", priority=6)) == "a"


def test_the_nominated_node_is_tried_first() -> None:
    bench = Bench().nodes(node("a"), node("b"))
    bench.place(pod("old"), "b")
    assert bench.decide(pod("p", status={"nominatedNodeName": "b"})) == "b"
    assert bench.decide(pod("q", status={"nominatedNodeName": "gone"})) == "a"


@pytest.mark.parametrize(
    ("percentage", "total", "wanted"),
    [
        (None, 5000, 5000),
        (0, 99, 99),
        (0, 100, 100),
        (0, 5000, 500),
        (0, 15000, 750),
        (30, 1000, 300),
        (5, 1000, 100),
        (100, 5000, 5000),
    ],
)
def test_how_many_feasible_nodes_are_looked_for(
    percentage: int | None, total: int, wanted: int
) -> None:
    assert nodes_to_find(percentage, total) == wanted


def test_sampling_goes_round_so_that_every_node_has_its_turn() -> None:
    config = load(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "percentageOfNodesToScore: 50\n"
    )
    bench = Bench(config)
    bench.profile.percentage = 50
    bench.nodes(*(node(f"n{i}", {ZONE: f"z{i % 3}"}) for i in range(210)))
    seen: set[str] = set()
    for index in range(4):
        info = bench.cluster.reader.read(pod(f"p{index}"))
        found = bench.decider.find(bench.profile, info)
        names = {bench.cluster.table.target(row).name for row in found.feasible().tolist()}
        assert len(names) == 105
        seen |= names
    assert len(seen) == 210


def test_visiting_order_alternates_between_zones() -> None:
    bench = Bench().nodes(*(node(f"n{i}", {ZONE: "z0" if i < 4 else "z1"}) for i in range(6)))
    names = [bench.cluster.table.target(row).name for row in bench.cluster.table.order()]
    assert names == ["n0", "n4", "n1", "n5", "n2", "n3"]


class Raises:
    name = "Raises"

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, item: Any, target: Any) -> None:
        raise RuntimeError("bug in a plugin")


class Slow:
    """A plugin that answers only node by node."""

    name = "Slow"

    def __init__(self, args: Any, handle: Any) -> None:
        self.asked: list[str] = []

    def filter(self, state: Any, item: Any, target: Any) -> Any:
        self.asked.append(target.name)
        from skerry.scheduler.framework.status import unschedulable

        return unschedulable("odd node") if int(target.name[1:]) % 2 else None

    def score(self, state: Any, item: Any, target: Any) -> int:
        return int(target.name[1:])


def with_plugin(plugin: Any) -> Bench:
    registry = in_tree_registry()
    registry.merge(Registry({plugin.name: plugin}))
    enabled = {"multiPoint": {"enabled": [{"name": plugin.name, "weight": 10}]}}
    return Bench(complete({"profiles": [{"plugins": enabled}]}), registry)


def test_a_plugin_that_raises_fails_the_attempt_and_nothing_else() -> None:
    bench = with_plugin(Raises).nodes(node("a"))
    with pytest.raises(DecisionFailed, match="bug in a plugin") as caught:
        bench.decide(pod("p"))
    assert caught.value.status.code is Code.ERROR


def test_a_plugin_without_array_forms_works() -> None:
    bench = with_plugin(Slow).nodes(*(node(f"n{i}") for i in range(6)))
    assert bench.decide(pod("p")) == "n4"
    big = pod("q", requests={"cpu": "5"})
    assert bench.why(big) == "0/6 nodes are available: 6 Insufficient cpu."


def test_a_plugin_without_array_forms_is_asked_only_about_survivors() -> None:
    bench = with_plugin(Slow).nodes(node("n1"), node("n2", unschedulable=True))
    assert bench.why(pod("p")) == (
        "0/2 nodes are available: 1 node(s) were unschedulable, 1 odd node."
    )
    plugin: Any = bench.framework.made["Slow"]
    assert set(plugin.asked) == {"n1"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12))
def test_the_table_equals_one_built_afresh(changes: list[tuple[str, bool]]) -> None:
    """Adding, relabelling and removing nodes leaves no trace in later decisions."""
    bench = Bench()
    present: dict[str, dict[str, Any]] = {}
    for number, (name, adding) in enumerate(changes):
        if adding:
            present[name] = node(name, {ZONE: f"z{number % 2}"})
            bench.nodes(present[name])
        elif name in present:
            bench.cluster.remove_node(name)
            del present[name]
    fresh = Bench().nodes(*present.values())
    assert len(bench.cluster.table) == len(fresh.cluster.table)
    column, expected = bench.cluster.table.label(ZONE), fresh.cluster.table.label(ZONE)
    for name in present:
        row, other = bench.cluster.table.row(name), fresh.cluster.table.row(name)
        assert row is not None
        assert other is not None
        assert column.values[column.codes[row]] == expected.values[expected.codes[other]]


def test_pods_of_a_lost_node_return_with_it() -> None:
    bench = Bench().nodes(node("a", allocatable={"cpu": "1"}))
    bench.place(pod("old", requests={"cpu": "1"}), "a")
    bench.cluster.remove_node("a")
    bench.nodes(node("b", allocatable={"cpu": "1"}))
    assert bench.decide(pod("p", requests={"cpu": "1"})) == "b"
    bench.nodes(node("a", allocatable={"cpu": "1"}))
    assert bench.decide(pod("q", requests={"cpu": "1"})) == "b"
    bench.place(pod("other", requests={"cpu": "1"}), "b")
    assert bench.decide(pod("r", requests={"cpu": "1"})) == ""
    bench.cluster.remove_pod("old")
    assert bench.decide(pod("r", requests={"cpu": "1"})) == "a"
