"""A PartitionSet has one Partition for each combination of labels that its Shards have."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skerry.logic.machinery.workspaces.partition_sets import base_name, division

SHARDS = [
    {"zone": "a", "region": "West"},
    {"zone": "b", "region": "West"},
    {"zone": "b", "region": "West", "more": "x"},
    {"region": "East"},
]


def partition_set(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "s"}, "spec": spec}


def partition(name: str, selector: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": selector}}


def labels(**wanted: str) -> dict[str, Any]:
    return {"matchLabels": wanted}


def said(status: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(c["type"], c["status"], c.get("message", "")) for c in status["conditions"]]


def test_each_combination_of_values_is_one_partition() -> None:
    made = division(partition_set(dimensions=["zone", "region"]), (), SHARDS, "t")
    wanted = (labels(region="West", zone="a"), labels(region="West", zone="b"))
    assert made.missing == wanted
    assert made.status["count"] == 2
    assert said(made.status) == [("PartitionSetValid", "True", ""), ("PartitionsReady", "True", "")]


def test_labels_of_the_selector_are_dimensions_and_its_expressions_are_handed_on() -> None:
    selector = {
        "matchLabels": {"region": "West"},
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}],
    }
    [made] = division(partition_set(shardSelector=selector), (), SHARDS, "t").missing
    assert made == selector


def test_without_dimensions_there_is_no_partition() -> None:
    assert division(partition_set(), (), SHARDS, "t").status["count"] == 0
    assert division(partition_set(dimensions=["nowhere"]), (), SHARDS, "t").missing == ()


def test_partitions_that_are_right_stay_and_others_go() -> None:
    owned = [
        partition("right", labels(zone="a")),
        partition("twice", labels(zone="a")),
        partition("old", labels(region="East")),
    ]
    made = division(partition_set(dimensions=["zone"]), owned, SHARDS, "t")
    assert made.stale == ("twice", "old")
    assert made.missing == (labels(zone="b"),)


def test_a_selector_that_cannot_be_read_changes_nothing_and_says_why() -> None:
    bad = {"matchExpressions": [{"key": "zone", "operator": "In"}]}
    obj = partition_set(dimensions=["zone"], shardSelector=bad) | {"status": {"count": 3}}
    made = division(obj, [partition("p", labels(zone="a"))], SHARDS, "t")
    assert (made.stale, made.missing, made.status["count"]) == ((), (), 3)
    assert [(kind, status) for kind, status, _ in said(made.status)] == [
        ("PartitionSetValid", "False"),
        ("PartitionsReady", "False"),
    ]


def test_names_are_of_the_set_and_its_values_and_those_that_cannot_be_are_not_made() -> None:
    obj = partition_set(dimensions=["zone", "region"])
    assert base_name(obj, labels(zone="a", region="West")) == "s-west-a-"
    made = division(obj, (), [{"zone": "not_a_name", "region": "x"}], "t")
    assert made.missing == ()
    assert said(made.status)[1] == ("PartitionsReady", "False", "partition could not get created")


VALUES = st.sampled_from(["a", "b", "c"])
ANY_SHARDS = st.lists(st.dictionaries(st.sampled_from(["zone", "region", "row"]), VALUES))


@given(ANY_SHARDS, st.lists(st.sampled_from(["zone", "region"])))
def test_what_was_made_once_is_not_made_again(
    shards: list[dict[str, str]], dimensions: list[str]
) -> None:
    obj = partition_set(dimensions=dimensions)
    first = division(obj, (), shards, "t")
    owned = [partition(f"p{n}", selector) for n, selector in enumerate(first.missing)]
    again = division(obj | {"status": first.status}, owned, shards, "later")
    assert again == (first.status, (), ())
