"""What objects use of a namespace's quota, and whether a quota allows more.

Used twice: the core controller recomputes ``status.used`` from everything there is, admission
adds what a request would use and refuses it in Kubernetes' words. Amounts are keyed by the names
a quota's ``hard`` uses: ``pods``, ``requests.cpu``, ``count/deployments.apps``, …

A pod that has ended uses no ``pods`` and no compute but is still an object: ``count/pods`` counts
it. A quota with scopes concerns pods alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from skerry.api.kinds import GroupResource
from skerry.api.objects import Object
from skerry.kit.timestamps import parse_rfc3339
from skerry.logic.machinery.quantity import Quantity

Usage = dict[str, Quantity]

PODS = GroupResource("", "pods")
_SERVICES = GroupResource("", "services")
_CLAIMS = GroupResource("", "persistentvolumeclaims")

_ONE = Quantity.of(1)
_NONE = Quantity.of(0)

# Core types whose plain name has always been a quota of its own.
_COUNTED_BY_NAME = frozenset(
    ("configmaps", "replicationcontrollers", "resourcequotas", "secrets", "services")
) | {"persistentvolumeclaims"}
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
# Who limits these wants every container to state them. Kubernetes calls that a mistake it keeps.
_MUST_BE_STATED = frozenset(
    ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
)
_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
# Where quotas of a whole workspace are, and how they say they are that.
CLUSTER_QUOTAS = "admin"
_WHOLE_CLUSTER = "experimental.quota.kcp.io/cluster-scoped"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


@dataclass(frozen=True, slots=True)
class Counted:
    """One object and the type it is of."""

    resource: GroupResource
    object: Object


# What one object uses.


def usage_of(counted: Counted, now: datetime) -> Usage:
    """Return everything *counted* uses, whichever of it a quota may limit."""
    resource, obj = counted.resource, counted.object
    used: Usage = {f"count/{resource}": _ONE}
    if not resource.group and resource.resource in _COUNTED_BY_NAME:
        used[resource.resource] = _ONE
    if resource == PODS:
        used |= _pod_usage(obj, now)
    elif resource == _SERVICES:
        used |= _service_usage(obj)
    elif resource == _CLAIMS:
        used |= _claim_usage(obj)
    return used


def added(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    """Return the sum, name by name."""
    total = dict(one)
    for name, amount in other.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def subtracted(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    """Return the difference, name by name; may be negative."""
    return added(one, {name: -amount for name, amount in other.items()})


def _pod_usage(pod: Object, now: datetime) -> Usage:
    if not counts_as_running(pod, now):
        return {}
    requests, limits = pod_requests(pod), pod_limits(pod)
    return {"pods": _ONE} | _compute_usage(requests, limits)


def _compute_usage(requests: Usage, limits: Usage) -> Usage:
    used: Usage = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif _is_extended(name):
            used[f"requests.{name}"] = amount
    for name, amount in limits.items():
        if name in _COMPUTE:
            used[f"limits.{name}"] = amount
    return used


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io") and not name.startswith("requests.")


def counts_as_running(pod: Object, now: datetime) -> bool:
    """Tell whether a pod still uses compute: not ended, and not overdue to be gone."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    metadata = pod["metadata"]
    deletion, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if deletion and grace is not None:
        return now <= parse_rfc3339(deletion) + timedelta(seconds=int(grace))
    return True


def pod_requests(pod: Object) -> Usage:
    """Return what a pod requests: its containers together, or the largest need while starting.

    An init container that keeps running (a sidecar) counts with the containers and with every
    init container after it.
    """
    return _pod_total(pod, "requests", overhead_needs_entry=False)


def pod_limits(pod: Object) -> Usage:
    """Return what a pod is limited to; overhead only raises limits that exist."""
    return _pod_total(pod, "limits", overhead_needs_entry=True)


