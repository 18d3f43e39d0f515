"""Scores, one node at a time; the second part of the simple scheduler."""

from __future__ import annotations

import math
from collections import Counter

from skerry.api.objects import Object
from tests.kit.scheduler.reference import (
    HOST,
    NONZERO,
    World,
    affinity_terms,
    constraints,
    default_constraints,
    labels_of,
    name_of,
    near,
    node_counts,
    number,
    requests,
    spread_count,
    term_holds,
    term_means,
    untolerated,
)


def fit_score(world: World, pod: Object, node: Object) -> int:
    """Rate fullness by the configured strategy."""
    strategy = world.options.strategy
    total = weights = 0
    for item in strategy.get("resources") or [{"name": "cpu"}, {"name": "memory"}]:
        resource, weight = item["name"], item.get("weight", 1)
        capacity = number(resource, node["status"]["allocatable"].get(resource, 0))
        scalar = "/" in resource
        if capacity == 0 or (scalar and not requests(pod).get(resource, 0)):
            continue
        used = sum(requests(each, NONZERO).get(resource, 0) for each in [*world.on(node), pod])
        points = fullness_points(strategy, capacity, used)
        if strategy["type"] == "RequestedToCapacityRatio":
            if points > 0:
                total, weights = total + points * weight, weights + weight
        else:
            total, weights = total + points * weight, weights + weight
    if not weights:
        return 0
    if strategy["type"] == "RequestedToCapacityRatio":
        return math.floor(total / weights + 0.5)
    return total // weights


def fullness_points(strategy: Object, capacity: int, used: int) -> int:
    if strategy["type"] == "LeastAllocated":
        return (capacity - used) * 100 // capacity if used <= capacity else 0
    if strategy["type"] == "MostAllocated":
        return min(used, capacity) * 100 // capacity
    utilization = 100 if used > capacity else used * 100 // capacity
    shape = [
        (p["utilization"], p["score"] * 10) for p in strategy["requestedToCapacityRatio"]["shape"]
    ]
    for index, (x, y) in enumerate(shape):
        if utilization <= x:
            if index == 0:
                return int(y)
            x0, y0 = shape[index - 1]
            return int(y0 + math.trunc((y - y0) * (utilization - x0) / (x - x0)))
    return int(shape[-1][1])


def balanced(world: World, pod: Object, node: Object) -> int:
    fractions = []
    for resource in ("cpu", "memory"):
        capacity = number(resource, node["status"]["allocatable"].get(resource, 0))
        if capacity:
            used = sum(requests(p).get(resource, 0) for p in [*world.on(node), pod])
            fractions.append(min(used / capacity, 1.0))
    deviation = abs((fractions[0] - fractions[1]) / 2) if len(fractions) == 2 else 0.0
    return int((1 - deviation) * 100)


def image_locality(world: World, pod: Object, node: Object) -> int:
    def sizes(of: Object) -> dict[str, int]:
        listed = of["status"].get("images") or ()
        return {name: image["sizeBytes"] for image in listed for name in image["names"]}

    total = 0
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    for container in containers:
        image = container.get("image", "")
        if image.rfind(":") <= image.rfind("/"):
            image += ":latest"
        if image in sizes(node):
            holders = sum(image in sizes(other) for other in world.nodes)
            total += int(sizes(node)[image] * (holders / len(world.nodes)))
    low, high = 23 * 2**20, 1000 * 2**20 * len(containers)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def scale(raw: dict[str, int], reverse: bool = False) -> dict[str, int]:
    highest = max(raw.values())
    if highest == 0:
        return dict.fromkeys(raw, 100 if reverse else 0)
    scaled = {name: value * 100 // highest for name, value in raw.items()}
    return {name: 100 - value for name, value in scaled.items()} if reverse else scaled


def taint_scores(world: World, pod: Object, nodes: list[Object]) -> dict[str, int]:
    raw = {name_of(n): len(untolerated(n, pod, ("PreferNoSchedule",))) for n in nodes}
    return scale(raw, reverse=True)


def node_affinity_scores(world: World, pod: Object, nodes: list[Object]) -> dict[str, int]:
    preferred = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "preferredDuringSchedulingIgnoredDuringExecution"
    )
    added = (world.options.added_affinity or {}).get(
        "preferredDuringSchedulingIgnoredDuringExecution"
    )
    preferred = [*(preferred or ()), *(added or ())]
    if not preferred:
        return dict.fromkeys(map(name_of, nodes), 0)
    raw = {
        name_of(node): sum(
            item["weight"] for item in preferred if term_holds(item["preference"], node)
        )
        for node in nodes
    }
    return scale(raw)


