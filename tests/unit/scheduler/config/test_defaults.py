"""What a configuration means where it says nothing, and how its plugins join ours."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from skerry.scheduler.config.defaults import (
    DEFAULT_PLUGINS,
    with_default_arguments,
    with_defaults,
)
from skerry.scheduler.registry import in_tree_registry

NAMES = [name for name, _ in DEFAULT_PLUGINS]


def multi_point(**plugins: Any) -> list[dict[str, Any]]:
    made = with_defaults({"profiles": [{"plugins": {"multiPoint": plugins}}]})
    found: list[dict[str, Any]] = made["profiles"][0]["plugins"]["multiPoint"].get("enabled", [])
    return found


def test_nothing_said_is_one_profile_of_all_plugins() -> None:
    made = with_defaults({})
    (profile,) = made["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert [ref["name"] for ref in profile["plugins"]["multiPoint"]["enabled"]] == NAMES
    assert made["parallelism"] == 16
    assert (made["podInitialBackoffSeconds"], made["podMaxBackoffSeconds"]) == (1, 10)
    assert with_defaults({"profiles": []})["profiles"] == made["profiles"]


def test_every_default_plugin_exists() -> None:
    assert sorted(in_tree_registry().names()) == sorted(NAMES)


def test_a_second_profile_must_name_itself() -> None:
    made = with_defaults({"profiles": [{}, {}]})
    assert all("schedulerName" not in profile for profile in made["profiles"])


def test_what_was_given_is_not_changed() -> None:
    raw: dict[str, Any] = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "X"}]}}}]}
    before = deepcopy(raw)
    with_defaults(raw)
    assert raw == before


def test_completing_twice_changes_nothing_more() -> None:
    # A merged list is complete: its own plugins come in place of the defaults.
    made = with_defaults({"leaderElection": {"leaseDuration": "20s"}})
    assert with_defaults(made) == made


def test_zero_means_that_nobody_said() -> None:
    client = with_defaults({"clientConnection": {"qps": 0, "burst": 0}})["clientConnection"]
    assert (client["qps"], client["burst"]) == (50, 100)


def test_a_plugin_of_both_lists_keeps_its_place_and_takes_the_new_weight() -> None:
    found = multi_point(enabled=[{"name": "NodeAffinity", "weight": 9}, {"name": "Mine"}])
    assert [ref["name"] for ref in found] == [*NAMES, "Mine"]
    assert {ref["name"]: ref.get("weight") for ref in found}["NodeAffinity"] == 9


def test_a_plugin_that_is_off_and_on_comes_last() -> None:
    found = multi_point(disabled=[{"name": "NodeName"}], enabled=[{"name": "NodeName"}])
    assert [ref["name"] for ref in found] == [*(n for n in NAMES if n != "NodeName"), "NodeName"]


def test_a_star_takes_all_defaults_away() -> None:
    assert multi_point(disabled=[{"name": "*"}], enabled=[{"name": "X"}]) == [{"name": "X"}]
    assert multi_point(disabled=[{"name": "*"}]) == []


def test_plugins_that_run_have_their_arguments() -> None:
    (profile,) = with_defaults({})["profiles"]
    names = [item["name"] for item in profile["pluginConfig"]]
    assert names == sorted(names)
    assert "NodeResourcesFit" in names
    (bare,) = with_defaults(
        {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}]}}}]}
    )["profiles"]
    assert bare["pluginConfig"] == []


def test_arguments_are_completed_field_by_field() -> None:
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    fit = with_default_arguments("NodeResourcesFit", strategy)
    assert fit["scoringStrategy"]["resources"] == [
        {"name": "cpu", "weight": 1},
        {"name": "memory", "weight": 1},
    ]
    assert fit["kind"] == "NodeResourcesFitArgs"
    balanced = with_default_arguments(
        "NodeResourcesBalancedAllocation", {"resources": [{"name": "a.com/b"}]}
    )
    assert balanced["resources"] == [{"name": "a.com/b", "weight": 1}]
    assert with_default_arguments("Mine", None) is None
