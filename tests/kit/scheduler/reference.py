"""A deliberately simple scheduler to compare the fast one with.

One node, one pod, one rule at a time, straight from the behaviour notes: no arrays, no caches, no
sharing with the code under test beyond the parsers of quantities and selectors. Here are the world
and the rules about nodes and pods; ``reference_storage`` has those about volumes,
``reference_scores`` the scores, ``reference_decision`` puts them together and
``reference_preemption`` makes room.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from skerry.api.objects import Object
from skerry.logic.machinery.quantity import Quantity
from skerry.logic.machinery.selectors import Selector

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


@dataclass
class Options:
    """How plugins are configured, where that is not the default."""

    # Of NodeResourcesFit: its scoringStrategy and resources left to others.
    strategy: Object = field(default_factory=lambda: {"type": "LeastAllocated"})
    ignored: list[str] = field(default_factory=list)
    added_affinity: Object | None = None
    hard_weight: int = 1
    ignore_preferred: bool = False
    # None: the system's own.
    spread_defaults: list[Object] | None = None


@dataclass
class Storage:
    """Everything about volumes; objects as the API has them."""

    claims: list[Object] = field(default_factory=list)
    volumes: list[Object] = field(default_factory=list)
    classes: list[Object] = field(default_factory=list)
    csi_nodes: list[Object] = field(default_factory=list)
    csi_drivers: list[Object] = field(default_factory=list)
    capacities: list[Object] = field(default_factory=list)
    attachments: list[Object] = field(default_factory=list)


@dataclass
class World:
    nodes: list[Object]
    # Placed pods with their node names.
    pods: list[tuple[Object, str]] = field(default_factory=list)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    services: list[Object] = field(default_factory=list)
    storage: Storage = field(default_factory=Storage)
    budgets: list[Object] = field(default_factory=list)
    # Pods that wait for room being made on a node.
    nominated: list[tuple[Object, str]] = field(default_factory=list)
    options: Options = field(default_factory=Options)

    def on(self, node: Object) -> list[Object]:
        return [pod for pod, name in self.pods if name == name_of(node)]


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def labels_of(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def namespace_of(pod: Object) -> str:
    return str(pod["metadata"].get("namespace") or "default")


def terminating(pod: Object) -> bool:
    return pod["metadata"].get("deletionTimestamp") is not None


def number(resource: str, text: Any) -> int:
    quantity = Quantity.parse(text)
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def requests(pod: Object, missing: dict[str, int] | None = None) -> dict[str, int]:
    total: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        total.update(container_requests(container, missing))
    sidecars: Counter[str] = Counter()
    peak: dict[str, int] = {}
    for container in pod["spec"].get("initContainers") or ():
        own = Counter(container_requests(container, missing))
        if container.get("restartPolicy") == "Always":
            total.update(own)
            sidecars.update(own)
            moment = Counter(sidecars)
        else:
            moment = own + sidecars
        for name, value in moment.items():
            peak[name] = max(peak.get(name, 0), value)
    needed = {name: max(total.get(name, 0), peak.get(name, 0)) for name in {*total, *peak}}
    for name, text in (pod["spec"].get("overhead") or {}).items():
        needed[name] = needed.get(name, 0) + number(name, text)
    return needed


def container_requests(container: Object, missing: dict[str, int] | None) -> dict[str, int]:
    listed = (container.get("resources") or {}).get("requests") or {}
    return {**(missing or {}), **{name: number(name, text) for name, text in listed.items()}}


NONZERO = {"cpu": 100, "memory": 200 * 1024 * 1024}


# --- filters: each returns (reasons) or None; the list order is the plugin order


def tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def untolerated(node: Object, pod: Object, effects: tuple[str, ...]) -> list[Object]:
    tolerations = pod["spec"].get("tolerations") or ()
    taints = (node.get("spec") or {}).get("taints") or ()
    return [
        taint
        for taint in taints
        if taint["effect"] in effects and not any(tolerates(t, taint) for t in tolerations)
    ]


def node_unschedulable(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    if not (node.get("spec") or {}).get("unschedulable"):
        return None
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if any(tolerates(t, cordon) for t in pod["spec"].get("tolerations") or ()):
        return None
    return ("node(s) were unschedulable",)


def taint_toleration(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    found = untolerated(node, pod, ("NoSchedule", "NoExecute"))
    if not found:
        return None
    taint = found[0]
    return (f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}",)


def expression_holds(item: Object, labels: dict[str, str]) -> bool:
    key, operator, values = item["key"], item["operator"], item.get("values") or []
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            pass
    if value is None or not value.lstrip("-").isdigit():
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def term_holds(term: Object, node: Object) -> bool:
    labels, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not labels and not fields:
        return False
    named = {"metadata.name": name_of(node)}
    return all(expression_holds(item, labels_of(node)) for item in labels) and all(
        expression_holds(item, named) for item in fields
    )


def node_wanted(pod: Object, node: Object) -> bool:
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels_of(node).get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(term_holds(term, node) for term in required["nodeSelectorTerms"])


def node_name(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    if pod["spec"].get("nodeName") in (None, "", name_of(node)):
        return None
    return ("node(s) didn't match the requested node name",)


def node_affinity(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    required = (world.options.added_affinity or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required and not any(term_holds(term, node) for term in required["nodeSelectorTerms"]):
        return ("node(s) didn't match scheduler-enforced node affinity",)
    if node_wanted(pod, node):
        return None
    return ("node(s) didn't match Pod's node affinity/selector",)


def named_nodes(pod: Object) -> set[str] | None:
    """Return the only nodes a pod's affinity names, None when it does not name nodes."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return None
    found: set[str] = set()
    for term in required["nodeSelectorTerms"]:
        named = [
            set(item["values"])
            for item in term.get("matchFields") or ()
            if item["key"] == "metadata.name" and item["operator"] == "In"
        ]
        if not named:
            return None
        found |= set.intersection(*named)
    return found


