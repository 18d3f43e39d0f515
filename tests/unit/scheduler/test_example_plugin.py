"""The documented example plugin works as its text says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from skerry.scheduler.config.load import load
from skerry.scheduler.framework.registry import Registry
from skerry.scheduler.registry import in_tree_registry
from tests.kit.scheduler.fixtures import Bench, node, pod

EXAMPLE = Path(__file__).parents[3] / "examples" / "scheduler_plugin" / "prefer_label.py"

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: PreferLabel, weight: 5}]}}
  pluginConfig: [{name: PreferLabel, args: {key: example.com/team}}]
"""


def example() -> Any:
    spec = importlib.util.spec_from_file_location("prefer_label", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PreferLabel


def test_the_example_draws_pods_to_their_teams_nodes() -> None:
    registry = in_tree_registry()
    registry.merge(Registry({"PreferLabel": example()}))
    bench = Bench(load(CONFIG), registry)
    bench.nodes(node("a"), node("b", {"example.com/team": "blue"}))
    assert bench.decide(pod("p", {"example.com/team": "blue"})) == "b"
    assert bench.decide(pod("q")) == "a"


def test_the_example_is_as_short_as_promised() -> None:
    code = EXAMPLE.read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
