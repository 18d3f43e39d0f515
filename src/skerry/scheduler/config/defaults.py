"""What a configuration means where it says nothing."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from skerry.api.objects import Object
from skerry.scheduler.config.schema import GROUP_VERSION, KIND, POINTS

DEFAULT_SCHEDULER_NAME = "default-scheduler"

# Name and, where it scores, weight; the order is the order plugins run in.
DEFAULT_PLUGINS: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
)

_CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]

DEFAULT_ARGUMENTS: Mapping[str, Object] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "InterPodAffinity": {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False},
    "NodeAffinity": {},
    "NodeResourcesBalancedAllocation": {"resources": _CPU_AND_MEMORY},
    "NodeResourcesFit": {
        "scoringStrategy": {"type": "LeastAllocated", "resources": _CPU_AND_MEMORY}
    },
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
}


def with_defaults(raw: Object) -> Object:
    """Return the configuration with every default filled in."""
    config = copy.deepcopy(raw)
    config.setdefault("apiVersion", GROUP_VERSION)
    config.setdefault("kind", KIND)
    config.setdefault("parallelism", 16)
    config.setdefault("percentageOfNodesToScore", 0)
    config.setdefault("podInitialBackoffSeconds", 1)
    config.setdefault("podMaxBackoffSeconds", 10)
    config.setdefault("enableProfiling", True)
    config.setdefault("enableContentionProfiling", True)
    config.setdefault("delayCacheUntilActive", False)
    _default_client(config.setdefault("clientConnection", {}))
    _default_election(config.setdefault("leaderElection", {}))
    for extender in config.get("extenders", ()):
        extender.setdefault("httpTimeout", "5s")
    profiles = config.setdefault("profiles", [{}]) or [{}]
    config["profiles"] = profiles
    if len(profiles) == 1:
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER_NAME)
    for profile in profiles:
        _default_profile(profile)
    return config


def _default_client(client: Object) -> None:
    client.setdefault("kubeconfig", "")
    client.setdefault("acceptContentTypes", "")
    client["contentType"] = client.get("contentType") or "application/vnd.kubernetes.protobuf"
    # Zero means "not said" here, as it does for kube-scheduler.
    client["qps"] = client.get("qps") or 50
    client["burst"] = client.get("burst") or 100


def _default_election(election: Object) -> None:
    election.setdefault("leaderElect", True)
    election.setdefault("leaseDuration", "15s")
    election.setdefault("renewDeadline", "10s")
    election.setdefault("retryPeriod", "2s")
    election["resourceLock"] = election.get("resourceLock") or "leases"
    election["resourceName"] = election.get("resourceName") or "kube-scheduler"
    election["resourceNamespace"] = election.get("resourceNamespace") or "kube-system"


def _default_profile(profile: Object) -> None:
    profile["plugins"] = _merged_plugins(profile.get("plugins") or {})
    configured = profile.setdefault("pluginConfig", [])
    for item in configured:
        item["args"] = with_default_arguments(item.get("name", ""), item.get("args"))
    named = {item.get("name") for item in configured}
    needed = {
        ref["name"] for point in profile["plugins"].values() for ref in point.get("enabled", ())
    }
    for name in sorted(needed - named):
        if name in DEFAULT_ARGUMENTS:
            configured.append({"name": name, "args": with_default_arguments(name, None)})


def with_default_arguments(plugin: str, args: Any) -> Any:
    """Return a plugin's arguments complete; those of unknown plugins as they are."""
    if plugin not in DEFAULT_ARGUMENTS:
        return args
    found: Object = dict(args or {})
    found.setdefault("apiVersion", GROUP_VERSION)
    found.setdefault("kind", f"{plugin}Args")
    for key, value in copy.deepcopy(DEFAULT_ARGUMENTS[plugin]).items():
        if key not in found:
            found[key] = value
    if plugin == "NodeResourcesFit":
        _default_strategy(found["scoringStrategy"])
    if plugin == "NodeResourcesBalancedAllocation":
        _default_weights(found["resources"])
    return found


def _default_strategy(strategy: Object) -> None:
    if not strategy.get("resources"):
        strategy["resources"] = copy.deepcopy(_CPU_AND_MEMORY)
    _default_weights(strategy["resources"])


def _default_weights(resources: list[Object]) -> None:
    for item in resources:
        if not item.get("weight"):
            item["weight"] = 1


def _default_set() -> Object:
    enabled = [
        {"name": name, "weight": weight} if weight else {"name": name}
        for name, weight in DEFAULT_PLUGINS
    ]
    return {"enabled": enabled}


def _merged_plugins(custom: Object) -> Object:
    merged: Object = {}
    for point in POINTS:
        base = _default_set() if point == "multiPoint" else {}
        merged[point] = _merged_set(base, custom.get(point) or {})
    return merged


def _merged_set(base: Object, custom: Object) -> Object:
    """Merge a point's lists: a name both have keeps its place and takes the custom weight."""
    disabled = [{"name": item["name"]} for item in custom.get("disabled") or ()]
    off = {item["name"] for item in disabled}
    wanted = {item["name"]: item for item in custom.get("enabled") or ()}
    kept = [] if "*" in off else [i for i in base.get("enabled", ()) if i["name"] not in off]
    replaced = {item["name"] for item in kept} & wanted.keys()
    enabled = [wanted.get(item["name"], item) for item in kept]
    enabled += [item for item in custom.get("enabled") or () if item["name"] not in replaced]
    merged: Object = {}
    if enabled:
        merged["enabled"] = enabled
    if disabled:
        merged["disabled"] = disabled
    return merged
