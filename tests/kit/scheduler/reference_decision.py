"""The simple scheduler's decision: every rule for every node, then every score."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from skerry.api.objects import Object
from tests.kit.scheduler import reference_storage as storage
from tests.kit.scheduler.reference import (
    World,
    fit,
    inter_pod,
    name_of,
    named_nodes,
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    spread,
    taint_toleration,
)
from tests.kit.scheduler.reference_scores import (
    balanced,
    fit_score,
    image_locality,
    inter_pod_scores,
    node_affinity_scores,
    spread_scores,
    taint_scores,
)

Refusal = tuple[str, tuple[str, ...]]

# In the order plugins run.
FILTERS = [
    ("NodeUnschedulable", node_unschedulable),
    ("NodeName", node_name),
    ("TaintToleration", taint_toleration),
    ("NodeAffinity", node_affinity),
    ("NodePorts", node_ports),
    ("NodeResourcesFit", fit),
    ("VolumeRestrictions", storage.restrictions),
    ("NodeVolumeLimits", storage.limits),
    ("VolumeBinding", storage.binding),
    ("VolumeZone", storage.zone),
    ("PodTopologySpread", spread),
    ("InterPodAffinity", inter_pod),
]


@dataclass
class Outcome:
    feasible: list[str]
    refusals: dict[str, Refusal]
    totals: dict[str, int]
    chosen: str
    message: str


def schedule(world: World, pod: Object) -> Outcome:
    """Decide for one pod, nodes in the order given, the first of the best."""
    named = named_nodes(pod)
    whole = pod_refusal(world, pod)
    if whole is not None:
        text = f"0/{len(world.nodes)} nodes are available: {whole[1]}."
        return Outcome([], {}, {}, "", text)
    refusals: dict[str, Refusal] = {}
    feasible = []
    for node in world.nodes:
        if named is not None and name_of(node) not in named:
            refusals[name_of(node)] = ("", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
            continue
        found = refused(world, pod, node)
        if found is None:
            feasible.append(node)
        else:
            refusals[name_of(node)] = found
    totals = score(world, pod, feasible) if feasible else {}
    best = max(totals.values(), default=0)
    chosen = next((name for name, total in totals.items() if total == best), "")
    return Outcome(
        [name_of(n) for n in feasible], refusals, totals, chosen, message(world, refusals)
    )


def pod_refusal(world: World, pod: Object) -> tuple[str, str] | None:
    """Return who turns the pod down whatever the node, and why."""
    if named_nodes(pod) == set():
        return "NodeAffinity", "pod affinity terms conflict"
    return storage.claims_refusal(world, pod)


def refusal(world: World, pod: Object, node: Object) -> Refusal | None:
    """Return the first plugin that refuses *node*, and its reasons."""
    for plugin, rule in FILTERS:
        reasons = rule(world, pod, node)
        if reasons is not None:
            return plugin, reasons
    return None


def priority_of(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def refused(world: World, pod: Object, node: Object) -> Refusal | None:
    """Return why *pod* cannot be on *node*, with those promised the node there and without."""
    promised = [
        (other, home)
        for other, home in world.nominated
        if home == name_of(node) and other is not pod and priority_of(other) >= priority_of(pod)
    ]
    worlds = [replace(world, pods=[*world.pods, *promised]), world] if promised else [world]
    for each in worlds:
        whole = pod_refusal(each, pod)
        if whole is not None:
            return whole[0], (whole[1],)
        found = refusal(each, pod, node)
        if found is not None:
            return found
    return None


def score(world: World, pod: Object, nodes: list[Object]) -> dict[str, int]:
    taints = taint_scores(world, pod, nodes)
    affinity = node_affinity_scores(world, pod, nodes)
    spreading = spread_scores(world, pod, nodes)
    pods = inter_pod_scores(world, pod, nodes)
    return {
        name: 3 * taints[name]
        + 2 * affinity[name]
        + 2 * spreading[name]
        + 2 * pods[name]
        + fit_score(world, pod, node)
        + balanced(world, pod, node)
        + image_locality(world, pod, node)
        for node in nodes
        for name in [name_of(node)]
    }


def message(world: World, refusals: dict[str, Refusal]) -> str:
    counts = Counter(reason for _, reasons in refusals.values() for reason in reasons)
    listed = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{len(world.nodes)} nodes are available: {', '.join(listed)}."
