"""The plugins that come with skerry bear kube-scheduler's names and are made by them."""

from __future__ import annotations

from skerry.scheduler.cache.cluster import Cluster
from skerry.scheduler.config.defaults import DEFAULT_PLUGINS, with_default_arguments
from skerry.scheduler.framework.handle import Handle
from skerry.scheduler.registry import in_tree_registry


def test_every_plugin_can_be_made_and_knows_its_name() -> None:
    registry = in_tree_registry()
    for name, _ in DEFAULT_PLUGINS:
        factory = registry.get(name)
        assert factory is not None
        args = with_default_arguments(name, None) or {}
        assert factory(args, Handle(Cluster())).name == name


def test_others_are_merged_into_a_fresh_one_each_time() -> None:
    assert in_tree_registry() is not in_tree_registry()
    assert in_tree_registry().names() == in_tree_registry().names()
