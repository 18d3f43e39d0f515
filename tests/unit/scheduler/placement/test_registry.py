"""Placement plugins: ours with their weights, and those that packages bring."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from skerry.scheduler.placement.registry import (
    IN_TREE,
    PROFILE,
    placement_profile,
    placement_registry,
)


class Mine:
    name = "Mine"

    def __init__(self, args: Any, table: Any) -> None:
        self.table = table


def test_ours_are_there_under_their_names() -> None:
    assert placement_registry([]).names() == [plugin.name for plugin, _ in IN_TREE]


def test_installing_a_package_enables_its_plugin_with_weight_one() -> None:
    registry = placement_registry([EntryPoint("Mine", f"{__name__}:Mine", "x")])
    profile = placement_profile(registry)
    weights = {ref.name: ref.weight for ref in profile.plugins["multiPoint"].enabled}
    assert weights == {**{plugin.name: weight for plugin, weight in IN_TREE}, "Mine": 1}
    assert profile.scheduler_name == PROFILE


def test_taints_weigh_three_times_as_for_pods() -> None:
    weights = {plugin.name: weight for plugin, weight in IN_TREE}
    assert weights["LocationTaints"] == 3 * weights["LocationReady"]