def spread_scores(world: World, pod: Object, nodes: list[Object]) -> dict[str, int]:
    soft = constraints(pod, "ScheduleAnyway")
    own = bool(pod["spec"].get("topologySpreadConstraints"))
    if not own:
        soft = default_constraints(world, pod, "ScheduleAnyway")
    if not soft:
        return dict.fromkeys(map(name_of, nodes), 0)
    # The system's own constraints let nodes without a zone still spread by host.
    all_keys = own or world.options.spread_defaults is not None

    def labelled(node: Object) -> bool:
        return not all_keys or all(item["topologyKey"] in labels_of(node) for item in soft)

    counted = [node for node in nodes if labelled(node)]
    raw: dict[str, float] = dict.fromkeys(map(name_of, counted), 0.0)
    for item in soft:
        key = item["topologyKey"]
        domains = {labels_of(node)[key] for node in counted if key in labels_of(node)}
        size = len(counted) if key == HOST else len(domains)
        for node in counted:
            if key not in labels_of(node):
                continue
            if key == HOST:
                count = spread_count(world, pod, node, item)
            else:
                count = sum(
                    spread_count(world, pod, other, item)
                    for other in world.nodes
                    if labelled(other)
                    and labels_of(other).get(key) == labels_of(node)[key]
                    and node_counts(pod, other, item)
                )
            raw[name_of(node)] += count * math.log(size + 2) + (item["maxSkew"] - 1)
    whole = {name: math.floor(value + 0.5) for name, value in raw.items()}
    highest, lowest = max(whole.values(), default=0), min(whole.values(), default=0)
    return {
        name_of(node): 0
        if not labelled(node)
        else 100
        if highest == 0
        else 100 * (highest + lowest - whole[name_of(node)]) // highest
        for node in nodes
    }


def inter_pod_scores(world: World, pod: Object, nodes: list[Object]) -> dict[str, int]:
    if world.options.ignore_preferred and not has_preferences(pod):
        return dict.fromkeys(map(name_of, nodes), 0)
    raw: Counter[str] = Counter()
    for node in nodes:
        raw[name_of(node)] += 0
        for sign, kind in ((1, "podAffinity"), (-1, "podAntiAffinity")):
            for item in affinity_terms(pod, kind, "preferred"):
                term = item["podAffinityTerm"]
                for other in near(world, node, term["topologyKey"]):
                    if term_means(world, term, pod, other):
                        raw[name_of(node)] += sign * item["weight"]
        for key in labels_of(node):
            for other in near(world, node, key):
                raw[name_of(node)] += carried_weight(world, pod, other, key)
    lowest, highest = min(raw.values()), max(raw.values())
    if highest == lowest:
        return dict.fromkeys(raw, 0)
    return {n: int(100.0 * ((value - lowest) / (highest - lowest))) for n, value in raw.items()}


def carried_weight(world: World, pod: Object, other: Object, key: str) -> int:
    total = 0
    for term in affinity_terms(other, "podAffinity", "required"):
        if term["topologyKey"] == key and term_means(world, term, other, pod):
            total += world.options.hard_weight
    for sign, kind in ((1, "podAffinity"), (-1, "podAntiAffinity")):
        for item in affinity_terms(other, kind, "preferred"):
            term = item["podAffinityTerm"]
            if term["topologyKey"] == key and term_means(world, term, other, pod):
                total += sign * item["weight"]
    return total


def has_preferences(pod: Object) -> bool:
    """Tell whether a pod prefers or avoids company."""
    kinds = ("podAffinity", "podAntiAffinity")
    return any(affinity_terms(pod, kind, "preferred") for kind in kinds)