def _pod_total(pod: Object, field: str, *, overhead_needs_entry: bool) -> Usage:
    spec = pod.get("spec") or {}
    total: Usage = {}
    for container in spec.get("containers") or ():
        total = added(total, _amounts(container, field))
    sidecars: Usage = {}
    starting: Usage = {}
    for container in spec.get("initContainers") or ():
        needs = _amounts(container, field)
        if container.get("restartPolicy") == "Always":
            total = added(total, needs)
            sidecars = needs = added(sidecars, needs)
        else:
            needs = added(sidecars, needs)
        starting = _larger(starting, needs)
    total = _larger(total, starting)
    for name, text in (spec.get("overhead") or {}).items():
        if not overhead_needs_entry or total.get(name, _NONE):
            total = added(total, {name: Quantity.parse(text)})
    return total


def _amounts(container: Object, field: str) -> Usage:
    stated = (container.get("resources") or {}).get(field) or {}
    return {name: Quantity.parse(text) for name, text in stated.items()}


def _larger(one: Usage, other: Usage) -> Usage:
    return one | {
        name: amount for name, amount in other.items() if name not in one or one[name] < amount
    }


def _service_usage(service: Object) -> Usage:
    spec = service.get("spec") or {}
    ports = spec.get("ports") or ()
    kind = spec.get("type", "ClusterIP")
    node_ports, balancers = 0, 0
    if kind == "NodePort":
        node_ports = len(ports)
    elif kind == "LoadBalancer":
        balancers = 1
        if spec.get("allocateLoadBalancerNodePorts") is False:
            node_ports = sum(1 for port in ports if port.get("nodePort"))
        else:
            node_ports = len(ports)
    return {
        "services.nodeports": Quantity.of(node_ports),
        "services.loadbalancers": Quantity.of(balancers),
    }


def _claim_usage(claim: Object) -> Usage:
    spec = claim.get("spec") or {}
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get(_CLASS_ANNOTATION) or spec.get("storageClassName")
    used: Usage = {}
    if storage_class:
        used[f"{storage_class}{_CLASS_SUFFIX}persistentvolumeclaims"] = _ONE
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if requested is not None:
        amount = Quantity.parse(requested)
        used["requests.storage"] = amount
        if storage_class:
            used[f"{storage_class}{_CLASS_SUFFIX}requests.storage"] = amount
    return used


# What a quota is about.


def hard_limits(quota: Object) -> Usage:
    """Return the limits a quota's spec states."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {name: Quantity.parse(text) for name, text in hard.items()}


def counts_cluster(quota: Object) -> bool:
    """Tell whether a quota of a workspace says that it counts all of it, not its namespace."""
    metadata = quota["metadata"]
    annotation = (metadata.get("annotations") or {}).get(_WHOLE_CLUSTER)
    return metadata.get("namespace") == CLUSTER_QUOTAS and annotation == "true"


def tracked_types(quota: Object) -> set[GroupResource]:
    """Return the types a quota's limits are about."""
    found = set()
    for name in hard_limits(quota):
        if name.startswith("count/"):
            resource, _, group = name.removeprefix("count/").partition(".")
            found.add(GroupResource(group, resource))
        else:
            found.add(_type_of(name))
    return found


def _type_of(name: str) -> GroupResource:
    if name.startswith("services."):
        return _SERVICES
    if name == "requests.storage" or _CLASS_SUFFIX in name:
        return _CLAIMS
    return GroupResource("", name) if name in _COUNTED_BY_NAME else PODS


def concerns(quota: Object, counted: Counted) -> bool:
    """Tell whether *counted* is within every scope of a quota."""
    spec = quota.get("spec") or {}
    expressions = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    expressions += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not expressions:
        return True
    if counted.resource != PODS:
        return False
    return all(_in_scope(counted.object, expression) for expression in expressions)


def _in_scope(pod: Object, expression: Mapping[str, Any]) -> bool:
    name = expression["scopeName"]
    if name == "PriorityClass":
        return _priority_in_scope(pod, expression)
    check = _SCOPES.get(name)
    return check is not None and check(pod)


def _priority_in_scope(pod: Object, expression: Mapping[str, Any]) -> bool:
    name = (pod.get("spec") or {}).get("priorityClassName") or ""
    values = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _terminating(pod: Object) -> bool:
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _best_effort(pod: Object) -> bool:
    spec = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return not any(
        _amounts(container, field).get(name)
        for container in containers
        for field in ("requests", "limits")
        for name in ("cpu", "memory")
    )


