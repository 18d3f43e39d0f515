"""Plugins by name: no two of one name, from wherever they come."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from skerry.scheduler.framework.registry import Registry, RegistryError, installed_plugins


class Mine:
    name = "Mine"

    def __init__(self, args: Any, handle: Any) -> None:
        self.args = args


def test_a_plugin_is_found_by_its_name() -> None:
    registry = Registry({"Mine": Mine})
    assert "Mine" in registry
    assert registry.get("Mine") is Mine
    assert registry.get("Yours") is None
    assert registry.names() == ["Mine"]


def test_two_of_one_name_are_refused() -> None:
    registry = Registry({"Mine": Mine})
    with pytest.raises(RegistryError, match="a plugin named Mine already exists"):
        registry.register("Mine", Mine)
    with pytest.raises(RegistryError, match="already exists"):
        registry.merge(Registry({"Other": Mine, "Mine": Mine}))


def test_installed_packages_offer_theirs() -> None:
    found = EntryPoint("Mine", f"{__name__}:Mine", "skerry.scheduler.plugins")
    assert installed_plugins([found]).get("Mine") is not None
    with pytest.raises(RegistryError):
        installed_plugins([found, found])
    assert installed_plugins([]).names() == []
