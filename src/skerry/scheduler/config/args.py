"""What plugin arguments must satisfy, in kube-scheduler's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skerry.api.errors import FieldError
from skerry.logic.machinery.names import qualified_name
from skerry.scheduler.cache.terms import preferred_terms, required_terms


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def default_preemption_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check how many candidates are looked at."""
    errors: list[FieldError] = []
    percentage = args.get("minCandidateNodesPercentage", 0)
    absolute = args.get("minCandidateNodesAbsolute", 0)
    percentage_path = _child(path, "minCandidateNodesPercentage")
    absolute_path = _child(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        detail = "not in valid range [0, 100]"
        errors.append(FieldError.invalid(percentage_path, percentage, detail))
    if absolute < 0:
        errors.append(FieldError.invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        text = "cannot be zero at the same time as "
        errors += [
            FieldError.invalid(percentage_path, 0, text + "minCandidateNodesAbsolute"),
            FieldError.invalid(absolute_path, 0, text + "minCandidateNodesPercentage"),
        ]
    return errors


def inter_pod_affinity_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check the weight of required affinity in scoring."""
    weight = args.get("hardPodAffinityWeight", 1)
    if 0 <= weight <= 100:
        return []
    where = _child(path, "hardPodAffinityWeight")
    return [FieldError.invalid(where, weight, "not in valid range [0, 100]")]


def node_affinity_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check the affinity a profile adds to every pod."""
    added = args.get("addedAffinity") or {}
    errors = []
    for field, read in (
        ("requiredDuringSchedulingIgnoredDuringExecution", required_terms),
        ("preferredDuringSchedulingIgnoredDuringExecution", preferred_terms),
    ):
        where = _child(path, f"addedAffinity.{field}")
        try:
            read(added)
        except ValueError as problem:
            errors.append(FieldError.invalid(where, added.get(field), str(problem)))
    return errors


def balanced_allocation_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check which resources are balanced; all weigh the same."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(args.get("resources") or ()):
        where = _child(path, f"resources[{index}]")
        name = item.get("name", "")
        if name in seen:
            errors.append(FieldError.duplicate(f"{where}.name", name))
        seen.add(name)
        if item.get("weight") != 1:
            errors.append(FieldError.invalid(f"{where}.weight", item.get("weight"), "must be 1"))
    return errors


def node_resources_fit_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check ignored resources and the scoring strategy."""
    errors: list[FieldError] = []
    for index, name in enumerate(args.get("ignoredResources") or ()):
        errors += _name_errors(name, _child(path, f"ignoredResources[{index}]"))
    for index, group in enumerate(args.get("ignoredResourceGroups") or ()):
        where = _child(path, f"ignoredResourceGroups[{index}]")
        if "/" in group:
            detail = "resource group name can't contain '/'"
            errors.append(FieldError.invalid(where, group, detail))
        errors += _name_errors(group, where)
    strategy = args.get("scoringStrategy")
    if strategy is not None:
        errors += _strategy_errors(strategy, _child(path, "scoringStrategy"))
    return errors


_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def _strategy_errors(strategy: Mapping[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = strategy.get("type", "")
    if kind not in _STRATEGIES:
        errors.append(FieldError.not_supported(f"{path}.type", kind, _STRATEGIES))
    for index, item in enumerate(strategy.get("resources") or ()):
        weight = item.get("weight", 0)
        if not 0 < weight <= 100:
            detail = f"resource weight of {item.get('name', '')} not in valid range (0, 100]"
            where = f"{path}.resources[{index}].weight"
            errors.append(FieldError.invalid(where, weight, detail))
    ratio = strategy.get("requestedToCapacityRatio")
    if ratio is not None or kind == "RequestedToCapacityRatio":
        errors += _shape_errors((ratio or {}).get("shape") or (), f"{path}.shape")
    return errors


def _shape_errors(shape: Sequence[Mapping[str, Any]], path: str) -> list[FieldError]:
    if not shape:
        return [FieldError.required(path, "at least one point must be specified")]
    errors: list[FieldError] = []
    used = [point.get("utilization", 0) for point in shape]
    for index in range(1, len(used)):
        if used[index - 1] >= used[index]:
            where = f"{path}[{index}].utilization"
            detail = "utilization values must be sorted in increasing order"
            errors.append(FieldError.invalid(where, used[index], detail))
            break
    for index, point in enumerate(shape):
        for field, highest in (("utilization", 100), ("score", 10)):
            value = point.get(field, 0)
            if not 0 <= value <= highest:
                detail = f"not in valid range [0, {highest}]"
                errors.append(FieldError.invalid(f"{path}[{index}].{field}", value, detail))
    return errors


def pod_topology_spread_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check default constraints, which must not select pods themselves."""
    errors: list[FieldError] = []
    kind = args.get("defaultingType", "")
    constraints = args.get("defaultConstraints") or ()
    where = _child(path, "defaultingType")
    if kind not in ("System", "List"):
        errors.append(FieldError.not_supported(where, kind, ("System", "List")))
    elif kind == "System" and constraints:
        errors.append(FieldError.invalid(where, kind, "when .defaultConstraints are not empty"))
    for index in range(len(constraints)):
        errors += _constraint_errors(constraints, index, _child(path, "defaultConstraints"))
    return errors


def _constraint_errors(
    constraints: Sequence[Mapping[str, Any]], index: int, path: str
) -> list[FieldError]:
    item, where = constraints[index], f"{path}[{index}]"
    errors: list[FieldError] = []
    skew = item.get("maxSkew", 0)
    if skew <= 0:
        detail = "not in valid range (0, inf)"
        errors.append(FieldError.invalid(f"{where}.maxSkew", skew, detail))
    key = item.get("topologyKey", "")
    if not key:
        errors.append(FieldError.required(f"{where}.topologyKey", "can not be empty"))
    else:
        errors += _name_errors(key, f"{where}.topologyKey")
    action = item.get("whenUnsatisfiable", "")
    supported = ("DoNotSchedule", "ScheduleAnyway")
    if not action:
        errors.append(FieldError.required(f"{where}.whenUnsatisfiable", "can not be empty"))
    elif action not in supported:
        errors.append(FieldError.not_supported(f"{where}.whenUnsatisfiable", action, supported))
    if item.get("labelSelector") is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        errors.append(FieldError.forbidden(f"{where}.labelSelector", detail))
    pair = (key, action)
    earlier = [(i.get("topologyKey", ""), i.get("whenUnsatisfiable", "")) for i in constraints]
    if pair in earlier[:index]:
        errors.append(FieldError.duplicate(where, f"{{{key}, {action}}}"))
    return errors


def volume_binding_errors(args: Mapping[str, Any], path: str) -> list[FieldError]:
    """Check the time limit of binding volumes."""
    errors: list[FieldError] = []
    seconds = args.get("bindTimeoutSeconds", 600)
    if seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        errors.append(FieldError.invalid(_child(path, "bindTimeoutSeconds"), seconds, detail))
    if args.get("shape") is not None:
        detail = (
            "unexpected field `shape`, remove it or turn on the feature gate VolumeCapacityPriority"
        )
        errors.append(FieldError.invalid(_child(path, "shape"), args["shape"], detail))
    return errors


def _name_errors(name: str, path: str) -> list[FieldError]:
    return [FieldError.invalid(path, name, detail) for detail in qualified_name(name)]


# NodeResourcesFit is missing on purpose: kube-scheduler checks it when the plugin is made.
CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], list[FieldError]]] = {
    "DefaultPreemption": default_preemption_errors,
    "InterPodAffinity": inter_pod_affinity_errors,
    "NodeAffinity": node_affinity_errors,
    "NodeResourcesBalancedAllocation": balanced_allocation_errors,
    "PodTopologySpread": pod_topology_spread_errors,
    "VolumeBinding": volume_binding_errors,
}