def _crosses_namespaces(pod: Object) -> bool:
    """Tell whether any (anti-)affinity term looks beyond the pod's own namespace."""
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            terms.append(weighted.get("podAffinityTerm") or {})  # noqa: PERF401 - two sources
        if any(term.get("namespaces") or term.get("namespaceSelector") for term in terms):
            return True
    return False


_SCOPES: Mapping[str, Callable[[Object], bool]] = {
    "Terminating": _terminating,
    "NotTerminating": lambda pod: not _terminating(pod),
    "BestEffort": _best_effort,
    "NotBestEffort": lambda pod: not _best_effort(pod),
    "CrossNamespacePodAffinity": _crosses_namespaces,
}


# Recomputing and admitting.


def used_by(quota: Object, everything: Iterable[Counted], now: datetime) -> Usage:
    """Return ``status.used``: what *everything* uses of what the quota limits, zeroes included."""
    total = dict.fromkeys(hard_limits(quota), _NONE)
    for counted in everything:
        if not concerns(quota, counted):
            continue
        for name, amount in usage_of(counted, now).items():
            if name in total:
                total[name] = total[name] + amount
    return total


def increase(
    quota: Object, new: Counted, old: Counted | None, now: datetime
) -> tuple[Usage, Usage]:
    """Return what a write changes of a quota's usage: all of it, and what it newly asks for.

    Only the second can be refused: an update may always shrink, and keep what it had.
    """
    after = usage_of(new, now) if concerns(quota, new) else {}
    before = usage_of(old, now) if old is not None and concerns(quota, old) else {}
    limited = hard_limits(quota)
    change = {
        name: amount
        for name, amount in subtracted(after, before).items()
        if name in limited and amount
    }
    return change, {name: amount for name, amount in change.items() if amount > _NONE}


def refusal(quota: Object, new: Counted, old: Counted | None, now: datetime) -> str | None:
    """Return why a quota does not allow a write, in Kubernetes' words; None when it does."""
    name = quota["metadata"]["name"]
    if old is None and concerns(quota, new) and (missing := unstated(quota, new)):
        return f"failed quota: {name}: must specify {missing}"
    _, asked = increase(quota, new, old, now)
    status = quota.get("status") or {}
    used = {key: Quantity.parse(text) for key, text in (status.get("used") or {}).items()}
    if unknown := sorted(key for key in asked if key not in used):
        return f"status unknown for quota: {name}, resources: {','.join(unknown)}"
    limits = hard_limits(quota)
    over = sorted(key for key, amount in asked.items() if limits[key] < used[key] + amount)
    if not over:
        return None
    return (
        f"exceeded quota: {name}, requested: {_listed(asked, over)}, "
        f"used: {_listed(used, over)}, limited: {_listed(limits, over)}"
    )


def unstated(quota: Object, counted: Counted) -> str:
    """Return which compute a pod's containers fail to state though the quota limits it."""
    wanted = _MUST_BE_STATED.intersection(hard_limits(quota))
    if counted.resource != PODS or not wanted:
        return ""
    missing: dict[str, set[str]] = {}
    spec = counted.object.get("spec") or {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        stated = _compute_usage(_amounts(container, "requests"), _amounts(container, "limits"))
        for name in wanted - stated.keys():
            missing.setdefault(name, set()).add(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def charged(quota: Object, change: Mapping[str, Quantity]) -> dict[str, str]:
    """Return ``status.used`` after *change*, as text."""
    used = {
        name: Quantity.parse(text)
        for name, text in ((quota.get("status") or {}).get("used") or {}).items()
    }
    known = {name: amount for name, amount in change.items() if name in used}
    return as_text(added(used, known))


def as_text(usage: Mapping[str, Quantity]) -> dict[str, str]:
    """Return amounts as they are written into an object."""
    return {name: str(usage[name]) for name in sorted(usage)}


def _listed(usage: Mapping[str, Quantity], names: Sequence[str]) -> str:
    return ",".join(f"{name}={usage[name]}" for name in names)
