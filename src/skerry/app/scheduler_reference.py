"""The scheduler's configuration as a reference page: fields, defaults, plugins and their points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from skerry.logic.fleet.placement.inventory import Inventory
from skerry.scheduler.config.defaults import DEFAULT_ARGUMENTS, DEFAULT_PLUGINS
from skerry.scheduler.config.gates import known_gates
from skerry.scheduler.config.load import default_configuration, dump
from skerry.scheduler.config.schema import ARGUMENTS, CONFIGURATION, GROUP_VERSION, KIND, POINTS
from skerry.scheduler.framework.plugin import Plugin
from skerry.scheduler.framework.profile import POINTS as PROTOCOLS
from skerry.scheduler.placement.registry import ENTRY_POINT_GROUP, IN_TREE
from skerry.scheduler.placement.table import LocationTable
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.scheduler import PodScheduler

_TYPE_META = frozenset({"apiVersion", "kind"})


def configuration_page() -> str:
    """Return the page without its head line."""
    lines = [
        "# Scheduler configuration\n",
        f"A file for `skerry scheduler --config`: `apiVersion: {GROUP_VERSION}`, `kind: {KIND}`,",
        "YAML or JSON, decoded strictly. Durations are Go's (`1m30s`).\n",
        "## Fields\n",
        *_fields(CONFIGURATION, default_configuration().document),
        "",
        "## Plugins\n",
        "In the order they run; each is enabled at every point it extends.\n",
        "| plugin | points | weight |",
        "|---|---|---|",
        *_plugins(),
        "",
        "## Plugin arguments\n",
    ]
    for name, schema in ARGUMENTS.items():
        lines += [f"### {name}Args\n", *_fields(schema, DEFAULT_ARGUMENTS.get(name, {})), ""]
    lines += [
        "## Placement plugins\n",
        "What carries out `spec.strategy` of EdgePlacements, in the order it runs. Packages add",
        f"more under the entry point group `{ENTRY_POINT_GROUP}`, each with weight 1.\n",
        "| plugin | points | weight |",
        "|---|---|---|",
        *_placement_plugins(),
        "",
        "## Feature gates\n",
        "What `--feature-gates` takes; any other value is refused.\n",
        "| gate | value |",
        "|---|---|",
        *(f"| `{name}` | {value} |" for name, value in known_gates()),
        "",
        "## Everything by default\n",
        "What `skerry scheduler --write-config-to` writes when nothing is configured.\n",
        "```yaml",
        dump(default_configuration()).rstrip(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _fields(schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    yield "| field | type | default |"
    yield "|---|---|---|"
    for path, kind, default in _walk(schema, defaults, ""):
        shown = "" if default is None else f"`{orjson.dumps(default).decode()}`"
        yield f"| `{path}` | {kind} | {shown} |"


def _walk(
    schema: Mapping[str, Any], defaults: Mapping[str, Any], prefix: str
) -> Iterator[tuple[str, str, Any]]:
    for name, kind in schema.items():
        if not prefix and name in _TYPE_META:
            continue
        path, default = f"{prefix}{name}", defaults.get(name)
        if name == "plugins":
            points = ", ".join(POINTS)
            yield f"{path}.POINT.enabled[], .disabled[]", f"name, weight; POINT of {points}", None
        elif isinstance(kind, dict):
            yield from _walk(kind, default or {}, f"{path}.")
        elif isinstance(kind, list) and isinstance(kind[0], dict):
            first = default[0] if path in ("profiles",) and default else {}
            yield from _walk(kind[0], first, f"{path}[].")
        else:
            shown = f"list of {kind[0]}" if isinstance(kind, list) else kind
            yield path, shown, None if name == "pluginConfig" else default


def _plugins() -> Iterator[str]:
    scheduler = PodScheduler(default_configuration(), in_tree_registry())
    (profile,) = scheduler.profiles.values()
    made = profile.framework.made
    for name, weight in DEFAULT_PLUGINS:
        points = ", ".join(point for point in POINTS if _extends(made[name], point))
        yield f"| {name} | {points} | {weight or '-'} |"


def _placement_plugins() -> Iterator[str]:
    table = LocationTable(Inventory())
    for plugin, weight in IN_TREE:
        made: Plugin = plugin({}, table)
        points = [point for point in POINTS if _extends(made, point)]
        yield f"| {made.name} | {', '.join(points)} | {weight if 'score' in points else '-'} |"


def _extends(plugin: Plugin, point: str) -> bool:
    return point in PROTOCOLS and isinstance(plugin, PROTOCOLS[point][0])
