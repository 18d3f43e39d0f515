"""From a profile's configuration to ordered lists of plugins.

``multiPoint`` enables a plugin at every point it extends; a point's own lists override it. The
order at each point: plugins of multiPoint that the point re-configures (in the point's order),
the other multiPoint plugins, then what only the point names. The texts of the errors are
kube-scheduler's, since scripts and people search for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skerry.scheduler.framework import plugin as points
from skerry.scheduler.framework.plugin import MAX_SCORE, Plugin
from skerry.scheduler.framework.registry import Registry

MAX_TOTAL_SCORE = 2**63 - 1

# Configuration name of a point → (protocol, the name error texts use).
POINTS: Mapping[str, tuple[type[Any], str]] = {
    "preFilter": (points.PreFilterPlugin, "PreFilterPlugin"),
    "filter": (points.FilterPlugin, "FilterPlugin"),
    "postFilter": (points.PostFilterPlugin, "PostFilterPlugin"),
    "reserve": (points.ReservePlugin, "ReservePlugin"),
    "preScore": (points.PreScorePlugin, "PreScorePlugin"),
    "score": (points.ScorePlugin, "ScorePlugin"),
    "preBind": (points.PreBindPlugin, "PreBindPlugin"),
    "bind": (points.BindPlugin, "BindPlugin"),
    "postBind": (points.PostBindPlugin, "PostBindPlugin"),
    "permit": (points.PermitPlugin, "PermitPlugin"),
    "preEnqueue": (points.PreEnqueuePlugin, "PreEnqueuePlugin"),
    "queueSort": (points.QueueSortPlugin, "QueueSortPlugin"),
}


class ProfileError(Exception):
    """A profile cannot be assembled."""


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin as a list in the configuration names it."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What one point enables and disables."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """One profile, defaults already merged in."""

    scheduler_name: str
    plugins: Mapping[str, PluginSet]
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    percentage_of_nodes_to_score: int | None = None

    def at(self, point: str) -> PluginSet:
        return self.plugins.get(point, PluginSet())


@dataclass(frozen=True, slots=True)
class Assembled:
    """The plugins of a profile, made and ordered."""

    spec: ProfileSpec
    made: Mapping[str, Plugin]
    at: Mapping[str, Sequence[Plugin]]
    weights: Mapping[str, int]


def assemble(
    spec: ProfileSpec, registry: Registry, handle: Any, *, decides_only: bool = False
) -> Assembled:
    """Make the plugins a profile needs and put them in order; raises ProfileError.

    A profile that *decides_only* needs neither to sort a queue nor to bind: whoever asks for its
    decisions does that.
    """
    made = _made(spec, registry, handle)
    at = {point: _specific(spec.at(point), point, made) for point in POINTS}
    if spec.at("multiPoint").enabled:
        for point in POINTS:
            at[point] = _expanded(spec, point, made, at[point])
    if not decides_only:
        _check_counts(spec.scheduler_name, at)
    return Assembled(spec, made, at, _weights(spec, made))


def _made(spec: ProfileSpec, registry: Registry, handle: Any) -> dict[str, Plugin]:
    needed = {ref.name for plugin_set in spec.plugins.values() for ref in plugin_set.enabled}
    made: dict[str, Plugin] = {}
    for name in registry.names():
        factory = registry.get(name) if name in needed else None
        if factory is None:
            continue
        try:
            made[name] = factory(spec.args.get(name, {}), handle)
        except (ValueError, TypeError, LookupError) as problem:
            raise ProfileError(f'initializing plugin "{name}": {problem}') from problem
    return made


def _specific(plugin_set: PluginSet, point: str, made: Mapping[str, Plugin]) -> list[Plugin]:
    protocol, label = POINTS[point]
    plugins: dict[str, Plugin] = {}
    for ref in plugin_set.enabled:
        plugin = made.get(ref.name)
        if plugin is None:
            raise ProfileError(f'{label} "{ref.name}" does not exist')
        if not isinstance(plugin, protocol):
            raise ProfileError(f'plugin "{ref.name}" does not extend {label} plugin')
        if ref.name in plugins:
            raise ProfileError(f'plugin "{ref.name}" already registered as "{label}"')
        plugins[ref.name] = plugin
    return list(plugins.values())


def _expanded(
    spec: ProfileSpec, point: str, made: Mapping[str, Plugin], specific: list[Plugin]
) -> list[Plugin]:
    protocol, label = POINTS[point]
    plugin_set = spec.at(point)
    if "*" in plugin_set.disabled:
        return specific
    named = {ref.name for ref in plugin_set.enabled}
    overriding: set[str] = set()
    multipoint: dict[str, Plugin] = {}
    for ref in spec.at("multiPoint").enabled:
        plugin = made.get(ref.name)
        if plugin is None:
            raise ProfileError(f'{label} "{ref.name}" does not exist')
        if not isinstance(plugin, protocol) or ref.name in plugin_set.disabled:
            continue
        if ref.name in named:
            overriding.add(ref.name)
            continue
        if ref.name in multipoint:
            raise ProfileError(f'plugin "{ref.name}" already registered as "{label}"')
        multipoint[ref.name] = plugin
    first = [made[ref.name] for ref in plugin_set.enabled if ref.name in overriding]
    last = [made[ref.name] for ref in plugin_set.enabled if ref.name not in overriding]
    return [*first, *multipoint.values(), *last]


def _check_counts(name: str, at: Mapping[str, Sequence[Plugin]]) -> None:
    if len(at["queueSort"]) != 1:
        raise ProfileError(
            f'only one queue sort plugin required for profile with scheduler name "{name}", '
            f"but got {len(at['queueSort'])}"
        )
    if not at["bind"]:
        raise ProfileError(
            f'at least one bind plugin is needed for profile with scheduler name "{name}"'
        )


def _weights(spec: ProfileSpec, made: Mapping[str, Plugin]) -> dict[str, int]:
    """Return each score plugin's weight; the score point's own beats multiPoint's."""
    weights: dict[str, int] = {}
    total = 0
    for ref in (*spec.at("score").enabled, *spec.at("multiPoint").enabled):
        if ref.name in weights or not isinstance(made.get(ref.name), points.ScorePlugin):
            continue
        weights[ref.name] = ref.weight or 1
        if weights[ref.name] * MAX_SCORE > MAX_TOTAL_SCORE - total:
            raise ProfileError("total score of Score plugins could overflow")
        total += weights[ref.name] * MAX_SCORE
    return weights
