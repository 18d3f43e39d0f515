"""Hypothesis strategies for small but nasty clusters."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from skerry.api.objects import Object
from tests.kit.scheduler.reference import HOST, ZONE, Options, World

KEYS = ["app", "tier", "disk"]
VALUES = ["a", "b"]
SPACES = ["default", "other"]

selectors: st.SearchStrategy[Object | None] = st.one_of(
    st.none(),
    st.just({}),
    st.fixed_dictionaries(
        {
            "matchLabels": st.dictionaries(
                st.sampled_from(KEYS), st.sampled_from(VALUES), min_size=1, max_size=2
            )
        }
    ),
    st.builds(
        lambda key, operator, values: {
            "matchExpressions": [
                {"key": key, "operator": operator}
                | ({"values": values} if operator in ("In", "NotIn") else {})
            ]
        },
        st.sampled_from(KEYS),
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=2),
    ),
)
pod_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
topology_keys = st.sampled_from([ZONE, HOST, "disk"])


@st.composite
def affinity_term(draw: st.DrawFn) -> Object:
    term: Object = {"topologyKey": draw(topology_keys), "labelSelector": draw(selectors)}
    if draw(st.booleans()):
        term["namespaces"] = draw(st.lists(st.sampled_from(SPACES), max_size=2, unique=True))
    if draw(st.integers(0, 3)) == 0:
        term["namespaceSelector"] = draw(st.sampled_from([{}, {"matchLabels": {"team": "x"}}]))
    return term


@st.composite
def pod_affinity(draw: st.DrawFn) -> Object:
    rules: Object = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.integers(0, 2)) == 0:
            rules[kind] = {
                "requiredDuringSchedulingIgnoredDuringExecution": draw(
                    st.lists(affinity_term(), max_size=2)
                ),
                "preferredDuringSchedulingIgnoredDuringExecution": draw(
                    st.lists(
                        st.builds(
                            lambda weight, term: {"weight": weight, "podAffinityTerm": term},
                            st.integers(1, 100),
                            affinity_term(),
                        ),
                        max_size=2,
                    )
                ),
            }
    return rules


node_expressions = st.one_of(
    st.builds(
        lambda key, operator, value: {"key": key, "operator": operator, "values": [value]},
        st.sampled_from([ZONE, "disk"]),
        st.sampled_from(["In", "NotIn"]),
        st.sampled_from(["z0", "z1", "a"]),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from([ZONE, "disk", "size"]),
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
    st.builds(
        lambda operator: {"key": "size", "operator": operator, "values": ["3"]},
        st.sampled_from(["Gt", "Lt"]),
    ),
)
node_terms = st.builds(
    lambda expressions: {"matchExpressions": expressions},
    st.lists(node_expressions, max_size=2),
)
name_terms = st.builds(
    lambda names, expressions: {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": names}],
        "matchExpressions": expressions,
    },
    st.lists(st.sampled_from(["n0", "n1", "gone"]), min_size=1, max_size=2, unique=True),
    st.lists(node_expressions, max_size=1),
)


@st.composite
def node_affinity(draw: st.DrawFn) -> Object:
    rules: Object = {}
    if draw(st.booleans()):
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": draw(
                st.lists(
                    draw(st.sampled_from([node_terms, node_terms, name_terms])),
                    min_size=1,
                    max_size=2,
                )
            )
        }
    if draw(st.booleans()):
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = draw(
            st.lists(
                st.builds(
                    lambda weight, term: {"weight": weight, "preference": term},
                    st.integers(1, 100),
                    node_terms,
                ),
                min_size=1,
                max_size=2,
            )
        )
    return rules


taints = st.lists(
    st.builds(
        lambda key, value, effect: {"key": key, "value": value, "effect": effect},
        st.sampled_from(["gpu", "spot"]),
        st.sampled_from(["", "yes"]),
        st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    ),
    max_size=2,
)
tolerations = st.lists(
    st.sampled_from(
        [
            {"operator": "Exists"},
            {"key": "gpu", "operator": "Exists"},
            {"key": "gpu", "operator": "Equal", "value": "yes"},
            {"key": "spot", "value": "yes", "effect": "PreferNoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        ]
    ),
    max_size=2,
)


@st.composite
def spread_constraints(draw: st.DrawFn, sharp: bool = False) -> list[Object]:
    """Return constraints; *sharp* ones often select, and allow little skew."""
    pairs = draw(
        st.lists(
            st.tuples(topology_keys, st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
            min_size=int(sharp),
            max_size=3,
            unique=True,
        )
    )
    found = []
    common: Object = {"matchLabels": {"app": "a"}}
    for key, action in pairs:
        item: Object = {
            "topologyKey": key,
            "whenUnsatisfiable": action,
            "maxSkew": draw(st.integers(1, 2 if sharp else 3)),
            "labelSelector": common if sharp and draw(st.booleans()) else draw(selectors),
        }
        if draw(st.integers(0, 3)) == 0:
            item["matchLabelKeys"] = ["tier"]
        if action == "DoNotSchedule" and draw(st.booleans()):
            item["minDomains"] = draw(st.integers(1, 4))
        item["nodeAffinityPolicy"] = draw(st.sampled_from([None, "Honor", "Ignore"]))
        item["nodeTaintsPolicy"] = draw(st.sampled_from([None, "Honor", "Ignore"]))
        found.append(item)
    return found


@st.composite
def containers(draw: st.DrawFn) -> Object:
    container: Object = {"name": "c", "image": draw(st.sampled_from(["web", "db:1", "r/x/web"]))}
    quantities = {
        "cpu": st.sampled_from(["0", "100m", "1", "1500m"]),
        "memory": st.sampled_from(["0", "100Mi", "1Gi", "3Gi"]),
        "ephemeral-storage": st.sampled_from(["1Gi"]),
        "example.com/gpu": st.sampled_from(["1", "2"]),
    }
    named = draw(st.lists(st.sampled_from(list(quantities)), max_size=3, unique=True))
    container["resources"] = {"requests": {name: draw(quantities[name]) for name in named}}
    if draw(st.integers(0, 3)) == 0:
        container["ports"] = [
            {
                "containerPort": 80,
                "hostPort": draw(st.sampled_from([80, 81])),
                "protocol": draw(st.sampled_from(["TCP", "UDP"])),
                "hostIP": draw(st.sampled_from(["", "10.0.0.1", "10.0.0.2"])),
            }
        ]
    return container


# With every rule in every example nearly all nodes fail for several reasons, and a mistake in one
# rule hides behind the others. So most examples concentrate on one family of rules.
FOCI = ["any", "resources", "spread", "pods", "nodes"]


starts: st.SearchStrategy[Object] = st.one_of(
    st.just({}),
    st.integers(0, 3).map(lambda second: {"startTime": f"2030-01-01T00:00:0{second}Z"}),
)


@st.composite
def own_fields(draw: st.DrawFn, focus: str) -> Object:
    """Return what a pod says of its own importance and, rarely, of its node."""
    found: Object = {}
    if focus == "nodes" and draw(st.integers(0, 5)) == 0:
        found["nodeName"] = draw(st.sampled_from(["n0", "n1", "gone"]))
    if draw(st.booleans()):
        found["priority"] = draw(st.sampled_from([-5, 0, 5, 10]))
    return found


@st.composite
def pods(draw: st.DrawFn, name: str, focus: str = "any") -> Object:
    def include(family: str, odds: int) -> bool:
        return focus == family or (focus == "any" and draw(st.integers(0, odds)) == 0)

    bare: Object = {"name": "c", "image": "web", "resources": {"requests": {"cpu": "100m"}}}
    spec: Object = {"containers": [bare]}
    if include("resources", 1):
        spec["containers"] = draw(st.lists(containers(), min_size=1, max_size=2))
        if draw(st.integers(0, 2)) == 0:
            init = draw(st.lists(containers(), min_size=1, max_size=2))
            if draw(st.booleans()):
                init[0] = init[0] | {"restartPolicy": "Always"}
            spec["initContainers"] = [
                {k: v for k, v in item.items() if k != "ports"} for item in init
            ]
    if include("nodes", 1):
        spec["tolerations"] = draw(tolerations)
    affinity = draw(pod_affinity()) if include("pods", 1) else {}
    if include("nodes", 2) or (focus == "spread" and draw(st.integers(0, 3)) == 0):
        affinity["nodeAffinity"] = draw(node_affinity())
    spec["affinity"] = affinity
    if include("nodes", 4) and draw(st.booleans()):
        spec["nodeSelector"] = {"disk": draw(st.sampled_from(VALUES))}
    if include("spread", 1):
        spec["topologySpreadConstraints"] = draw(spread_constraints(focus == "spread"))
    spec |= draw(own_fields(focus))
    metadata: Object = {
        "name": name,
        "uid": name,
        "namespace": draw(st.sampled_from(["default", "default", "other"])),
        "labels": draw(pod_labels) | ({"app": "a"} if focus in ("spread", "pods") else {}),
    }
    if draw(st.integers(0, 5)) == 0:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": spec, "status": draw(starts)}


@st.composite
def nodes(draw: st.DrawFn, name: str, focus: str = "any") -> Object:
    labels: Object = {}
    if draw(st.integers(0, 5)):
        labels[ZONE] = draw(st.sampled_from(["z0", "z1", "z2"]))
    if draw(st.integers(0, 5)):
        labels[HOST] = name
    if draw(st.booleans()):
        labels["disk"] = draw(st.sampled_from(VALUES))
    if draw(st.integers(0, 3)) == 0:
        labels["size"] = draw(st.sampled_from(["1", "3", "9", "big"]))
    scarce = focus in ("any", "resources")
    allocatable = {
        "cpu": draw(st.sampled_from(["2", "4", "0"] if scarce else ["4", "8"])),
        "memory": draw(st.sampled_from(["4Gi", "8Gi"])),
        "pods": draw(st.sampled_from(["2", "10"] if scarce else ["110"])),
        "ephemeral-storage": "10Gi",
    }
    if draw(st.booleans()):
        allocatable["example.com/gpu"] = "2"
    images = draw(st.lists(st.sampled_from(["web:latest", "db:1"]), max_size=2, unique=True))
    tainted = focus in ("any", "nodes") or (focus == "spread" and draw(st.integers(0, 3)) == 0)
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "taints": draw(taints) if tainted else [],
            "unschedulable": tainted and draw(st.integers(0, 7)) == 0,
        },
        "status": {
            "allocatable": allocatable,
            "images": [{"names": [image], "sizeBytes": 700 * 2**20} for image in images],
        },
    }


services = st.builds(
    lambda space, selector: {"metadata": {"namespace": space}, "spec": {"selector": selector}},
    st.sampled_from(SPACES),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2),
)
_WEIGHTS = st.lists(
    st.builds(
        lambda name, weight: {"name": name, "weight": weight},
        st.sampled_from(["cpu", "memory", "example.com/gpu"]),
        st.integers(1, 5),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
_SHAPES = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda point: point[0],
).map(lambda points: [{"utilization": x, "score": y} for x, y in sorted(points)])


@st.composite
def options(draw: st.DrawFn) -> Options:
    """Return how plugins may be configured."""
    found = Options()
    found.strategy = {
        "type": draw(
            st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
        ),
        "resources": draw(_WEIGHTS),
    }
    if found.strategy["type"] == "RequestedToCapacityRatio":
        found.strategy["requestedToCapacityRatio"] = {"shape": draw(_SHAPES)}
    if draw(st.booleans()):
        found.ignored = ["example.com/gpu"]
    if draw(st.booleans()):
        found.added_affinity = draw(node_affinity())
    found.hard_weight = draw(st.sampled_from([0, 1, 50]))
    found.ignore_preferred = draw(st.booleans())
    if draw(st.booleans()):
        actions = draw(st.lists(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]), max_size=2))
        found.spread_defaults = [
            {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": draw(st.integers(1, 2))}
            for key, action in zip((ZONE, HOST), actions, strict=False)
        ]
    return found


@dataclass
class Scene:
    """A cluster, two kinds of pods that will want a node, and what the example is about."""

    world: World
    kinds: list[Object]
    focus: str


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Return a scene; placed pods ignore all rules, as pods that came otherwise do."""
    focus = draw(st.sampled_from(FOCI))
    count = draw(st.integers(1, 6))
    found = [draw(nodes(f"n{index}", focus)) for index in range(count)]
    kinds = [draw(pods("kind0", focus)), draw(pods("kind1", focus))]
    placed = []
    for index in range(draw(st.integers(0, 8))):
        # Copies of what will be scheduled make their rules about each other matter.
        copied = focus != "any" and draw(st.booleans())
        item = draw(st.sampled_from(kinds)) if copied else draw(pods("", focus))
        placed.append((named(item, f"placed{index}"), f"n{draw(st.integers(0, count - 1))}"))
    world = World(found, placed, {"default": {"team": "x"}, "other": {}})
    world.services = draw(st.lists(services, max_size=2))
    for index, service in enumerate(world.services):
        service["metadata"]["name"] = f"s{index}"
    return Scene(world, kinds, focus)


def named(item: Object, name: str) -> Object:
    """Return the pod under another name."""
    return {**item, "metadata": {**item["metadata"], "name": name, "uid": name}}
