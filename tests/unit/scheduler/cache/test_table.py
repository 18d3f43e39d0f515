"""Nodes in arrays: rows come, go and grow, and every column says what its node says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skerry.api.objects import Object
from skerry.scheduler.cache.pod import PodReader
from skerry.scheduler.cache.table import NO_PRIORITY, NodeTable
from skerry.scheduler.cache.terms import node_requirement
from tests.kit.scheduler.fixtures import node, pod

READER = PodReader()


def table(*nodes: Object) -> NodeTable:
    made = NodeTable()
    for each in nodes:
        made.set_node(each)
    return made


def place(found: NodeTable, name: str, on: str, **spec: Any) -> None:
    info = found.get(on)
    assert info is not None
    found.place(READER.read(pod(name, **spec)), info)


def test_a_row_is_used_again() -> None:
    found = table(node("a"), node("b"))
    row = found.row("a")
    found.remove_node("a")
    assert "a" not in found
    assert found.row("a") is None
    found.set_node(node("c"))
    assert found.row("c") == row
    assert (len(found), [info.name for info in found.nodes()]) == (2, ["c", "b"])
    with pytest.raises(LookupError, match="holds no node"):
        found.target(50)


def test_a_table_that_grows_keeps_what_it_had() -> None:
    names = [f"n{i}" for i in range(150)]
    found = table(*(node(name, {"i": name}, allocatable={"cpu": str(i + 1)})
                    for i, name in enumerate(names[:1])))  # fmt: skip
    place(found, "p", "n0", requests={"cpu": "1"}, priority=7)
    found.label("i")
    for i, name in enumerate(names[1:], start=1):
        found.set_node(node(name, {"i": name}, allocatable={"cpu": str(i + 1)}))
    assert found.capacity >= 150
    assert sorted(found.rows().tolist()) == list(range(150))
    for i, name in enumerate(names):
        row = found.row(name)
        assert row is not None
        assert found.allocatable["cpu"][row] == (i + 1) * 1000
        assert found.label("i").codes[row] >= 0
    first = found.row("n0")
    assert first is not None
    assert found.requested["cpu"][first] == 1000
    assert found.lowest_priority[first] == 7
    assert (found.lowest_priority == 7).sum() == 1


def test_a_heartbeat_is_no_change() -> None:
    found = table(node("a"))
    position = found.target_log.position
    beat = node("a")
    beat["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    found.set_node(beat)
    assert found.target_log.position == position
    found.set_node(node("a", unschedulable=True))
    assert found.target_log.position > position
    assert found.unschedulable[0]


def test_the_least_priority_is_that_of_the_pods_that_are_left() -> None:
    found = table(node("a"))
    info = found.target(0)
    assert found.lowest_priority[0] == NO_PRIORITY
    for name, priority in (("x", 5), ("y", 3), ("z", 3)):
        place(found, name, "a", priority=priority)
    assert found.lowest_priority[0] == 3
    found.displace("y", info)
    assert found.lowest_priority[0] == 3
    found.displace("z", info)
    assert found.lowest_priority[0] == 5
    found.displace("x", info)
    assert found.lowest_priority[0] == NO_PRIORITY
    assert found.displace("nobody", info) is None


def test_pods_leave_with_their_node() -> None:
    found = table(node("a"))
    place(found, "p", "a")
    assert [each.name for each in found.remove_node("a")] == ["p"]
    assert found.pod_count[0] == 0
    assert found.requested["cpu"][0] == 0


def test_images_are_found_by_name() -> None:
    holder = node("a")
    holder["status"]["images"] = [{"names": ["x"], "sizeBytes": 3}]
    found = table(holder, node("b"))
    assert found.images == {"x": {0: 3}}
    found.set_node(node("a"))
    assert found.images == {}


def test_nodes_are_visited_zone_by_zone_in_turn() -> None:
    zone = "topology.kubernetes.io/zone"
    found = table(node("a", {zone: "1"}), node("b", {zone: "1"}), node("c", {zone: "2"}))
    assert [found.target(row).name for row in found.order().tolist()] == ["a", "c", "b"]
    assert table().order().tolist() == []


def test_equal_lists_of_taints_are_kept_once() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}]
    found = table(node("a", taints=taints), node("b", taints=taints), node("c"))
    assert found.taint_list[0] == found.taint_list[1] != found.taint_list[2]
    assert len(found.taint_lists) == 2


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, ["a", "b"]),
        ({"nodeSelector": {"zone": "1"}}, ["a"]),
        ({"nodeSelector": {"zone": "9"}}, []),
        ({"nodeSelector": {"missing": "1"}}, []),
    ],
)
def test_demands_are_matched_in_arrays(spec: Object, names: list[str]) -> None:
    found = table(node("a", {"zone": "1"}), node("b", {"zone": "2"}))
    rows = found.rows()
    mask = found.matching(node_requirement(spec), rows)
    assert [found.target(row).name for row in rows[mask].tolist()] == names


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    def of(*terms: Object) -> list[str]:
        required = {"nodeSelectorTerms": list(terms)}
        spec = {"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": required}}}  # fmt: skip
        found = table(node("a", {"zone": "1"}), node("b", {"zone": "2"}))
        rows = found.rows()
        mask = found.matching(node_requirement(spec), rows)
        return [found.target(row).name for row in rows[mask].tolist()]

    one = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["1"]}]}
    two = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    assert of(one) == ["a"]
    assert of(two) == ["b"]
    assert of(one, two) == ["a", "b"]
    assert of({}) == []


def test_a_resource_nobody_has_is_zero() -> None:
    found = table(node("a"))
    assert not found.resource(found.allocatable, "x.com/gpu").any()
    assert found.resource(found.allocatable, "x.com/gpu").dtype == np.int64


def test_rows_with_ports_are_known() -> None:
    found = table(node("a"))
    made = pod("p")
    made["spec"]["containers"][0]["ports"] = [{"hostPort": 80}]
    found.place(READER.read(made), found.target(0))
    assert found.rows_with_ports == {0}
    found.displace("p", found.target(0))
    assert found.rows_with_ports == set()
