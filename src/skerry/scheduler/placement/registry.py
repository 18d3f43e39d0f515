"""Which placement plugins exist, and with what weight they score.

Packages offer more under the entry point group ``skerry.placement.plugins``: a class or function
taking ``(args, table)``. There is no configuration of placement beside ``spec.strategy``, so
installing such a package is what enables its plugins; each scores with weight one.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from skerry.scheduler.framework.profile import PluginRef, PluginSet, ProfileSpec
from skerry.scheduler.framework.registry import Registry, installed_plugins
from skerry.scheduler.placement.plugins.location_ready import LocationReady
from skerry.scheduler.placement.plugins.location_spread import LocationSpread
from skerry.scheduler.placement.plugins.location_taints import LocationTaints

ENTRY_POINT_GROUP = "skerry.placement.plugins"
PROFILE = "edge-placement"

# A taint is said on purpose, readiness changes by itself: as for pods, taints weigh three times.
IN_TREE: tuple[tuple[Any, int], ...] = (
    (LocationReady, 1),
    (LocationTaints, 3),
    (LocationSpread, 1),
)


def placement_registry(found: Iterable[EntryPoint] | None = None) -> Registry:
    """Return the plugins that come with skerry, and those installed beside it."""
    registry = Registry({plugin.name: plugin for plugin, _ in IN_TREE})
    installed = entry_points(group=ENTRY_POINT_GROUP) if found is None else found
    registry.merge(installed_plugins(installed))
    return registry


def placement_profile(registry: Registry) -> ProfileSpec:
    """Return the profile that has every plugin of *registry*."""
    weights = {plugin.name: weight for plugin, weight in IN_TREE}
    refs = tuple(PluginRef(name, weights.get(name, 1)) for name in registry.names())
    return ProfileSpec(PROFILE, {"multiPoint": PluginSet(refs)})