def scheduling_gates(pod: Object) -> str:
    names = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
    return f"waiting for scheduling gates: [{' '.join(names)}]" if names else ""


def host_ports(pod: Object) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def node_ports(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    for address, protocol, port in host_ports(pod):
        for other in world.on(node):
            for its_address, its_protocol, its_port in host_ports(other):
                same = address == its_address or "0.0.0.0" in (address, its_address)
                if same and (protocol, port) == (its_protocol, its_port):
                    return ("node(s) didn't have free ports for the requested pod ports",)
    return None


def fit(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    allocatable = node["status"]["allocatable"]
    placed = world.on(node)
    reasons = []
    if len(placed) + 1 > int(allocatable.get("pods", 0)):
        reasons.append("Too many pods")
    wanted = requests(pod)
    first = ["cpu", "memory", "ephemeral-storage"]
    for resource in [*first, *sorted(set(wanted) - set(first))]:
        need = 0 if resource in world.options.ignored else wanted.get(resource, 0)
        used = sum(requests(other).get(resource, 0) for other in placed)
        if need > 0 and need > number(resource, allocatable.get(resource, 0)) - used:
            reasons.append(f"Insufficient {resource}")
    return tuple(reasons) or None


def constraints(pod: Object, action: str) -> list[Object]:
    found = []
    for raw in pod["spec"].get("topologySpreadConstraints") or ():
        if raw["whenUnsatisfiable"] == action:
            keys = raw.get("matchLabelKeys") or ()
            extra = {key: labels_of(pod)[key] for key in keys if key in labels_of(pod)}
            found.append({**raw, "extra": extra})
    return found


SYSTEM_SPREAD: list[Object] = [
    {"topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 5},
]


def default_constraints(world: World, pod: Object, action: str) -> list[Object]:
    """Return the configured constraints for a pod without any, meaning its services' pods."""
    selectors: dict[str, str] = {}
    for service in world.services:
        labels = service["spec"].get("selector") or {}
        same = service["metadata"]["namespace"] == namespace_of(pod)
        if same and labels and Selector.from_labels(labels).matches(labels_of(pod)):
            selectors |= labels
    if not selectors:
        return []
    listed = world.options.spread_defaults
    return [
        {**item, "labelSelector": {"matchLabels": selectors}, "extra": {}}
        for item in (SYSTEM_SPREAD if listed is None else listed)
        if item["whenUnsatisfiable"] == action
    ]


def spread_matches(constraint: Object, other: Object) -> bool:
    selector = constraint.get("labelSelector")
    if selector is None:
        return False
    if not Selector.from_label_selector(selector).matches(labels_of(other)):
        return False
    return all(labels_of(other).get(key) == value for key, value in constraint["extra"].items())


def spread_selects_nothing(constraint: Object) -> bool:
    selector = constraint.get("labelSelector")
    empty = selector is not None and not Selector.from_label_selector(selector).requirements
    return empty and not constraint["extra"]


def spread_count(world: World, pod: Object, node: Object, constraint: Object) -> int:
    if spread_selects_nothing(constraint):
        return 0
    return sum(
        not terminating(other)
        and namespace_of(other) == namespace_of(pod)
        and spread_matches(constraint, other)
        for other in world.on(node)
    )


def node_counts(pod: Object, node: Object, constraint: Object) -> bool:
    if (constraint.get("nodeAffinityPolicy") or "Honor") == "Honor" and not node_wanted(pod, node):
        return False
    if (constraint.get("nodeTaintsPolicy") or "Ignore") == "Honor":
        return not untolerated(node, pod, ("NoSchedule", "NoExecute"))
    return True


def spread(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    hard = constraints(pod, "DoNotSchedule")
    if not pod["spec"].get("topologySpreadConstraints"):
        hard = default_constraints(world, pod, "DoNotSchedule")
    reason = "node(s) didn't match pod topology spread constraints"
    for constraint in hard:
        key = constraint["topologyKey"]
        if key not in labels_of(node):
            return (f"{reason} (missing required label)",)
        domains: Counter[str] = Counter()
        for other in world.nodes:
            if all(item["topologyKey"] in labels_of(other) for item in hard) and node_counts(
                pod, other, constraint
            ):
                domains[labels_of(other)[key]] += spread_count(world, pod, other, constraint)
        lowest = min(domains.values(), default=0)
        if len(domains) < (constraint.get("minDomains") or 1):
            lowest = 0
        own = int(spread_matches(constraint, pod))
        if domains.get(labels_of(node)[key], 0) + own - lowest > constraint["maxSkew"]:
            return (reason,)
    return None


def affinity_terms(pod: Object, kind: str, when: str) -> list[Object]:
    rules = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(
        f"{when}DuringSchedulingIgnoredDuringExecution"
    )
    return list(rules or ())


def term_means(world: World, term: Object, owner: Object, other: Object) -> bool:
    """Tell whether a term of *owner* means the pod *other*."""
    listed = term.get("namespaces") or []
    selector = term.get("namespaceSelector")
    if not listed and selector is None:
        listed = [namespace_of(owner)]
    space = namespace_of(other)
    meant = space in listed
    if selector is not None:
        labels = world.namespaces.get(space)
        chosen = Selector.from_label_selector(selector)
        meant = meant or (chosen.matches(labels or {}) and (labels is not None or chosen.empty))
    pods = Selector.from_label_selector(term.get("labelSelector"))
    return meant and pods.matches(labels_of(other))


def near(world: World, node: Object, key: str) -> list[Object]:
    """Return the pods in the node's domain of *key*."""
    value = labels_of(node).get(key)
    return [
        pod
        for other in world.nodes
        if value is not None and labels_of(other).get(key) == value
        for pod in world.on(other)
    ]


def inter_pod(world: World, pod: Object, node: Object) -> tuple[str, ...] | None:
    friends = affinity_terms(pod, "podAffinity", "required")
    if friends and not friendly(world, pod, node, friends):
        return ("node(s) didn't match pod affinity rules",)
    for term in affinity_terms(pod, "podAntiAffinity", "required"):
        if any(
            term_means(world, term, pod, other) for other in near(world, node, term["topologyKey"])
        ):
            return ("node(s) didn't match pod anti-affinity rules",)
    for key in labels_of(node):
        for other in near(world, node, key):
            for term in affinity_terms(other, "podAntiAffinity", "required"):
                if term["topologyKey"] == key and term_means(world, term, other, pod):
                    return ("node(s) didn't satisfy existing pods anti-affinity rules",)
    return None


def friendly(world: World, pod: Object, node: Object, terms: list[Object]) -> bool:
    def is_friend(other: Object) -> bool:
        return all(term_means(world, term, pod, other) for term in terms)

    if any(term["topologyKey"] not in labels_of(node) for term in terms):
        return False
    if all(any(map(is_friend, near(world, node, term["topologyKey"]))) for term in terms):
        return True
    anywhere = any(
        is_friend(other) and any(term["topologyKey"] in labels_of(home) for term in terms)
        for home in world.nodes
        for other in world.on(home)
    )
    return not anywhere and is_friend(pod)
